/* run_code and run_analysis: runs of front/tools, for clients of MCP. */
#include <string.h>

#include "front/mcp/call.h"
#include "front/mcp/catalogue.h"
#include "front/mcp/shown.h"

/* Keeps the last line of output that is not blank. */
static void note_text(struct mcp_call *c, const char *text, size_t len)
{
    while (len > 0 && strchr("\r\n \t", text[len - 1]))
        len--;
    size_t begin = len;
    while (begin > 0 && text[begin - 1] != '\n' && text[begin - 1] != '\r')
        begin--;
    if (len == 0)
        return;
    c->line_len = len - begin < sizeof(c->line) ? len - begin : sizeof(c->line);
    memcpy(c->line, text + begin, c->line_len);
    if (c->line_len == len - begin)
        return;
    /* The line was cut, perhaps in the middle of a character. */
    while (c->line_len > 0 && ((unsigned char)c->line[c->line_len - 1] & 0xc0) == 0x80)
        c->line_len--;
    if (c->line_len > 0 && (unsigned char)c->line[c->line_len - 1] >= 0xc0)
        c->line_len--;
}

static bool on_line(void *arg, const char *line, size_t len)
{
    static const char stdout_head[] = "{\"type\":\"stdout\"",
                      stderr_head[] = "{\"type\":\"stderr\"";
    struct mcp_call *c = arg;

    /* Lines of results are skipped: they may be large, and show no progress. */
    if (len < sizeof(stdout_head) - 1 || (memcmp(line, stdout_head, sizeof(stdout_head) - 1) != 0 &&
                                          memcmp(line, stderr_head, sizeof(stderr_head) - 1) != 0))
        return true;
    json_t *v = json_loadb(line, len, 0, NULL);
    const json_t *text = json_object_get(v, "text");
    if (json_is_string(text))
        note_text(c, json_string_value(text), json_string_length(text));
    json_decref(v);
    return true;
}

static void *make(unsigned version, enum tool t, const struct tool_result *r)
{
    struct result *result = xcalloc(1, sizeof(*result));

    shown_run(result, (enum mcp_version)version, t, r);
    return result;
}

static void drop(void *made)
{
    result_done(made);
    free(made);
}

static void on_done(void *arg, const struct tool_result *r)
{
    struct mcp_call *c = arg;
    struct result *result = r->made ? r->made : make(c->x->version, c->tool->runs, r);

    mcp_call_done(c, result); /* frees what is in it */
    free(result);
}

static void on_abandon(struct mcp_call *c)
{
    tool_run_cancel(c->work);
}

static void begin(struct mcp_call *c)
{
    struct tool_listener listener = {.arg = c,
                                     .on_line = c->token ? on_line : NULL,
                                     .make = make,
                                     .drop = drop,
                                     .form = c->x->version,
                                     .on_done = on_done};

    struct tool_place place = {
        .conversation = c->conversation, .path = c->path, .message = c->message};

    c->on_abandon = on_abandon;
    c->work =
        tool_begin(c->x->front, &c->x->tenant, c->tool->runs, c->arguments, &place, &listener);
}

const struct mcp_tool run_code_tool = {
    .name = "run_code",
    .title = "Run code",
    .runs = TOOL_RUN_CODE,
    .begin = begin,
    .destroys = true,
    .reaches_out = true,
};

const struct mcp_tool run_analysis_tool = {
    .name = "run_analysis",
    .title = "Run an analysis",
    .runs = TOOL_RUN_ANALYSIS,
    .begin = begin,
    .destroys = true,
    .reaches_out = true,
};
