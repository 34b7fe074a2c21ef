/* Waits until something can be done to a sandbox as a whole: it runs, and no transition is under
 * way. */
#include <string.h>

#include "front/contexts/impl.h"

struct readying {
    struct sandbox *sandbox;
    sandbox_done done;
    void *arg;
};

static void end(struct readying *x, int r, const struct sg_error *e)
{
    x->done(x->arg, x->sandbox, r, e);
    sandbox_unref(x->sandbox);
    free(x);
}

static void look(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct readying *x = arg;
    bool runs = b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING;
    struct sg_error gone;

    if (b->state == SANDBOX_ENDED) {
        err_set(&gone, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended");
        end(x, -ENOENT, &gone);
    } else if (r < 0 && r != -EALREADY) {
        end(x, r, e);
    } else if (!runs) {
        sandbox_resume(b, true, b->spec.timeout_ms, look, x);
    } else if (b->busy != BUSY_NO) {
        sandbox_when_settled(b, look, x);
    } else {
        end(x, 0, NULL);
    }
}

void context_when_ready(struct sandbox *b, sandbox_done done, void *arg)
{
    struct readying *x = NEW(struct readying, .sandbox = sandbox_ref(b), .done = done, .arg = arg);

    look(x, b, 0, NULL);
}
