/* sandglass agents ls, show, logs. */
#include "lib/command/when.h"
#include "cli/client/agents.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"

#define TEXT_MAX (256u * 1024)

/* ---- ls -------------------------------------------------------------------------------------- */

static void add_state(struct table *t, const char *state)
{
    enum table_colour colour = strcmp(state, "running") == 0    ? TABLE_GREEN
                               : strcmp(state, "starting") == 0 ? TABLE_YELLOW
                               : strcmp(state, "failed") == 0 || strcmp(state, "lost") == 0 ||
                                       strcmp(state, "timed_out") == 0
                                   ? TABLE_RED
                                   : TABLE_PLAIN;

    table_add(t, colour, *state ? state : "-");
}

static void add_row(struct table *t, const json_t *row)
{
    char text[64];

    table_add(t, TABLE_PLAIN, jr_text(row, "agentId"));
    add_state(t, jr_text(row, "state"));
    show_time(t, row, "startedAt");
    show_time(t, row, *jr_text(row, "endedAt") ? "endedAt" : "endAt");
    snprintf(text, sizeof(text), "%llu/%llu", (unsigned long long)jr_count(row, "messagesIn"),
             (unsigned long long)jr_count(row, "messagesOut"));
    table_add(t, TABLE_PLAIN, text);
    show_cell(t, jr_text(row, "sandboxId"));
    show_cell(t, jr_text(row, "command"));
}

static const struct table_column columns[] = {
    {"ID", TABLE_TEXT},      {"STATE", TABLE_TEXT},    {"STARTED", TABLE_TEXT},
    {"ENDS", TABLE_TEXT},    {"IN/OUT", TABLE_NUMBER}, {"SANDBOX", TABLE_SPARE},
    {"COMMAND", TABLE_NAME},
};
static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_row, "agentId"};

int agents_ls_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(c, &answer, e, "/v1/agents");

    return r < 0 ? r
                 : show_list(&shown, json_object_get(answer, "agents"), o->base.json, o->base.quiet,
                             e);
}

/* ---- show ------------------------------------------------------------------------------------ */

static void add_line(struct strbuf *out, const char *name, const char *value)
{
    if (*value)
        show_line(out, name, value);
}

static void add_local(struct strbuf *out, const char *name, const char *value)
{
    if (*value)
        show_line_time(out, name, value);
}

static void add_count(struct strbuf *out, const char *name, const json_t *row, const char *key)
{
    char text[32];

    if (!json_object_get(row, key))
        return;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)jr_count(row, key));
    add_line(out, name, text);
}

static void print_agent(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);

    add_line(&out, "id", jr_text(row, "agentId"));
    add_line(&out, "state", jr_text(row, "state"));
    add_line(&out, "command", jr_text(row, "command"));
    add_line(&out, "sandbox", jr_text(row, "sandboxId"));
    add_line(&out, "conversation", jr_text(row, "conversationId"));
    add_line(&out, "path", jr_text(row, "pathId"));
    add_local(&out, "started", jr_text(row, "startedAt"));
    add_local(&out, "ends", jr_text(row, "endedAt")[0] ? "" : jr_text(row, "endAt"));
    add_local(&out, "ended", jr_text(row, "endedAt"));
    add_line(&out, "reason", jr_text(row, "reason"));
    add_line(&out, "fault", jr_text(row, "fault"));
    add_count(&out, "status", row, "exitCode");
    add_line(&out, "signal", jr_text(row, "signal"));
    add_count(&out, "messages in", row, "messagesIn");
    add_count(&out, "messages out", row, "messagesOut");
    add_count(&out, "noise", row, "noise");
    add_count(&out, "connected", row, "connected");
    add_line(&out, "acp", jr_text(row, "acp"));
    fputs(out.buf, stdout);
}

int agents_show_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = api_get(c, &row, e, "/v1/agents/%s", o->base.args[0]);

    if (r == 0 && o->base.json)
        r = jr_print(row, e);
    else if (r == 0)
        print_agent(row);
    return r;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void print_entry(const json_t *entry)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(TEXT_MAX);
    const char *text = jr_text(entry, "text"), *stream = jr_text(entry, "stream");
    size_t len = strlen(text);
    char local[64] = "-";
    int64_t then;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (when_parse_ms(jr_text(entry, "time"), &then) == 0)
        when_local(then, local, sizeof(local));
    strbuf_addf(&line, "%s ", local);
    size_t width = table_clean(&line, stream, strlen(stream));
    for (; width < 7; width++)
        strbuf_addch(&line, ' ');
    table_clean(&line, text, len);
    puts(line.buf);
}

int agents_logs_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct agents_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(c, &answer, e, "/v1/agents/%s/logs", o->base.args[0]);
    const json_t *entries = json_object_get(answer, "entries");

    if (r == 0 && o->base.json)
        return jr_print(entries, e);
    for (size_t i = 0; i < json_array_size(entries); i++)
        print_entry(json_array_get(entries, i));
    return r;
}
