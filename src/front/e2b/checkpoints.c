/* Takes, lists and deletes the checkpoints of a sandbox, and rewinds it to one of them. */
#include "front/e2b/checkpoints.h"

#include "front/e2b/field.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/core/checkpoint.h"

#define ANSWER_MAX (4u * 1024 * 1024)

int checkpoint_wait_field(const json_t *body, uint64_t *ret_ms, struct sg_error *e)
{
    int32_t ms = 0;
    bool given;
    int r = field_int(body, "waitMs", &given, &ms, e);

    if (r < 0)
        return r;
    if (ms < 0 || ms > CHECKPOINT_WAIT_MAX_MS)
        return err_set(e, SG_ERR_INVALID, -ERANGE, FIELD_ERROR "'waitMs' must be from 0 to %d",
                       CHECKPOINT_WAIT_MAX_MS);
    *ret_ms = (uint64_t)ms;
    return 0;
}

int checkpoint_accept_field(const json_t *body, bool *ret_files_do, struct sg_error *e)
{
    const char *text = NULL;
    int r = field_string(body, "accept", SIZE_MAX, &text, e);

    *ret_files_do = r == 0 && text && strcmp(text, "files") == 0;
    if (r == 0 && text && !*ret_files_do)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'accept' can be \"files\" only");
    return r;
}

/* {"checkpoint": {...}, "kernels": [...]} */
static void reply_checkpoint(struct e2b_req *q, int status, const struct checkpoint *c,
                             const json_t *report)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    strbuf_init(&out, ANSWER_MAX);
    jw_init(&j, &out);
    jw_object_begin(&j);
    jw_key(&j, "checkpoint");
    checkpoint_put(&j, c);
    report_put(&j, report);
    jw_object_end(&j);
    reply_json(q->http, status, &out);
}

static void reply_failed(struct e2b_req *q, int r, const struct sg_error *e, const json_t *report)
{
    if (e->kind == SG_ERR_NOT_FOUND)
        e2b_failed(q, e);
    else
        reply_fork_error(q->http, r, e, report);
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
    struct e2b_req *q = arg;

    /* The checkpoint stays even if nobody waits: the list has it. */
    if (!e2b_back(q))
        return;
    if (r < 0)
        reply_failed(q, r, e, report);
    else
        reply_checkpoint(q, 201, c, report);
}

static void take_with_body(struct e2b_req *q)
{
    struct checkpoint_ask ask = {.kind = CHECKPOINT_LABEL};
    struct sandbox *b = running_sandbox(q);
    struct sg_error e;

    if (!b)
        return;
    int r = field_string(q->body, "label", CHECKPOINT_LABEL_MAX, &ask.label, &e);
    if (r == 0)
        r = checkpoint_wait_field(q->body, &ask.wait_ms, &e);
    if (r < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    sandbox_checkpoint(b, &ask, on_taken, q);
}

void checkpoint_create(struct http_req *req)
{
    e2b_with_body(req, take_with_body);
}

/* ---- list, delete ---------------------------------------------------------------------------- */

static bool put_one(struct checkpoint *c, void *arg)
{
    checkpoint_put(arg, c);
    return true;
}

void checkpoint_list(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    struct json j;

    if (!b)
        return;
    strbuf_init(&out, ANSWER_MAX);
    jw_init(&j, &out);
    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "checkpoints"));
    checkpoints_each(q->front, b->id, put_one, &j);
    jw_array_end(&j);
    jw_object_end(&j);
    reply_json(req, 200, &out);
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
    struct e2b_req *q = arg;

    if (!e2b_back(q))
        return;
    if (r < 0)
        reply_failed(q, r, e, report);
    else
        reply_checkpoint(q, 200, c, report);
}

static void rewind_with_body(struct e2b_req *q)
{
    const char *name = NULL, *label = NULL;
    struct sandbox *b = running_sandbox(q);
    struct checkpoint *c;
    struct sg_error e;
    bool files_do;

    if (!b)
        return;
    int r = field_string(q->body, "checkpointId", CHECKPOINT_LABEL_MAX, &name, &e);
    if (r == 0)
        r = field_string(q->body, "label", CHECKPOINT_LABEL_MAX, &label, &e);
    /* "" would find the checkpoints without a label. */
    if (r == 0 && label && !label[0])
        r = err_set(&e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'label' is empty");
    if (r == 0 && !name == !label)
        r = err_set(&e, SG_ERR_INVALID, -EINVAL,
                    FIELD_ERROR "give one of 'checkpointId' and 'label'");
    if (r == 0)
        r = checkpoint_accept_field(q->body, &files_do, &e);
    if (r < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    c = find(q, b, name, label);
    if (!c)
        return;
    e2b_wait(q);
    sandbox_rewind(b, c, files_do, on_rewound, q);
}

void e2b_sandbox_rewind(struct http_req *req)
{
    e2b_with_body(req, rewind_with_body);
}
