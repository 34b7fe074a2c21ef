/* The list of contexts: filtered, newest first, page by page. */
#include "front/v1/check.h"
#include "front/v1/cursor.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define LIMIT_DEFAULT 50
#define ANSWER_MAX    (4u * 1024 * 1024) /* CTX_LIST_MAX contexts */

static unsigned parse_status(struct fields *in, const char *text, size_t len)
{
    if (len == strlen("all") && strncmp(text, "all", len) == 0)
        return CTX_ALL;
    for (enum ctx_status s = 0; s < CTX_STATUS_MAX_; s++) {
        const char *name = ctx_status_text(s);

        if (strlen(name) == len && strncmp(text, name, len) == 0)
            return 1u << s;
    }
    fields_invalid(in, "Invalid status \"%.*s\": use creating, ready, terminated and error, or all",
                   (int)(len < 40 ? len : 40), text);
    return 0;
}

static unsigned parse_statuses(struct fields *in, const char *text)
{
    unsigned statuses = 0;

    if (!text)
        return CTX_ACTIVE;
    for (;; text++) {
        size_t len = strcspn(text, ",");

        statuses |= parse_status(in, text, len);
        text += len;
        if (!*text)
            return statuses;
    }
}

static struct cursor parse_cursor(struct e2b_req *q)
{
    const char *text = check_query(q, "cursor");
    struct cursor cursor = {0};

    if (text && cursor_read(text, &cursor) < 0)
        fields_invalid(&q->in, "Invalid cursor: give the nextCursor of the page before");
    return cursor;
}

static void on_listed(void *arg, const struct ctx_reply *reply)
{
    char next[CURSOR_LEN + 1] = "";
    struct e2b_req *q = arg;
    struct reply r;

    if (!reply_came_of_store(q, reply))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_array_begin(jw_key(j, "contexts"));
    for (size_t i = 0; i < reply->n; i++)
        shape_context(j, &reply->rows[i]);
    jw_array_end(j);
    if (reply->more && reply->n > 0)
        cursor_make(&reply->rows[reply->n - 1], next);
    shape_nullable_key(j, "nextCursor", next);
    reply_send(q, 200, &r);
}

void v1_contexts_list(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct ctx_store *store = contexts_store(q->front);
    struct ctx_list list = {.tenant = q->tenant.id};

    list.conversation = check_query_name(q, "conversationId", false);
    list.path = check_query_name(q, "pathId", false);
    list.sandbox_id = check_query_sandbox(q);
    list.statuses = parse_statuses(&q->in, http_query_get(req, "status"));
    list.limit = check_query_number(q, "limit", 1, CTX_LIST_MAX, LIMIT_DEFAULT);
    struct cursor cursor = parse_cursor(q);
    if (!e2b_read(q))
        return;
    list.before_ms = cursor.at_ms;
    list.before_id = cursor.id;
    e2b_wait(q);
    store->ops->list(store, &list, on_listed, q);
}
