/* The checkpoints of a context, and the rewind to one of them. */
#include "front/e2b/checkpoints.h"
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
    checkpoints_put(reply_begin(&r, REPLY_LONG_MAX), a->sandbox);
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

    if (!e2b_back(q) || !reply_usable_active(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_LONG_MAX);
    shape_context(jw_key(j, "context"), a->row);
    checkpoint_put(jw_key(j, "checkpoint"), a->checkpoint);
    report_put(j, a->report);
    reply_send(q, 200, &r);
}

void v1_rewind(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct context_from to = {0};

    check_body(q, "accept", "checkpointId", "messageId");
    to.message = check_name(q, "messageId", false);
    to.checkpoint = check_checkpoint(q);
    to.files_do = checkpoint_accept_field(&q->in);
    if (!to.message == !to.checkpoint)
        field_wrong(&q->in, "give one of 'checkpointId' and 'messageId'");
    if (!e2b_read(q) || !check_id(q))
        return;
    e2b_wait(q);
    context_rewind(q->front, q->tenant.id, q->id, &to, on_rewound, q);
}
