/* One start of a tenant pool. */
#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/recent_templates.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/tenant_pool_impl.h"
#include "warden/server.h"

#define START_S  15u
#define HOSTNAME "sandbox"

int tenant_pools_complete_limits(const struct server *s, struct sg_limits *l, struct sg_error *e)
{
    if (l->memory_bytes == 0)
        l->memory_bytes = s->settings.sandbox_memory;
    if (l->disk_bytes == 0)
        l->disk_bytes = s->settings.sandbox_disk;
    if (l->cpus_milli == 0)
        l->cpus_milli = s->settings.sandbox_cpus_milli;
    if (l->pids == 0)
        l->pids = s->settings.sandbox_pids;
    return limits_complete(l, l, e);
}

void tenant_pools_usual_limits(const struct server *s, struct sg_limits *ret)
{
    *ret = (struct sg_limits){0};
    tenant_pools_complete_limits(s, ret, NULL); /* settings have the bounds that limits have */
}

/* ---- the end of a start ---------------------------------------------------------------------- */

void start_free(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;

    loop_unwatch(&w->server->loop, &b->line);
    loop_timer_cancel(&w->server->loop, &b->timer);
    w->n_ready -= b->ready;
    list_remove(&b->link);
    snapshot_release(b->snapshot);
    free(b);
}

void start_end(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;
    struct instance *i = b->instance;

    start_free(b);
    w->n_out++;
    teardown_begin(w, i, NULL, NULL);
}

void start_refused(struct tenant_pool *w, const struct sg_error *e)
{
    log_line(LEVEL_WARN, "cannot make a sandbox for the pool: %s", e->message);
    w->refused_ns = clock_ns() + TENANT_POOL_SECOND_NS;
    if (e->code != -EDQUOT) /* that is its tenant's own limit */
        readiness_failed(w->server, e);
}

void start_fail(struct start *b, const struct sg_error *e)
{
    struct tenant_pool_request *owner = b->owner;

    if (!owner)
        start_refused(b->tenant_pool, e);
    start_end(b);
    if (owner)
        owner->done(owner->arg, NULL, e);
}

void start_hand_over(struct start *b, struct tenant_pool_request *to)
{
    struct instance *i = b->instance;

    b->tenant_pool->n_out++;
    start_free(b);
    to->done(to->arg, i, NULL);
}

/* ---- from the spawner's answer on ------------------------------------------------------------ */

bool start_fits(const struct start *b, const struct tenant_pool_request *q)
{
    return b->snapshot == q->snapshot && limits_equal(&b->limits, &q->limits);
}

bool start_is_wanted(const struct start *b)
{
    struct sg_limits usual;

    if (b->snapshot)
        return recent_want(b->tenant_pool, b->snapshot, &b->limits);
    tenant_pools_usual_limits(b->tenant_pool->server, &usual);
    return limits_equal(&b->limits, &usual);
}

/* Takes the first request that waits for a sandbox like this. */
static struct tenant_pool_request *take_fitting_request(const struct start *b)
{
    struct tenant_pool_request *q = LIST_FIND(struct tenant_pool_request, at,
                                              &b->tenant_pool->requests, link, start_fits(b, at));

    if (q)
        list_remove(&q->link);
    return q;
}

/* A sandbox that waited in the pool has died. */
static void on_ready_gone(struct loop_source *src, uint32_t events UNUSED)
{
    struct start *b = CONTAINER_OF(src, struct start, line);
    struct sg_error e = {.message = "a sandbox ended while it waited"};

    start_fail(b, &e);
}

static void on_word(struct loop_source *src, uint32_t events UNUSED)
{
    struct start *b = CONTAINER_OF(src, struct start, line);
    struct tenant_pool *w = b->tenant_pool;
    struct sg_error e = {0};
    int r = OPS(b->instance)->started(b->instance, &e);

    if (r == -EAGAIN)
        return;
    if (r < 0) {
        start_fail(b, &e);
        return;
    }
    readiness_proved(w->server);
    if (!b->owner)
        b->owner = take_fitting_request(b);
    if (b->owner) {
        start_hand_over(b, b->owner);
        return;
    }
    loop_timer_cancel(&w->server->loop, &b->timer);
    loop_unwatch(&w->server->loop, &b->line);
    b->line.fn = on_ready_gone;
    loop_watch(&w->server->loop, &b->line, OPS(b->instance)->process(b->instance), EPOLLIN);
    b->ready = true;
    w->n_ready++;
    if (start_is_wanted(b))
        loop_want_idle(&w->server->loop); /* to give it a kernel and a way out */
    else
        start_end(b); /* settings or templates have changed since it was begun */
}

static void on_late(struct loop_timer *timer)
{
    struct start *b = CONTAINER_OF(timer, struct start, timer);
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox did not start in %u s", START_S);
    start_fail(b, &e);
}

/* Without a scratch store a sandbox's files are in memory too. So its memory limit is the sum of both, and a
 * sandbox that fills its disk gets a disk that is full, and its programs are not killed for memory.
 */
static struct instance_spec spec_of(const struct start *b)
{
    struct instance_spec spec = {
        .limits = b->limits, .hostname = HOSTNAME, .line = true, .twins = true};

    if (!b->tenant_pool->server->scratch_store)
        spec.limits.memory_bytes += b->limits.disk_bytes;
    if (b->snapshot)
        spec.layer = snapshot_dir(b->snapshot);
    spec.world = snapshot_world(b->snapshot);
    return spec;
}

int start_go_on(struct start *b, struct sg_error *e)
{
    struct tenant_pool *w = b->tenant_pool;
    struct instance_spec spec = spec_of(b);
    uint64_t began_ns = clock_ns();
    int r;

    list_push(&w->starts, &b->link);
    r = OPS(b->instance)->finish(b->instance, &spec, e);
    if (b->owner && b->snapshot)
        b->owner->files_usec = (uint32_t)((clock_ns() - began_ns) / 1000);
    if (r < 0)
        return r;
    b->line.fn = on_word;
    b->timer.fn = on_late;
    loop_watch(&w->server->loop, &b->line, OPS(b->instance)->line(b->instance), EPOLLIN);
    loop_timer_set(&w->server->loop, &b->timer, clock_ns() + START_S * TENANT_POOL_SECOND_NS);
    return 0;
}
