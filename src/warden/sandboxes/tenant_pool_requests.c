/* Requests of a tenant pool. */
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/tenant_pool_impl.h"
#include "warden/server.h"

/* ---- the spawner ----------------------------------------------------------------------------- */

struct tenant_pool_request *requests_next(struct tenant_pool *w)
{
    return LIST_POP(struct tenant_pool_request, &w->requests, link);
}

void requests_break(struct tenant_pool *w)
{
    if (w->spawner_gone)
        return;
    w->broken = w->spawner_gone = true;
    helper_ended(w, PROCESS_SPAWNER);
}

int requests_ask(struct tenant_pool *w, struct sg_error *e)
{
    struct start *b = NEW(struct start, .tenant_pool = w, .line.fd = -1);
    int r = OPS(w->provider)->begin(w->provider, &b->instance, e);

    if (r < 0) {
        free(b);
        return r;
    }
    w->asked = b;
    return 0;
}

void requests_push(struct tenant_pool *w)
{
    struct loop *l = &w->server->loop;
    struct sg_error e = {0};

    while (!w->asked && !list_empty(&w->requests) && !w->broken && requests_ask(w, &e) < 0) {
        struct tenant_pool_request *q = requests_next(w);
        q->done(q->arg, NULL, &e);
    }
    if (w->spawner.fd < 0 && !w->broken)
        loop_watch(l, &w->spawner, OPS(w->provider)->fd(w->provider), EPOLLIN);
    if (filling_is_wanted(w))
        loop_want_idle(l);
}

void requests_go_on(struct tenant_pool *w)
{
    struct start *b = steal_ptr(&w->asked);
    struct tenant_pool_request *q = requests_next(w);
    struct sg_error e = {0};
    int r;

    b->owner = q;
    if (q) {
        b->snapshot = q->snapshot ? snapshot_use(q->snapshot) : NULL;
        b->limits = q->limits;
    } else {
        filling_decide(b);
    }
    r = start_go_on(b, &e);
    if (r == -EPIPE) {
        requests_break(w);
        if (q) { /* it goes on waiting, and moves to the tenant's next pool */
            b->owner = NULL;
            list_push(&w->requests, &q->link);
        }
    }
    if (r < 0)
        start_fail(b, &e);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* How well a start suits a request. A ready sandbox with a kernel is best, or, for a request that
 * wants no kernel, a ready one without: those with a kernel are left to others. */
static int readiness(const struct start *b, const struct tenant_pool_request *q)
{
    return b->ready + (b->ready && b->fed != q->bare);
}

static struct start *best_for(struct tenant_pool *w, const struct tenant_pool_request *q)
{
    struct start *best = NULL;

    LIST_EACH(struct start, b, &w->starts, link)
        if (!b->owner && start_fits(b, q) && (!best || readiness(b, q) > readiness(best, q)))
            best = b;
    return best;
}

struct instance *tenant_pool_take(struct tenant_pool *w, const struct sg_limits *limits)
{
    struct tenant_pool_request like = {.limits = *limits, .bare = true};
    struct start *b = best_for(w, &like);
    struct instance *i;

    if (!b || !b->ready || kernel_pending(b->instance))
        return NULL;
    i = b->instance;
    filling_count(w, &like);
    filling_pause(w, true);
    start_free(b);
    w->n_out++;
    requests_push(w);
    return i;
}

void tenant_pool_request(struct tenant_pool *w, struct tenant_pool_request *q)
{
    struct start *best = best_for(w, q);

    filling_count(w, q);
    if (best && best->ready) {
        filling_pause(w, q->bare);
        q->pooled = true;
        start_hand_over(best, q);
    } else if (best) {
        best->owner = q;
    } else {
        list_append(&w->requests, &q->link);
    }
    requests_push(w);
}

void tenant_pool_return(struct tenant_pool *w)
{
    w->n_out--;
    w->idle_since_ns = clock_ns();
    requests_push(w);
}
