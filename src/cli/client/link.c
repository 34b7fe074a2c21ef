/* sandglass link: an address that opens one port of a sandbox for a limited time. */
#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"

#define MOST_MS (30ull * 24 * 3600 * 1000)

struct link_options {
    struct client_common common;
    const char *sandbox;
    uint64_t port, for_ms;
    bool json;
};

static const struct cli_option options[] = {
    {"for", 0, "TIME", "how long the address is good for: 30m, 2h (default: 1h)",
     CLI_TIME(link_options, for_ms, 1000, MOST_MS, "1s and 30d")},
    {"json", 0, NULL, "print the server's object", CLI_FLAG(link_options, json)},
    CLIENT_OPTIONS,
};

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct link_options *o = self;

    if (o->port)
        return err_invalid(e, "'%.64s' is one argument too many", arg);
    if (o->sandbox)
        return parse_u64("port", arg, 1, 65535, &o->port, e);
    o->sandbox = arg;
    return 0;
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct link_options *o = self;

    if (!o->port)
        return err_invalid(e, o->sandbox ? "no port given" : "no sandbox given");
    return client_check_id(o->sandbox, e);
}

static int link_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct link_options *o = self;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(256);
    AUTO(jr_free_p) json_t *answer = NULL;
    struct json j = {.out = &body};

    jw_object_begin(&j);
    jw_u64(jw_key(&j, "port"), o->port);
    if (o->for_ms)
        jw_u64(jw_key(&j, "seconds"), o->for_ms / 1000);
    jw_object_end(&j);
    int r = api_call(c, "POST", &body, &answer, e, "/v1/sandboxes/%s/links", o->sandbox);
    if (r < 0)
        return r;
    if (o->json)
        return jr_print(answer, e);
    printf("%s\n", jr_text(answer, "url"));
    if (json_is_true(json_object_get(answer, "public")))
        fprintf(stderr, "sandglass link: the ports of this sandbox are public: the address is good "
                        "for as long as the sandbox lives\n");
    return 0;
}

const struct client_verb link_verb = {
    .name = "link",
    .usage = "[OPTION]... SANDBOX PORT",
    .about =
        "Prints an address that opens one port of a sandbox for a limited time, to whoever has "
        "it.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct link_options),
    .check = check,
    .fn = link_fn,
};
