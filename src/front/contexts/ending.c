/* Ends contexts on request: one context, a path that is merged into another, or all of a
 * conversation. It also has the other operations on a row by its id. */
#include <string.h>

#include "lib/base/clock.h"
#include "front/contexts/impl.h"

/* A request about one row. */
struct about {
    struct front *front;
    char tenant[ID_LEN + 1], id[ID_LEN + 1];
    uint64_t ttl_ms;
    /* of a merge */
    char conversation[CTX_NAME_MAX + 1], source[CTX_NAME_MAX + 1], target[CTX_NAME_MAX + 1];
    struct ctx_row row;
    struct operation operation; /* of a terminate or merge */
    context_done done;
    void *arg;
};

static struct about *about_new(struct front *f, const char *tenant, const char *id,
                               context_done done, void *arg)
{
    struct about *a = NEW(struct about, .front = f, .done = done, .arg = arg);

    snprintf(a->tenant, sizeof(a->tenant), "%s", tenant);
    snprintf(a->id, sizeof(a->id), "%s", id);
    return a;
}

static void about_end(struct about *a, const struct context_answer *answer)
{
    operation_end(&a->operation, a->front, NULL, answer->r, answer->e, NULL);
    a->done(a->arg, answer);
    free(a);
}

static void about_fail(struct about *a, const struct ctx_reply *reply)
{
    about_end(a, &(struct context_answer){.r = reply->r, .e = &reply->e});
}

static void on_row(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (reply->r < 0)
        about_fail(a, reply);
    else
        about_end(a, &(struct context_answer){.row = &reply->rows[0]});
}

void context_get(struct front *f, const char *tenant, const char *id, context_done done, void *arg)
{
    ctx_call(f->contexts->store, get, tenant, id, on_row, about_new(f, tenant, id, done, arg));
}

/* Returns the row if this server is to handle it. Otherwise the request is answered here, and NULL
 * is returned. */
static const struct ctx_row *ours(struct about *a, const struct ctx_reply *reply)
{
    struct context_answer answer = {0};
    struct sg_error e;

    if (reply->r < 0) {
        about_fail(a, reply);
        return NULL;
    }
    const struct ctx_row *row = &reply->rows[0];
    bool active = row->status == CTX_CREATING || row->status == CTX_READY;
    if (active && context_is_elsewhere(a->front, row, &answer, &e)) {
        about_end(a, &answer);
        return NULL;
    }
    return row;
}

/* ---- touch ----------------------------------------------------------------------------------- */

static void on_touched(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (reply->r < 0) {
        about_fail(a, reply);
        return;
    }
    const struct ctx_row *row = &reply->rows[0];
    struct context *c = contexts_find(a->front, row->tenant, row->conversation, row->path);
    if (c && strcmp(c->row.id, row->id) == 0) {
        c->row = *row;
        c->told_ns = clock_ns();
        context_move_deadline(c);
    }
    about_end(a, &(struct context_answer){.row = row});
}

static void on_seen_to_touch(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (ours(a, reply))
        ctx_call(a->front->contexts->store, touch, a->tenant, a->id, a->ttl_ms, on_touched, a);
}

void context_touch(struct front *f, const char *tenant, const char *id, uint64_t ttl_ms,
                   context_done done, void *arg)
{
    struct about *a = about_new(f, tenant, id, done, arg);

    a->ttl_ms = ttl_ms;
    ctx_call(f->contexts->store, get, tenant, id, on_seen_to_touch, a);
}

/* ---- terminate ------------------------------------------------------------------------------- */

/* The answer waits for the sandbox's end, so that the client can count on its memory being free. */
static void on_sandbox_gone(void *arg, struct sandbox *b UNUSED, int r UNUSED,
                            const struct sg_error *e UNUSED)
{
    struct about *a = arg;

    about_end(a, &(struct context_answer){.row = a->row.id[0] ? &a->row : NULL});
}

static void on_terminated(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (reply->r < 0) {
        about_fail(a, reply);
        return;
    }
    if (reply->n > 0)
        a->row = reply->rows[0];
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&a->operation.trace);
    if (reply->n > 0) {
        operation_context(&a->operation, a->row.tenant, a->row.conversation, a->row.path,
                          a->row.id);
        context_tell(a->front, HAPPENED_CONTEXT_ENDED, &a->row, "terminated");
    }
    context_end_sandbox(a->front, &a->row, on_sandbox_gone, a);
}

static void on_seen_to_end(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (ours(a, reply))
        ctx_call(a->front->contexts->store, terminate, a->tenant, a->id, on_terminated, a);
}

void context_terminate(struct front *f, const char *tenant, const char *id, context_done done,
                       void *arg)
{
    struct about *a = about_new(f, tenant, id, done, arg);

    operation_begin(&a->operation, OPERATION_CONTEXT_TERMINATE);
    ctx_call(f->contexts->store, get, tenant, id, on_seen_to_end, a);
}

/* ---- merge ----------------------------------------------------------------------------------- */

static void on_source(void *arg, const struct ctx_reply *reply)
{
    struct about *a = arg;

    if (reply->r < 0)
        about_fail(a, reply);
    else if (reply->n == 0 || ours(a, reply))
        ctx_call(a->front->contexts->store, merge, a->tenant, a->conversation, a->source, a->target,
                 on_terminated, a);
}

void context_merge(struct front *f, const char *tenant, const char *conversation,
                   const char *source, const char *target, context_done done, void *arg)
{
    struct about *a = about_new(f, tenant, "", done, arg);
    struct ctx_list q = {.tenant = tenant,
                         .conversation = conversation,
                         .path = source,
                         .statuses = CTX_ACTIVE,
                         .limit = 1};

    operation_begin(&a->operation, OPERATION_CONTEXT_TERMINATE);
    snprintf(a->conversation, sizeof(a->conversation), "%s", conversation);
    snprintf(a->source, sizeof(a->source), "%s", source);
    snprintf(a->target, sizeof(a->target), "%s", target);
    ctx_call(f->contexts->store, list, &q, on_source, a);
}

/* ---- cleanup --------------------------------------------------------------------------------- */

struct cleanup {
    struct front *front;
    char tenant[ID_LEN + 1];
    char conversation[CTX_NAME_MAX + 1]; /* "": all expired contexts */
    size_t ended, pending;
    bool more;
    int r; /* the first error */
    struct sg_error e;
    context_counted done;
    void *arg;
};

static void cleanup_turn(struct cleanup *c);

static void cleanup_end(struct cleanup *c, int r, const struct sg_error *e)
{
    c->done(c->arg, r, e, c->ended);
    free(c);
}

static void on_one_gone(void *arg, struct sandbox *b UNUSED, int r UNUSED,
                        const struct sg_error *e UNUSED)
{
    struct cleanup *c = arg;

    if (--c->pending > 0)
        return;
    if (c->r == 0 && c->more)
        cleanup_turn(c);
    else
        cleanup_end(c, c->r, &c->e);
}

static void on_swept(void *arg)
{
    struct cleanup *c = arg;

    c->pending = 1;
    on_one_gone(c, NULL, 0, NULL);
}

static void on_expired(void *arg, const struct ctx_reply *reply)
{
    struct cleanup *c = arg;

    if (reply->r < 0) {
        cleanup_end(c, reply->r, &reply->e);
        return;
    }
    c->more = reply->n >= c->front->settings.reap_batch;
    c->ended += reply->n;
    context_end_sandboxes(c->front, reply->rows, reply->n, on_swept, c);
}

static void on_one_ended(void *arg, const struct ctx_reply *reply)
{
    struct cleanup *c = arg;

    if (reply->r == 0 && reply->n > 0) {
        c->ended++;
        context_tell(c->front, HAPPENED_CONTEXT_ENDED, &reply->rows[0], "cleaned up");
        /* A sandbox on another server is ended by that server when it next reads the row. */
        context_end_sandbox(c->front, &reply->rows[0], on_one_gone, c);
        return;
    }
    if (reply->r < 0 && c->r == 0) {
        c->r = reply->r;
        c->e = reply->e;
    }
    on_one_gone(c, NULL, 0, NULL);
}

static void on_conversation(void *arg, const struct ctx_reply *reply)
{
    struct cleanup *c = arg;

    if (reply->r < 0) {
        cleanup_end(c, reply->r, &reply->e);
        return;
    }
    c->more = reply->more;
    c->pending = reply->n + 1;
    for (size_t i = 0; i < reply->n; i++)
        ctx_call(c->front->contexts->store, terminate, c->tenant, reply->rows[i].id, on_one_ended,
                 c);
    on_one_gone(c, NULL, 0, NULL);
}

static void cleanup_turn(struct cleanup *c)
{
    struct contexts *t = c->front->contexts;
    struct sg_error e;

    if (!c->conversation[0] && !reaper_uses_told(c->front)) {
        int r = err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                        "the store is not up to date about which contexts are in use: try again");
        cleanup_end(c, r, &e);
        return;
    }
    if (!c->conversation[0]) {
        ctx_call(t->store, expire, t->node, c->tenant, CONTEXT_STUCK_MS,
                 c->front->settings.reap_batch, on_expired, c);
        return;
    }
    struct ctx_list q = {.tenant = c->tenant,
                         .conversation = c->conversation,
                         .statuses = CTX_ACTIVE,
                         .limit = CTX_LIST_MAX};
    ctx_call(t->store, list, &q, on_conversation, c);
}

void context_cleanup(struct front *f, const char *tenant, const char *conversation,
                     context_counted done, void *arg)
{
    struct cleanup *c = NEW(struct cleanup, .front = f, .done = done, .arg = arg);

    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    snprintf(c->conversation, sizeof(c->conversation), "%s", conversation ? conversation : "");
    cleanup_turn(c);
}
