/* sandglass fork: makes copies of a sandbox as it is now, with the variables of its kernels. */
#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/url.h"

#define BODY_MAX          1024
#define COUNT_MAX         100
#define DEFAULT_TIMEOUT_S 300

struct fork_options {
    struct client_common common;
    const char *id, *inherit;
    uint64_t count, timeout_s, wait_ms;
    bool verbose, json;
};

/* ---- the command line ------------------------------------------------------------------------ */

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct fork_options *o = self;

    if (o->id)
        return err_invalid(
            e,
            "unexpected argument '%.64s': fork takes one sandbox, --count says how many "
            "copies",
            arg);
    o->id = arg;
    return client_check_id(arg, e);
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct fork_options *o = self;

    if (!o->id)
        return err_invalid(e, "no sandbox given: 'sandglass ps' lists them");
    return 0;
}

static const struct cli_option options[] = {
    {"count", 'n', "N", "how many copies, up to 100 (default: 1)",
     CLI_COUNT(fork_options, count, 1, COUNT_MAX)},
    {"inherit", 0, "state|files|replay",
     "what copies get: state: variables and files (default); files; replay",
     CLI_WORD(fork_options, inherit, "state|files|replay")},
    {"wait", 0, "TIME", "how long to wait for a cell to end: 500ms, 30s (default: 0)",
     CLI_AT(client_wait, fork_options, wait_ms)},
    {"timeout", 0, "TIME", "how long the copies live: 30s, 5m (default), 1h",
     CLI_AT(client_seconds, fork_options, timeout_s)},
    {"verbose", 'v', NULL, "show what happened to each kernel, as on a terminal",
     CLI_FLAG(fork_options, verbose)},
    {"json", 0, NULL, "print the server's answer", CLI_FLAG(fork_options, json)},
    CLIENT_OPTIONS,
};

/* ---- the call -------------------------------------------------------------------------------- */

static int ask(struct client *c, const struct fork_options *o, json_t **ret, json_t **ret_refusal,
               struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    struct json j = {.out = &body};

    jw_object_begin(&j);
    payload_number(&j, "count", o->count);
    payload_number(&j, "timeout", o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S);
    payload_number(&j, "waitMs", o->wait_ms);
    payload_text(&j, "inherit", o->inherit);
    jw_object_end(&j);
    struct api_request q = {.method = "POST",
                            .body = &body,
                            .more_ms = carry_more_ms(o->inherit, o->wait_ms),
                            .refusal = ret_refusal};
    int r = api_ask(c, &q, ret, e, "/sandboxes/%s/fork", o->id);
    if (r == 0 && !json_is_array(*ret))
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not a list");
    return r < 0 && !strstr(e->message, o->id) ? err_wrap(e, r, "sandbox %s", o->id) : r;
}

/* Prints the ids of the copies, and an error for each copy that the server could not make. */
static int report(const json_t *forks, bool ids)
{
    int status = 0;

    for (size_t i = 0; i < json_array_size(forks); i++) {
        const json_t *one = json_array_get(forks, i);
        const char *id = jr_text(json_object_get(one, "sandbox"), "sandboxID");

        if (!url_is_plain_name(id)) {
            const char *why = jr_text(json_object_get(one, "error"), "message");

            ui_error("a copy was not made: %s", *why ? why : "the server gave no reason");
            status = CLIENT_EXIT_REFUSED;
        } else if (ids)
            puts(id);
    }
    return status;
}

static int fork_fn(struct client *c, void *self, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *forks = NULL, *refusal = NULL;
    const struct fork_options *o = self;
    bool table = !o->json && (o->verbose || isatty(STDOUT_FILENO));

    if (ask(c, o, &forks, &refusal, e) < 0)
        return carry_fail(e, refusal);
    int r = o->json ? jr_print(forks, e) : 0;
    if (r < 0)
        return r;
    if (table)
        carry_print_forks(forks);
    return report(forks, !table && !o->json);
}

const struct client_verb fork_verb = {
    .name = "fork",
    .usage = "[OPTION]... ID",
    .about = "Makes copies of a running sandbox as it is now, with its files and the variables of "
             "its kernels,\nand prints their ids. The sandbox itself keeps running.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct fork_options),
    .check = check,
    .fn = fork_fn,
};
