/* The checkpoints of a context, and the rewind to one of them. */
#include "front/e2b/checkpoints.h"
#include "front/e2b/field.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

static void on_looked(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct reply r;

    if (!reply_came(q, a))
        return;
    reply_put_checkpoints(reply_begin(&r, REPLY_LONG_MAX), a->sandbox);
    reply_send(q, 200, &r);
}

void v1_checkpoints(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (!check_id(q))
        return;
    e2b_wait(q);
    context_look(q->front, q->tenant.id, q->id, on_looked, q);
}

static void on_rewound(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct reply r;

    if (!e2b_back(q))
        return;
    if (a->r == -ENOENT)
        reply_ended(q);
    if (a->r == -ENOENT || !reply_usable(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_LONG_MAX);
    jw_key(j, "context");
    shape_context(j, a->row);
    jw_key(j, "checkpoint");
    checkpoint_put(j, a->checkpoint);
    report_put(j, a->report);
    reply_send(q, 200, &r);
}

static void rewind_context(struct e2b_req *q)
{
    static const char *const known[] = {"accept", "checkpointId", "messageId", "tenantId"};
    struct context_from to = {0};
    struct sg_error e;
    int r = check_body(q, known, ARRAY_SIZE(known), &e);

    if (r == 0)
        r = check_name(q->body, "messageId", false, &to.message, &e);
    if (r == 0)
        r = check_checkpoint(q, &to.checkpoint, &e);
    if (r == 0)
        r = checkpoint_accept_field(q->body, &to.files_do, &e);
    if (r == 0 && !to.message == !to.checkpoint)
        r = err_set(&e, SG_ERR_INVALID, -EINVAL,
                    FIELD_ERROR "give one of 'checkpointId' and 'messageId'");
    if (r < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    if (!check_id(q))
        return;
    e2b_wait(q);
    context_rewind(q->front, q->tenant.id, q->id, &to, on_rewound, q);
}

void v1_rewind(struct http_req *req)
{
    e2b_with_body(req, rewind_context);
}
