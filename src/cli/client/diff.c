/* sandglass diff: lists the files that a sandbox or a snapshot has changed. */
#include "lib/text/parse.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/table.h"
#include "cli/client/url.h"

struct diff_options {
    struct client_common common;
    const char *of, *against;
    bool json;
};

static const struct cli_option options[] = {
    {"json", 0, NULL, "print the server's object", CLI_FLAG(diff_options, json)},
    CLIENT_OPTIONS,
};

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct diff_options *o = self;

    if (o->against)
        return err_invalid(e, "'%.64s' is one name too many", arg);
    *(o->of ? &o->against : &o->of) = arg;
    return 0;
}

static int check(void *self, char **rest UNUSED, struct sg_error *e)
{
    const struct diff_options *o = self;

    return o->of ? 0 : err_invalid(e, "no sandbox and no snapshot given");
}

static char letter(const json_t *change)
{
    const char *word = jr_text(change, "change");

    return word[0] == 'a' ? 'A' : word[0] == 'r' ? 'D' : 'M';
}

/* Directories end in a slash, as `ls -p` shows them. */
static void print_change(const json_t *change)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(64u * 1024);
    const char *type = jr_text(change, "type"), *path = jr_text(change, "path");
    char size[32] = "-";

    if (type[0] == 'f')
        format_size(jr_count(change, "size"), size, sizeof(size));
    table_clean(&line, path, strlen(path));
    printf("%c %10s  %s%s\n", letter(change), size, line.buf, type[0] == 'd' ? "/" : "");
}

static int diff_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct diff_options *o = self;
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);
    AUTO(jr_free_p) json_t *answer = NULL;
    size_t i;
    json_t *change;

    strbuf_addstr(&path, "/v1/diff");
    url_add_query(&path, "of", o->of);
    url_add_query(&path, "against", o->against);
    int r = api_pages(c, path.buf, "changes", &answer, e);
    if (r < 0)
        return r;
    if (o->json)
        return jr_print(answer, e);
    json_array_foreach(json_object_get(answer, "changes"), i, change) print_change(change);
    if (json_is_false(json_object_get(answer, "complete")))
        fprintf(stderr, "sandglass diff: some directories lie too deep and were left out\n");
    return 0;
}

const struct client_verb diff_verb = {
    .name = "diff",
    .usage = "[OPTION]... SANDBOX|SNAPSHOT [TEMPLATE|SNAPSHOT]",
    .about =
        "Lists the files that a sandbox has changed against its template, or a snapshot against\n"
        "what it stands on, or either against another template or snapshot.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct diff_options),
    .check = check,
    .fn = diff_fn,
};
