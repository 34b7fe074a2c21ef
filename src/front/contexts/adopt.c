/* Makes a candidate (explore.c) the sandbox of its context. This goes the same way as any request
 * for the path's sandbox: others who ask for the path meanwhile wait, and get the new sandbox. */
#include <string.h>

#include "front/contexts/impl.h"

#define ATTEMPTS_MAX 5 /* others may have asked for the path and been answered first */

struct adopting {
    struct front *front;
    struct store_tenant tenant;
    char candidate[ID_LEN + 1];
    struct ctx_row row;
    struct sandbox *sandbox;
    unsigned attempts;
    context_done done;
    void *arg;
};

static void try_it(struct adopting *a);

static void finish(struct adopting *a, const struct context_answer *answer)
{
    a->done(a->arg, answer);
    sandbox_unref(a->sandbox);
    free(a);
}

static void fail(struct adopting *a, int r, enum sg_error_kind kind, const char *text)
{
    struct sg_error e;

    err_set(&e, kind, r, "%s", text);
    finish(a, &(struct context_answer){.r = r, .e = &e});
}

/* Takes the adopted candidate out of its exploration, and ends the other candidates. */
static void settle_in(struct adopting *a)
{
    struct exploration *x = exploration_of(a->sandbox);

    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        if (x->sandboxes[i] == a->sandbox)
            sandbox_unref(steal_ptr(&x->sandboxes[i]));
    exploration_keep(x, 0);
}

static void on_obtained(void *arg, const struct context_answer *answer)
{
    struct adopting *a = arg;

    if (answer->r < 0 || answer->elsewhere) {
        finish(a, answer);
    } else if (answer->sandbox == a->sandbox) {
        settle_in(a);
        finish(a, answer);
    } else if (a->sandbox->state != SANDBOX_RUNNING) {
        fail(a, -ENOMSG, SG_ERR_NOT_FOUND, "the candidate has ended");
    } else if (++a->attempts < ATTEMPTS_MAX) {
        try_it(a);
    } else {
        fail(a, -EAGAIN, SG_ERR_LIMIT, "other requests keep changing the path: try again");
    }
}

static void try_it(struct adopting *a)
{
    struct context_ask ask = {.tenant = &a->tenant,
                              .conversation = a->row.conversation,
                              .path = a->row.path,
                              .bring = a->sandbox};

    context_obtain(a->front, &ask, on_obtained, a);
}

static void on_touched(void *arg, const struct context_answer *answer)
{
    struct adopting *a = arg;

    if (answer->r < 0 || answer->elsewhere) {
        finish(a, answer);
        return;
    }
    a->row = *answer->row;
    struct sandbox *b = sandbox_get(a->front, a->tenant.id, a->candidate);
    struct exploration *x = b ? exploration_of(b) : NULL;
    if (!x || !x->kept || strcmp(x->context, a->row.id) != 0) {
        fail(a, -ENOMSG, SG_ERR_NOT_FOUND, "the context has no such candidate, or it has ended");
        return;
    }
    a->sandbox = sandbox_ref(b);
    b->spec.auto_pause = x->auto_pause; /* the note is sent with its next deadline */
    try_it(a);
}

void context_adopt(struct front *f, const struct store_tenant *tenant, const char *id,
                   const char *candidate, context_done done, void *arg)
{
    struct adopting *a =
        NEW(struct adopting, .front = f, .tenant = *tenant, .done = done, .arg = arg);

    snprintf(a->candidate, sizeof(a->candidate), "%s", candidate);
    context_touch(f, tenant->id, id, 0, on_touched, a);
}
