/* list_contexts lists the sandboxes of paths; end_context ends one. */
#include <string.h>

#include "front/contexts/context.h"
#include "front/mcp/call.h"
#include "front/mcp/catalogue.h"

#define LIST_MAX (1024u * 1024)

/* A call's request to the store or the context manager, which cannot be taken back: it outlives a
 * call that is abandoned. */
struct asking {
    struct mcp_call *c; /* NULL: abandoned */
    struct front *front;
    char tenant[ID_LEN + 1];
};

static void on_abandon(struct mcp_call *c)
{
    ((struct asking *)c->work)->c = NULL;
}

static struct asking *asking_new(struct mcp_call *c)
{
    struct asking *a = NEW(struct asking, .c = c, .front = c->x->front);

    memcpy(a->tenant, c->x->tenant.id, sizeof(a->tenant));
    c->work = a;
    c->on_abandon = on_abandon;
    return a;
}

/* Frees `a`, and returns its call. NULL: nobody waits any more. */
static struct mcp_call *asking_end(struct asking *a)
{
    struct mcp_call *c = a->c;

    free(a);
    return c;
}

static void fail_with(struct mcp_call *c, int r, const char *message)
{
    if (r == -EAGAIN)
        mcp_call_fail(c, RESULT_UNAVAILABLE, c->tool->name, message);
    else
        mcp_call_fail(c, "%s", message);
}

/* ---- list_contexts --------------------------------------------------------------------------- */

static void put_row(struct json *j, const struct ctx_row *row)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "id"), row->id);
    jw_string(jw_key(j, "conversationId"), row->conversation);
    jw_string(jw_key(j, "pathId"), row->path);
    jw_string(jw_key(j, "sandboxStatus"), ctx_status_text(row->status));
    jw_string(jw_key(j, "sandboxId"), row->sandbox_id);
    jw_string(jw_key(j, "templateId"), row->template_id);
    jw_i64(jw_key(j, "expiresInSeconds"),
           row->expires_ms > row->now_ms ? (row->expires_ms - row->now_ms) / 1000 : 0);
    jw_object_end(j);
}

static void add_line(struct strbuf *text, const struct ctx_row *row)
{
    strbuf_addf(text, "%s  conversation %s, path %s: %s\n", row->id, row->conversation, row->path,
                ctx_status_text(row->status));
}

static void on_listed(void *arg, const struct ctx_reply *reply)
{
    struct mcp_call *c = asking_end(arg);
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(LIST_MAX), data = strbuf_upto(LIST_MAX);
    struct result r;
    struct json j = {.out = &data};

    if (!c)
        return;
    if (reply->r < 0) {
        fail_with(c, reply->r, reply->e.message);
        return;
    }
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "contexts"));
    for (size_t i = 0; i < reply->n; i++) {
        add_line(&text, &reply->rows[i]);
        put_row(&j, &reply->rows[i]);
    }
    jw_array_end(&j);
    jw_bool(jw_key(&j, "more"), reply->more);
    jw_object_end(&j);
    result_begin(&r, c->x->version);
    if (reply->n == 0)
        strbuf_addstr(&text, "There are no contexts.");
    if (reply->more)
        strbuf_addf(&text, "(only the newest %zu are shown)", reply->n);
    result_text(&r, text.buf, text.len);
    result_end(&r, false, data.truncated ? NULL : data.buf, data.len);
    mcp_call_done(c, &r);
}

static void list(struct mcp_call *c)
{
    const char *conversation, *path;

    mcp_call_place(c, &conversation, &path);
    bool all = field_flag(&c->in, "allConversations", false);
    const char *only_path = field_text(&c->in, "pathId", SIZE_MAX, NULL);
    if (!mcp_call_read(c))
        return;
    struct ctx_store *s = contexts_store(c->x->front);
    struct ctx_list q = {.tenant = c->x->tenant.id,
                         .conversation = all ? NULL : conversation,
                         .path = only_path,
                         .statuses = CTX_ACTIVE,
                         .before_id = "",
                         .limit = CTX_LIST_MAX};
    s->ops->list(s, &q, on_listed, asking_new(c));
}

static const struct mcp_field list_fields[] = {
    {"allConversations", "boolean", "Of all conversations. Default: of one.", false, NULL},
    MCP_CONVERSATION,
    {"pathId", "string", "Of this path only.", false, NULL},
    {0},
};

const struct mcp_tool list_contexts_tool = {
    .name = "list_contexts",
    .title = "List contexts",
    .description = "Lists the paths of the conversation that have a sandbox now.",
    .fields = list_fields,
    .begin = list,
    .reads_only = true,
    .repeatable = true,
};

/* ---- end_context ----------------------------------------------------------------------------- */

static void on_ended(void *arg, const struct context_answer *a)
{
    struct mcp_call *c = asking_end(arg);
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(LIST_MAX);
    struct result r;
    struct json j = {.out = &data};

    if (!c)
        return;
    if (a->r < 0) {
        fail_with(c, a->r, a->e->message);
        return;
    }
    if (a->elsewhere) {
        mcp_call_fail(c, RESULT_ELSEWHERE, a->elsewhere);
        return;
    }
    put_row(&j, a->row);
    result_begin(&r, c->x->version);
    result_textf(&r, "The context of path %s has ended, with all that was in its sandbox.",
                 a->row->path);
    result_end(&r, false, data.buf, data.len);
    mcp_call_done(c, &r);
}

static void on_found(void *arg, const struct ctx_reply *reply)
{
    struct asking *a = arg;

    if (a->c && reply->r == 0 && reply->n > 0) {
        context_terminate(a->front, a->tenant, reply->rows[0].id, on_ended, a);
        return;
    }
    struct mcp_call *c = asking_end(a);
    if (!c)
        return;
    if (reply->r < 0)
        fail_with(c, reply->r, reply->e.message);
    else
        mcp_call_fail(c, "This path has no sandbox now");
}

static void end(struct mcp_call *c)
{
    const char *conversation, *path;

    mcp_call_place(c, &conversation, &path);
    const char *id = field_text(&c->in, "contextId", SIZE_MAX, NULL);
    if (id && !id_valid(id))
        fields_invalid(&c->in, "contextId is not the id of a context: list_contexts shows them");
    if (!mcp_call_read(c))
        return;
    struct ctx_store *s = contexts_store(c->x->front);
    struct ctx_list q = {.tenant = c->x->tenant.id,
                         .conversation = conversation,
                         .path = path,
                         .statuses = CTX_ACTIVE,
                         .before_id = "",
                         .limit = 1};
    struct asking *a = asking_new(c);
    if (id)
        context_terminate(a->front, a->tenant, id, on_ended, a);
    else
        s->ops->list(s, &q, on_found, a);
}

static const struct mcp_field end_fields[] = {
    {"contextId", "string", "Its id. Default: the one of the path.", false, NULL},
    MCP_CONVERSATION,
    MCP_PATH,
    {0},
};

const struct mcp_tool end_context_tool = {
    .name = "end_context",
    .title = "End a context",
    .description = "Ends the sandbox of a path, with its variables, files and processes. The next "
                   "call on the path gets a new one.",
    .fields = end_fields,
    .begin = end,
    .destroys = true,
    .repeatable = true,
};
