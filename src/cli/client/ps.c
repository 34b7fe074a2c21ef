/* sandglass ps: shows the sandboxes of a server as a table. */
#include "cli/client/jr.h"
#include "cli/client/sandboxes.h"
#include "cli/client/show.h"

#define CELL_ROOM 4096

struct ps_options {
    struct client_common common;
    struct sandboxes_filter filter;
    bool quiet, json;
};

static int apply_metadata(void *self, const struct cli_option *option UNUSED, const char *value,
                          struct sg_error *e)
{
    struct ps_options *o = self;

    if (o->filter.n_pairs == SANDBOXES_PAIRS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--metadata: more than %d of them",
                       SANDBOXES_PAIRS_MAX);
    o->filter.pairs[o->filter.n_pairs++] = value;
    return client_check_pair("--metadata", value, e);
}

static const struct cli_option options[] = {
    {"state", 0, "running|paused", "only those in this state",
     CLI_WORD(ps_options, filter.state, "running|paused")},
    {"metadata", 'm', "KEY=VALUE", "only those with this metadata; may be repeated",
     .apply = apply_metadata},
    {"quiet", 'q', NULL, "print the ids only", CLI_FLAG(ps_options, quiet)},
    {"json", 0, NULL, "print the server's objects as one array", CLI_FLAG(ps_options, json)},
    CLIENT_OPTIONS,
};

static void add_metadata(struct table *t, const json_t *metadata)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(CELL_ROOM);
    const char *key;
    json_t *value;

    for (void *at = json_object_iter((json_t *)(uintptr_t)metadata); at;
         at = json_object_iter_next((json_t *)(uintptr_t)metadata, at)) {
        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        strbuf_addf(&text, "%s%s=%s", text.len > 0 ? " " : "", key,
                    json_is_string(value) ? json_string_value(value) : "?");
    }
    show_cell(t, text.buf);
}

static void add_row(struct table *t, const json_t *sandbox)
{
    const char *alias = jr_text(sandbox, "alias"), *state = jr_text(sandbox, "state");
    bool running = strcmp(state, "running") == 0;

    table_add(t, TABLE_PLAIN, jr_text(sandbox, "sandboxID"));
    table_add(t, TABLE_PLAIN, *alias ? alias : jr_text(sandbox, "templateID"));
    table_add(t, running ? TABLE_GREEN : TABLE_YELLOW, state);
    show_time(t, sandbox, "startedAt");
    show_time(t, running ? sandbox : NULL, "endAt"); /* a paused sandbox has no end */
    add_metadata(t, json_object_get(sandbox, "metadata"));
}

static const struct table_column columns[] = {
    {"ID", TABLE_TEXT},      {"TEMPLATE", TABLE_TEXT}, {"STATE", TABLE_TEXT},
    {"STARTED", TABLE_TEXT}, {"ENDS", TABLE_TEXT},     {"METADATA", TABLE_TEXT},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "sandboxID"};

static int ps_fn(struct client *c, void *self, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    struct ps_options *o = self;
    int r = sandboxes_list(c, &o->filter, &list, e);

    return r < 0 ? r : show_list(&shown, list, o->json, o->quiet, e);
}

const struct client_verb ps_verb = {
    .name = "ps",
    .usage = "[OPTION]...",
    .about = "Lists the sandboxes of a server, running and paused.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), NULL, 0},
    .options_size = sizeof(struct ps_options),
    .fn = ps_fn,
};
