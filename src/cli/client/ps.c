/* sandglass ps: shows the sandboxes of a server as a table. */
#include "lib/base/clock.h"
#include "cli/client/jr.h"
#include "cli/client/sandboxes.h"
#include "cli/client/table.h"
#include "lib/command/when.h"

#define CELL_ROOM 4096

struct ps_options {
    struct client_common common;
    struct sandboxes_filter filter;
    bool quiet, json;
};

static int apply_metadata(void *self, const struct cli_option *option, const char *value,
                          struct sg_error *e)
{
    struct ps_options *o = self;

    (void)option;
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
static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), NULL, 0};

static void add_time(struct table *t, const json_t *sandbox, const char *key, bool known)
{
    char text[64];
    int64_t then;

    if (!known || when_parse_ms(jr_text(sandbox, key), &then) < 0)
        table_add(t, TABLE_PLAIN, "-");
    else
        table_add(t, TABLE_PLAIN, when_relative(then, clock_wall_ms(), text, sizeof(text)));
}

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
    table_add(t, TABLE_PLAIN, text.len > 0 ? text.buf : "-");
}

static void add_row(struct table *t, const json_t *sandbox)
{
    const char *alias = jr_text(sandbox, "alias"), *state = jr_text(sandbox, "state");
    bool running = strcmp(state, "running") == 0;

    table_add(t, TABLE_PLAIN, jr_text(sandbox, "sandboxID"));
    table_add(t, TABLE_PLAIN, *alias ? alias : jr_text(sandbox, "templateID"));
    table_add(t, running ? TABLE_GREEN : TABLE_YELLOW, state);
    add_time(t, sandbox, "startedAt", true);
    add_time(t, sandbox, "endAt", running); /* a paused sandbox has no end */
    add_metadata(t, json_object_get(sandbox, "metadata"));
}

static void print_table(const json_t *list)
{
    static const struct table_column columns[] = {
        {"ID", TABLE_TEXT},      {"TEMPLATE", TABLE_TEXT}, {"STATE", TABLE_TEXT},
        {"STARTED", TABLE_TEXT}, {"ENDS", TABLE_TEXT},     {"METADATA", TABLE_TEXT},
    };
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(list); i++)
        add_row(&t, json_array_get(list, i));
    table_print(&t, stdout);
}

static int ps_fn(struct client *c, void *self)
{
    AUTO(jr_free_p) json_t *list = NULL;
    struct ps_options *o = self;
    struct sg_error e;

    if (sandboxes_list(c, &o->filter, &list, &e) < 0)
        return client_fail(&e);
    if (o->json)
        return jr_print(list, &e) < 0 ? client_fail(&e) : 0;
    if (!o->quiet) {
        print_table(list);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        puts(jr_text(json_array_get(list, i), "sandboxID"));
    return 0;
}

const struct client_verb ps_verb = {
    .name = "ps",
    .usage = "[OPTION]...",
    .about = "Lists the sandboxes of a server, running and paused.",
    .syntax = &syntax,
    .options_size = sizeof(struct ps_options),
    .fn = ps_fn,
};
