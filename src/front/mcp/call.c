#include "front/mcp/call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/mcp/catalogue.h"

#define TELL_MAX   4096
#define FIELDS_MAX 8

static struct list all;

/* ---- begin and end --------------------------------------------------------------------------- */

static void call_free(struct mcp_call *c)
{
    list_remove(&c->of_exchange);
    list_remove(&c->of_all);
    json_decref(c->id);
    json_decref(c->token);
    free(c);
}

static const json_t *no_arguments(void)
{
    static json_t *none;

    if (!none)
        none = json_object();
    return none;
}

void mcp_call_begin(struct exchange *x, const struct message *m)
{
    struct sg_error e;
    struct fields params = {
        .object = m->params, .prefix = "", .e = &e, .bare = true, .strict = true};
    struct fields meta = fields_within(&params, json_object_get(m->params, "_meta"));
    json_t *token = json_object_get(meta.object, "progressToken");
    const char *name = jr_text_or(m->params, "name", NULL);
    const struct mcp_tool *tool = name ? tool_find(name) : NULL;

    if (!tool)
        field_wrong(&params, "Unknown tool: %.100s", name ? name : "name must be a string");
    const json_t *arguments = field_object(&params, "arguments").object;
    const char *message = field_text(&meta, MESSAGE_META, SIZE_MAX, NULL);
    if (params.r < 0) {
        exchange_error(x, m->id, MESSAGE_INVALID_PARAMS, e.message, NULL);
        return;
    }
    struct mcp_call *c = NEW(struct mcp_call, .x = x, .tool = tool, .id = json_deep_copy(m->id),
                             .token = message_id_valid(token) ? json_incref(token) : NULL,
                             .arguments = arguments ? arguments : no_arguments(),
                             .conversation = x->conversation, .path = x->path ? x->path : "main",
                             .message = message, .began_ms = uv_now(x->front->loop));
    if (!c->conversation && x->session[0])
        c->conversation = x->session;
    c->in = request_fields(c->arguments, &c->wrong);
    list_push(&x->calls, &c->of_exchange);
    list_push(&all, &c->of_all);
    tool->begin(c);
}

void mcp_call_done(struct mcp_call *c, struct result *r)
{
    AUTO(strbuf_done) struct strbuf message = strbuf_upto(MESSAGE_MAX + MESSAGE_ID_MAX * 6 + 128);
    struct exchange *x = c->x;

    /* The largest result, with room for the message around it. */
    if (r->out.truncated) {
        result_done(r);
        mcp_call_fail(c, "The answer is longer than %u bytes", MESSAGE_MAX);
        return;
    }
    message_result(&message, c->id, &r->out);
    result_done(r);
    call_free(c);
    exchange_answer(x, &message);
}

void mcp_call_fail(struct mcp_call *c, const char *fmt, ...)
{
    char text[1024];
    struct result r;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    result_begin(&r, c->x->version);
    result_text(&r, text, strlen(text));
    result_end(&r, true, NULL, 0);
    mcp_call_done(c, &r);
}

void mcp_call_abandon(struct mcp_call *c)
{
    if (c->on_abandon)
        c->on_abandon(c);
    call_free(c);
}

/* ---- progress and cancellation --------------------------------------------------------------- */

/* Tells the client of progress. The figure is time: it grows, whatever the code does. No total is
 * given, since nobody knows it. */
void mcp_call_tell_progress(struct mcp_call *c)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TELL_MAX);
    struct json j = {.out = &out};

    if (!c->token)
        return;
    jw_object_begin(&j);
    jw_string(jw_key(&j, "jsonrpc"), "2.0");
    jw_string(jw_key(&j, "method"), "notifications/progress");
    jw_object_begin(jw_key(&j, "params"));
    jw_key(&j, "progressToken");
    message_put_id(&j, c->token);
    jw_fixed(jw_key(&j, "progress"), uv_now(c->x->front->loop) - c->began_ms, 3);
    if (c->line_len > 0)
        jw_bytes(jw_key(&j, "message"), c->line, c->line_len);
    jw_object_end(&j);
    jw_object_end(&j);
    exchange_tell(c->x, &out);
}

static void call_end(struct mcp_call *c)
{
    struct exchange *x = c->x;

    mcp_call_abandon(c);
    exchange_forgo(x);
}

void calls_cancel(struct exchange *x, const json_t *id)
{
    struct mcp_call *c = LIST_FIND(struct mcp_call, k, &all, of_all,
                                   strcmp(k->x->session, x->session) == 0 && json_equal(k->id, id));

    if (c)
        call_end(c);
}

void calls_end(const char *session)
{
    struct mcp_call *c;

    /* From the beginning each time: the end of one may be the end of others. */
    while ((c = LIST_FIND(struct mcp_call, k, &all, of_all, strcmp(k->x->session, session) == 0)))
        call_end(c);
}

/* ---- arguments ------------------------------------------------------------------------------- */

bool mcp_call_read(struct mcp_call *c)
{
    bool right = c->in.r == 0;

    if (!right)
        mcp_call_fail(c, "%s", c->wrong.message);
    return right;
}

uint64_t mcp_call_number(struct mcp_call *c, const char *name, uint64_t min, uint64_t max,
                         uint64_t fallback)
{
    const json_t *v = field_get(&c->in, name);
    json_int_t n = json_integer_value(v);

    if (v && (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max))
        fields_invalid(&c->in, "%s must be a number between %" PRIu64 " and %" PRIu64, name, min,
                       max);
    return v ? (uint64_t)n : fallback;
}

void mcp_call_place(struct mcp_call *c, const char **ret_conversation, const char **ret_path)
{
    const char *known[FIELDS_MAX + 1] = {NULL};

    *ret_conversation = field_text(&c->in, "conversationId", SIZE_MAX, c->conversation);
    *ret_path = field_text(&c->in, "pathId", SIZE_MAX, c->path);
    fields_check(&c->in, context_name_check("conversationId", *ret_conversation, &c->wrong));
    fields_check(&c->in, context_name_check("pathId", *ret_path, &c->wrong));
    for (size_t i = 0; c->tool->fields[i].name; i++) {
        assert(i < FIELDS_MAX);
        known[i] = c->tool->fields[i].name;
    }
    fields_only(&c->in, known);
}
