#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

/* ---- get-or-create --------------------------------------------------------------------------- */

static void on_obtained(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct reply r;

    /* If the client has gone, the sandbox stays all the same: the next call on the path will find
     * it. */
    if (!reply_came(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_MAX);
    shape_obtained(j, a);
    jw_bool(jw_key(j, "replaced"), a->replaced);
    jw_bool(jw_key(j, "keptLost"), a->kept_lost);
    reply_send(q, a->created ? 201 : 200, &r);
}

void v1_context_put(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "conversationId", "pathId", "template", "ttlSeconds", "metadata", "envs",
               "network");
    struct context_ask ask = check_ask(q, "pathId");
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    context_obtain(q->front, &ask, on_obtained, q);
}

/* ---- one context, by its id ------------------------------------------------------------------ */

static void on_row(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;

    if (reply_came(q, a))
        reply_context(q, a->row);
}

static bool begin(struct e2b_req *q)
{
    if (!check_id(q))
        return false;
    e2b_wait(q);
    return true;
}

void v1_context_get(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (begin(q))
        context_get(q->front, q->tenant.id, q->id, on_row, q);
}

void v1_context_end(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (begin(q))
        context_terminate(q->front, q->tenant.id, q->id, on_row, q);
}

static void on_touched(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;

    if (e2b_back(q) && reply_usable_active(q, a))
        reply_context(q, a->row);
}

void v1_context_touch(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "ttlSeconds");
    uint64_t ttl_ms = check_ttl(q);
    if (e2b_read(q) && begin(q))
        context_touch(q->front, q->tenant.id, q->id, ttl_ms, on_touched, q);
}
