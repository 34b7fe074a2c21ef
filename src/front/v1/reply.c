#include "front/v1/reply.h"

#include "front/v1/shape.h"
#include "front/e2b/checkpoints.h"

void reply_failed(struct e2b_req *q, int r, const struct sg_error *e)
{
    if (r == -EEXIST)
        reply_error(q->http, 409, "%s", e->message);
    else if (r == -ENOENT && q->id[0])
        reply_no_context(q, q->id);
    else
        reply_sg_error(q->http, e);
}

/* Answers 410, with a list of the checkpoints that are still there. */
static void reply_thinned(struct e2b_req *q, const struct context_answer *a)
{
    struct reply r;
    struct json *j = reply_begin(&r, REPLY_LONG_MAX);

    jw_i64(jw_key(j, "code"), 410);
    shape_text_key(j, "message", a->e->message);
    reply_put_fault(q->http, j, 410, a->e->message);
    checkpoints_put(j, a->sandbox);
    reply_send(q, 410, &r);
}

bool reply_usable(struct e2b_req *q, const struct context_answer *a)
{
    if (a->r == -ESTALE)
        reply_thinned(q, a);
    else if (a->r == -EBUSY || a->r == -EOWNERDEAD)
        reply_fork_error(q->http, a->r, a->e, a->report);
    else if (a->r < 0)
        reply_failed(q, a->r, a->e);
    else if (a->elsewhere)
        reply_elsewhere(q->http, a->elsewhere);
    else
        return true;
    return false;
}

bool reply_usable_active(struct e2b_req *q, const struct context_answer *a)
{
    if (a->r != -ENOENT)
        return reply_usable(q, a);
    reply_error(q->http, 404, "Context \"%.64s\" has ended, or never existed", q->id);
    return false;
}

bool reply_came(struct e2b_req *q, const struct context_answer *a)
{
    return e2b_back(q) && reply_usable(q, a);
}

bool reply_came_of_store(struct e2b_req *q, const struct ctx_reply *reply)
{
    if (!e2b_back(q))
        return false;
    if (reply->r < 0)
        reply_failed(q, reply->r, &reply->e);
    return reply->r == 0;
}

void reply_context(struct e2b_req *q, const struct ctx_row *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(REPLY_MAX);
    struct json j = {.out = &out};

    shape_context(&j, row);
    reply_json(q->http, 200, &out);
}

void reply_no_context(struct e2b_req *q, const char *id)
{
    reply_error(q->http, 404, "Context \"%.64s\" doesn't exist or you don't have access to it", id);
}
