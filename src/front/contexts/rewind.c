/* Rewinds a context to a checkpoint, and finds the sandbox whose checkpoints are listed.
 *
 *   the row is touched --> its sandbox, woken if needed --> sandbox_rewind --> answered
 *
 * The sandbox stays the same one, so the store only hears that it was used. */
#include <string.h>

#include "front/contexts/impl.h"

/* ---- rewind ---------------------------------------------------------------------------------- */

struct rewinding {
    struct front *front;
    char message[CTX_NAME_MAX + 1], checkpoint[ID_LEN + 1]; /* one of them is "" */
    bool files_do;
    struct ctx_row row;
    struct sandbox *sandbox; /* held */
    struct operation operation;
    context_done done;
    void *arg;
};

static void finish(struct rewinding *x, const struct context_answer *a)
{
    operation_end(&x->operation, x->front, x->sandbox, a->r, a->e, NULL);
    x->done(x->arg, a);
    if (x->sandbox)
        context_release(x->sandbox);
    free(x);
}

static void on_rewound(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                       const json_t *report)
{
    struct rewinding *x = arg;

    if (r == 0 && x->sandbox->context)
        x->sandbox->context->unmarked[0] = '\0'; /* the message can begin again */
    finish(x, &(struct context_answer){.r = r,
                                       .e = e,
                                       .row = &x->row,
                                       .sandbox = x->sandbox,
                                       .report = report,
                                       .checkpoint = r == 0 ? c : NULL});
}

static void on_ready(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct rewinding *x = arg;
    struct checkpoint *c = NULL;
    struct sg_error wrong;

    if (r == 0) {
        r = context_checkpoint(b, x->message[0] ? x->message : NULL, x->checkpoint, &c, &wrong);
        e = &wrong;
    }
    if (r < 0) {
        on_rewound(x, NULL, r, e, NULL);
        return;
    }
    operation_sandbox(&x->operation, b);
    AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&x->operation.trace);
    sandbox_rewind(b, c, x->files_do, on_rewound, x);
}

static void on_touched(void *arg, const struct context_answer *a)
{
    struct rewinding *x = arg;
    struct sg_error e;

    if (a->r < 0 || a->elsewhere) {
        finish(x, a);
        return;
    }
    x->row = *a->row;
    struct sandbox *b = sandbox_get(x->front, x->row.tenant, x->row.sandbox_id);
    if (!b || strcmp(b->spec.context, x->row.id) != 0) {
        int r = err_set(&e, SG_ERR_GONE, -ESTALE,
                        "the sandbox of this context is gone, and its checkpoints with it");
        finish(x, &(struct context_answer){.r = r, .e = &e});
        return;
    }
    context_hold(b);
    x->sandbox = b;
    context_when_ready(b, on_ready, x);
}

void context_rewind(struct front *f, const char *tenant, const char *id,
                    const struct context_from *to, context_done done, void *arg)
{
    struct rewinding *x =
        NEW(struct rewinding, .front = f, .files_do = to->files_do, .done = done, .arg = arg);

    snprintf(x->message, sizeof(x->message), "%s", to->message ? to->message : "");
    snprintf(x->checkpoint, sizeof(x->checkpoint), "%s", to->checkpoint ? to->checkpoint : "");
    operation_begin(&x->operation, OPERATION_CONTEXT_REWIND);
    context_touch(f, tenant, id, 0, on_touched, x);
}

/* ---- looking at checkpoints ------------------------------------------------------------------ */

struct looking {
    struct front *front;
    context_done done;
    void *arg;
};

static void on_seen(void *arg, const struct ctx_reply *reply)
{
    AUTO(free_p) struct looking *x = arg;
    struct context_answer a = {.r = reply->r, .e = &reply->e};
    struct sg_error e;

    if (reply->r < 0) {
        x->done(x->arg, &a);
        return;
    }
    const struct ctx_row *row = a.row = &reply->rows[0];
    bool active = row->status == CTX_CREATING || row->status == CTX_READY;
    if (active && !context_is_elsewhere(x->front, row, &a, &e)) {
        struct sandbox *b = sandbox_get(x->front, row->tenant, row->sandbox_id);
        a.sandbox = b && strcmp(b->spec.context, row->id) == 0 ? b : NULL;
    }
    x->done(x->arg, &a);
}

void context_look(struct front *f, const char *tenant, const char *id, context_done done, void *arg)
{
    struct looking *x = NEW(struct looking, .front = f, .done = done, .arg = arg);

    ctx_call(f->contexts->store, get, tenant, id, on_seen, x);
}
