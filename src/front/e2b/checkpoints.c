/* Takes, lists and deletes the checkpoints of a sandbox, and rewinds it to one of them. */
#include "front/e2b/checkpoints.h"

#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/core/checkpoint.h"

#define ANSWER_MAX (4u * 1024 * 1024)

bool checkpoint_accept_field(struct fields *in)
{
    const char *text = field_text(in, "accept", SIZE_MAX, NULL);

    if (text && strcmp(text, "files") != 0)
        field_wrong(in, "'accept' can be \"files\" only");
    return text != NULL;
}

void checkpoint_failed(struct e2b_req *q, int r, const struct sg_error *e, const json_t *report)
{
    if (e->kind == SG_ERR_NOT_FOUND)
        e2b_failed(q, e);
    else
        reply_fork_error(q->http, r, e, report);
}

/* The checkpoint stays even if nobody waits: the list has it. */
static void answer(struct e2b_req *q, int status, const struct checkpoint *c, int r,
                   const struct sg_error *e, const json_t *report)
{
    struct reply reply;

    if (!e2b_back(q))
        return;
    if (r < 0) {
        checkpoint_failed(q, r, e, report);
        return;
    }
    struct json *j = reply_begin(&reply, ANSWER_MAX);
    checkpoint_put(jw_key(j, "checkpoint"), c);
    report_put(j, report);
    reply_send(q, status, &reply);
}

/* The sandbox that the path names, if it runs. NULL: answered. */
static struct sandbox *running_sandbox(struct e2b_req *q)
{
    struct sandbox *b = e2b_sandbox(q);

    if (b && shape_is_paused(b)) {
        reply_error(q->http, 409, "Sandbox '%s' is paused; resume it first", b->id);
        return NULL;
    }
    return b;
}

/* ---- take ------------------------------------------------------------------------------------ */

static void on_taken(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                     const json_t *report)
{
    answer(arg, 201, c, r, e, report);
}

void checkpoint_create(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct checkpoint_ask ask = {.kind = CHECKPOINT_LABEL};
    struct sandbox *b = running_sandbox(q);

    ask.label = field_text(&q->in, "label", CHECKPOINT_LABEL_MAX, NULL);
    ask.wait_ms = checkpoint_wait_field(&q->in);
    if (!b || !e2b_read(q))
        return;
    e2b_wait(q);
    sandbox_checkpoint(b, &ask, on_taken, q);
}

/* ---- list, delete ---------------------------------------------------------------------------- */

static bool put_one(struct checkpoint *c, void *arg)
{
    checkpoint_put(arg, c);
    return true;
}

void checkpoints_put(struct json *j, struct sandbox *b)
{
    jw_array_begin(jw_key(j, "checkpoints"));
    if (b)
        checkpoints_each(b->front, b->id, put_one, j);
    jw_array_end(j);
}

void checkpoint_list(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    struct reply r;

    if (!b)
        return;
    checkpoints_put(reply_begin(&r, ANSWER_MAX), b);
    reply_send(q, 200, &r);
}

/* Finds the sandbox's checkpoint by name or label. NULL: answered, 410 for one that was thinned
 * away. */
static struct checkpoint *find(struct e2b_req *q, const struct sandbox *b, const char *name,
                               const char *label)
{
    struct checkpoint *c = name ? checkpoint_find(q->front, q->tenant.id, name)
                                : checkpoint_labelled(q->front, b->id, label);
    const char *text = name ? name : label;

    if (c && c->kind == CHECKPOINT_LABEL && strcmp(c->sandbox_id, b->id) == 0)
        return c;
    if (checkpoint_was_thinned(q->front, b->id, text))
        reply_error(q->http, 410,
                    "checkpoint '%.64s' was thinned out: GET /sandboxes/%s/checkpoints lists those "
                    "that are left",
                    text, b->id);
    else
        reply_error(q->http, 404, "Sandbox '%s' has no checkpoint '%.64s'", b->id, text);
    return NULL;
}

void checkpoint_delete(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    struct checkpoint *c = b ? find(q, b, req->params[1], NULL) : NULL;

    if (!c)
        return;
    checkpoint_forget(c);
    reply_empty(req, 204);
}

/* ---- rewind ---------------------------------------------------------------------------------- */

static void on_rewound(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                       const json_t *report)
{
    answer(arg, 200, c, r, e, report);
}

void e2b_sandbox_rewind(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = running_sandbox(q);
    const char *name = field_text(&q->in, "checkpointId", CHECKPOINT_LABEL_MAX, NULL);
    const char *label = field_text(&q->in, "label", CHECKPOINT_LABEL_MAX, NULL);

    /* "" would find the checkpoints without a label. */
    if (label && !label[0])
        field_wrong(&q->in, "'label' is empty");
    if (!name == !label)
        field_wrong(&q->in, "give one of 'checkpointId' and 'label'");
    bool files_do = checkpoint_accept_field(&q->in);
    struct checkpoint *c = b && e2b_read(q) ? find(q, b, name, label) : NULL;
    if (!c)
        return;
    e2b_wait(q);
    sandbox_rewind(b, c, files_do, on_rewound, q);
}
