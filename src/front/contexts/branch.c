/* Makes a new path of a conversation, with nothing of its parent or with the state of the parent's
 * sandbox.
 *
 *   the parent's row --> its sandbox --> a checkpoint of it --> a context from that --> answered
 *          |                 |                                  ^
 *          |                 +-- a checkpoint was named --------+
 *          |
 *          +-- no sandbox: only the tree of paths is noted --> answered
 *
 * A checkpoint that is taken here is for this request alone: the new sandbox uses it up. If only
 * files are inherited, it has no kernels. If something is in the way of that checkpoint, or the
 * host cannot take it, the parent's files are saved as a snapshot instead, which is slower and
 * always works. */
#include <string.h>

#include "front/contexts/impl.h"

struct branching {
    struct front *front;
    struct store_tenant tenant;
    char conversation[CTX_NAME_MAX + 1], from[CTX_NAME_MAX + 1], to[CTX_NAME_MAX + 1];
    char template_id[CTX_TEMPLATE_MAX + 1]; /* the parent's */
    char message[CTX_NAME_MAX + 1];         /* "": none was named; at most one of these two is */
    char named[ID_LEN + 1];
    uint64_t ttl_ms, wait_ms;
    enum context_inherit inherit;
    bool files_do;
    char snapshot[ID_LEN + 1],
        checkpoint[ID_LEN + 1]; /* the new sandbox is made from one of these; or "" */
    bool used_up;               /* the checkpoint is for this branch alone */
    struct sandbox *parent;     /* held */
    struct operation operation;
    context_spec spec;
    context_done done;
    void *arg;
};

static void finish(struct branching *b, const struct context_answer *a)
{
    struct context_answer answer = *a;

    if (b->snapshot[0])
        sandbox_forget_snapshot(b->front, b->snapshot);
    /* No sandbox was made from the checkpoint after all: the path was taken, or a limit was
     * reached. */
    struct checkpoint *left =
        b->used_up ? checkpoint_find(b->front, b->tenant.id, b->checkpoint) : NULL;
    if (left)
        checkpoint_forget(left);
    /* A client that asked for files alone expects no kernels. */
    if (b->inherit == INHERIT_FILES)
        answer.report = NULL;
    if (!a->sandbox)
        b->operation.label = NULL; /* nothing was copied */
    operation_end(&b->operation, b->front, a->r < 0 ? NULL : a->sandbox, a->r, a->e, NULL);
    b->done(b->arg, &answer);
    if (b->parent)
        context_release(b->parent);
    free(b);
}

static void fail(struct branching *b, int r, const struct sg_error *e)
{
    finish(b, &(struct context_answer){.r = r, .e = e, .sandbox = b->parent});
}

/* ---- the new path's sandbox ------------------------------------------------------------------ */

static void on_made(void *arg, const struct context_answer *a)
{
    struct branching *b = arg;
    struct sg_error e;

    if (a->r == 0 && !a->created) {
        err_set(&e, SG_ERR_GONE, -EALREADY, "path '%.64s' was given a context by another request",
                b->to);
        fail(b, -EEXIST, &e);
        return;
    }
    finish(b, a);
}

/* The caller's spec, with the snapshot of the parent's files. */
static int spec_with_files(void *arg, const char *template_id, struct sandbox_spec *ret,
                           char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct branching *b = arg;
    int r = b->spec(b->arg, template_id ? template_id : b->template_id, ret, snapshot, e);

    if (r == 0)
        memcpy(snapshot, b->snapshot, sizeof(b->snapshot));
    return r;
}

static void make(struct branching *b)
{
    struct context_ask ask = {.tenant = &b->tenant,
                              .conversation = b->conversation,
                              .path = b->to,
                              .ttl_ms = b->ttl_ms,
                              .template_id = b->template_id,
                              .spec = spec_with_files,
                              .checkpoint = b->checkpoint[0] ? b->checkpoint : NULL,
                              .last = b->used_up,
                              .replay = b->inherit == INHERIT_REPLAY,
                              .files_do = b->files_do};

    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&b->operation.trace);
    context_obtain(b->front, &ask, on_made, b);
}

/* ---- the parent's state now ------------------------------------------------------------------ */

static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes UNUSED)
{
    struct branching *b = arg;

    if (r < 0) {
        b->snapshot[0] = '\0';
        fail(b, r, e);
    } else {
        make(b);
    }
}

static void save_files(void *arg, struct sandbox *parent, int r, const struct sg_error *e)
{
    struct branching *b = arg;

    if (r < 0) {
        fail(b, r, e);
        return;
    }
    id_random(b->snapshot);
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&b->operation.trace);
    sandbox_snapshot(parent, b->snapshot, false, on_saved, b);
}

static void on_checkpoint(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                          const json_t *report)
{
    struct branching *b = arg;

    if (r == 0) {
        memcpy(b->checkpoint, c->name, sizeof(b->checkpoint));
        b->used_up = true;
        make(b);
    } else if (b->inherit == INHERIT_FILES) {
        context_when_ready(b->parent, save_files, b);
    } else {
        finish(b, &(struct context_answer){.r = r, .e = e, .report = report});
    }
}

static void take(void *arg, struct sandbox *parent, int r, const struct sg_error *e)
{
    struct branching *b = arg;
    /* Not `one`: the new sandbox may get other limits than the parent. Then the fork start that was
     * begun ahead is of no use, and it must not have used up the frozen kernels. */
    struct checkpoint_ask ask = {
        .kind = CHECKPOINT_FORK, .wait_ms = b->wait_ms, .files_only = b->inherit == INHERIT_FILES};

    if (r < 0) {
        fail(b, r, e);
        return;
    }
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&b->operation.trace);
    sandbox_checkpoint(parent, &ask, on_checkpoint, b);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void on_noted(void *arg, const struct ctx_reply *reply)
{
    struct branching *b = arg;
    struct sg_error e;

    if (reply->r == -EEXIST) {
        err_set(&e, SG_ERR_GONE, -EALREADY,
                "path '%.64s' already has a context: end that first, or branch to another path",
                b->to);
        fail(b, -EEXIST, &e);
    } else if (reply->r < 0) {
        fail(b, reply->r, &reply->e);
    } else if (!b->parent) {
        finish(b, &(struct context_answer){0});
    } else if (b->checkpoint[0]) {
        make(b);
    } else {
        context_when_ready(b->parent, take, b);
    }
}

static void note(struct branching *b)
{
    ctx_call(b->front->contexts->store, branch, b->tenant.id, b->conversation, b->from, b->to,
             on_noted, b);
}

/* Finds the checkpoint that the client named, and notes its id. */
static int find_checkpoint(struct branching *b, struct sg_error *e)
{
    struct checkpoint *c;

    if (!b->parent)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOMSG,
                       "path '%.64s' has no sandbox now, and no checkpoints", b->from);
    int r = context_checkpoint(b->parent, b->message[0] ? b->message : NULL, b->named, &c, e);
    if (r == 0)
        memcpy(b->checkpoint, c->name, sizeof(b->checkpoint));
    return r;
}

static void on_parent(void *arg, const struct ctx_reply *reply)
{
    struct branching *b = arg;
    struct context_answer a = {0};
    struct sg_error e;
    int r = 0;

    if (reply->r < 0) {
        fail(b, reply->r, &reply->e);
        return;
    }
    const struct ctx_row *row = reply->n > 0 ? &reply->rows[0] : NULL;
    if (row && context_is_elsewhere(b->front, row, &a, &e)) {
        finish(b, &a);
        return;
    }
    struct sandbox *parent = row ? sandbox_get(b->front, b->tenant.id, row->sandbox_id) : NULL;
    /* Otherwise there is nothing to inherit: no sandbox, or the database names one of another
     * path. */
    if (parent && strcmp(parent->spec.context, row->id) == 0) {
        context_hold(parent);
        b->parent = parent;
        snprintf(b->template_id, sizeof(b->template_id), "%s", row->template_id);
    }
    if (b->message[0] || b->named[0])
        r = find_checkpoint(b, &e);
    if (r < 0)
        fail(b, r, &e);
    else
        note(b);
}

void context_branch(struct front *f, const struct context_ask *ask, const struct context_from *from,
                    context_done done, void *arg)
{
    struct ctx_store *s = f->contexts->store;
    struct branching *b =
        NEW(struct branching, .front = f, .tenant = *ask->tenant, .ttl_ms = ask->ttl_ms,
            .wait_ms = from->wait_ms, .inherit = from->inherit, .files_do = from->files_do,
            .spec = ask->spec, .done = done, .arg = arg);

    snprintf(b->conversation, sizeof(b->conversation), "%s", ask->conversation);
    snprintf(b->from, sizeof(b->from), "%s", from->path);
    snprintf(b->to, sizeof(b->to), "%s", ask->path);
    snprintf(b->message, sizeof(b->message), "%s", from->message ? from->message : "");
    snprintf(b->named, sizeof(b->named), "%s", from->checkpoint ? from->checkpoint : "");
    operation_begin(&b->operation, OPERATION_CONTEXT_BRANCH);
    operation_context(&b->operation, b->tenant.id, b->conversation, b->to, NULL);
    if (b->inherit == INHERIT_NONE) {
        b->operation.label = NULL; /* nothing is copied */
        note(b);
        return;
    }
    struct ctx_list q = {.tenant = b->tenant.id,
                         .conversation = b->conversation,
                         .path = b->from,
                         .statuses = 1u << CTX_READY,
                         .limit = 1};
    ctx_call(s, list, &q, on_parent, b);
}
