/* The list of contexts: filtered, newest first, page by page. */
#include "lib/text/parse.h"
#include "front/v1/check.h"
#include "front/v1/cursor.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define LIMIT_DEFAULT 50
#define ANSWER_MAX    (4u * 1024 * 1024) /* CTX_LIST_MAX contexts */

static int parse_status(const char *text, size_t len, unsigned *ret, struct sg_error *e)
{
    if (len == strlen("all") && strncmp(text, "all", len) == 0) {
        *ret |= CTX_ALL;
        return 0;
    }
    for (enum ctx_status s = 0; s < CTX_STATUS_MAX_; s++) {
        const char *name = ctx_status_text(s);

        if (strlen(name) == len && strncmp(text, name, len) == 0) {
            *ret |= 1u << s;
            return 0;
        }
    }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "Invalid status \"%.*s\": use creating, ready, terminated and error, or all",
                   (int)(len < 40 ? len : 40), text);
}

static int parse_statuses(const char *text, unsigned *ret, struct sg_error *e)
{
    unsigned statuses = 0;
    int r;

    if (!text) {
        *ret = CTX_ACTIVE;
        return 0;
    }
    for (;; text++) {
        size_t len = strcspn(text, ",");

        r = parse_status(text, len, &statuses, e);
        text += len;
        if (r < 0 || !*text)
            break;
    }
    if (r == 0)
        *ret = statuses;
    return r;
}

static int parse_sandbox(struct http_req *req, const char **ret, struct sg_error *e)
{
    const char *id = http_query_get(req, "sandboxId");

    if (!http_query_has(req, "sandboxId"))
        return 0;
    if (!id || !id_valid(id))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "Invalid sandboxId: it has %d characters of a-z and 0-9", ID_LEN);
    *ret = id;
    return 0;
}

static int parse_cursor(struct http_req *req, struct cursor *ret, struct sg_error *e)
{
    const char *text = http_query_get(req, "cursor");

    if (!http_query_has(req, "cursor"))
        return 0;
    if (!text || cursor_read(text, ret) < 0)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "Invalid cursor: give the nextCursor of the page before");
    return 0;
}

static int parse_query(struct e2b_req *q, struct ctx_list *ret, struct cursor *cursor,
                       struct sg_error *e)
{
    const char *limit = http_query_get(q->http, "limit");
    uint64_t n = LIMIT_DEFAULT;
    int r = check_query_name(q->http, "conversationId", false, &ret->conversation, e);

    if (r == 0)
        r = check_query_name(q->http, "pathId", false, &ret->path, e);
    if (r == 0)
        r = parse_sandbox(q->http, &ret->sandbox_id, e);
    if (r == 0)
        r = parse_statuses(http_query_get(q->http, "status"), &ret->statuses, e);
    if (r == 0 && limit)
        r = parse_u64("limit", limit, 1, CTX_LIST_MAX, &n, e);
    if (r == 0)
        r = parse_cursor(q->http, cursor, e);
    ret->tenant = q->tenant.id;
    ret->limit = n;
    ret->before_ms = cursor->at_ms;
    ret->before_id = cursor->id;
    return r;
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
    struct cursor cursor = {0};
    struct ctx_list list = {0};
    struct sg_error e;

    if (parse_query(q, &list, &cursor, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    e2b_wait(q);
    store->ops->list(store, &list, on_listed, q);
}
