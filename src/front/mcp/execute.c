/* execute_code: a program in a sandbox of its own, without a context. */
#include <string.h>

#include "front/mcp/catalogue.h"
#include "front/mcp/shown.h"

static void put_refusal(struct result *r, const struct mcp_call *c, const struct once_result *once)
{
    if (tool_unavailable(once->status))
        result_textf(r, RESULT_UNAVAILABLE, c->tool->name, once->refusal.message);
    else
        result_textf(r, "%s", once->refusal.message);
}

static void build(struct result *r, const struct mcp_call *c, const struct once_result *once,
                  size_t max)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(MESSAGE_MAX);
    bool ran = once->status == 200, success = ran && once->outcome == ONCE_SUCCESS;
    struct json j = {.out = &data};

    result_begin(r, c->x->version);
    if (!ran) {
        put_refusal(r, c, once);
    } else {
        shown_output(r, once->out, once->out_cut, once->err, once->err_cut, max);
        if (!success && once->message)
            result_textf(r, "%s", once->message);
        else if (!success)
            result_textf(r, "It ended with status %d.", once->exit_code);
        else if (once->out->len + once->err->len == 0)
            result_textf(r, "(no output)");
    }
    once_result_json(&j, once, NULL);
    bool whole = max == SIZE_MAX && !data.truncated;
    result_end(r, !success, whole ? data.buf : NULL, data.len);
}

static void on_done(void *arg, const struct once_result *once)
{
    struct mcp_call *c = arg;
    struct result r;

    build(&r, c, once, SIZE_MAX);
    if (r.out.truncated) {
        result_done(&r);
        build(&r, c, once, SHOWN_SHORT_MAX);
    }
    mcp_call_done(c, &r);
}

static void on_abandon(struct mcp_call *c)
{
    once_cancel(c->work);
}

static void begin(struct mcp_call *c)
{
    c->on_abandon = on_abandon;
    c->work = once_begin(c->x->front, &c->x->tenant, c->arguments, NULL, on_done, c);
}

const struct mcp_tool execute_code_tool = {
    .name = "execute_code",
    .title = "Execute a program once",
    .description = once_description,
    .schema = once_schema,
    .begin = begin,
};
