#include "warden/sandboxes/tenant_pool.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fds.h"
#include "lib/log/log.h"
#include "warden/layers/scratch_store.h"
#include "warden/sandboxes/discard.h"
#include "warden/sandboxes/kernels.h"
#include "warden/sandboxes/recent_templates.h"
#include "warden/sandboxes/tenant_pool_impl.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/server.h"

#define SECOND_NS   TENANT_POOL_SECOND_NS
#define QUIET_NS    (30 * SECOND_NS) /* how often to check a tenant pool that nobody uses */
#define KEEP_NS     (30 * SECOND_NS) /* how long slots keep unused things */
#define SLOTS_MAX_  16384u
#define SPARE_SLOTS 16u /* homes of zygotes among them */
#define PROBE_SLOTS 2u

/* ---- its spawner ----------------------------------------------------------------------------- */

/* The requests that wait at a broken tenant pool move to the tenant's next one, but only once. */
static void move_requests(struct tenant_pool *w)
{
    struct tenant_pool_request *q;

    while ((q = requests_next(w))) {
        struct tenant_pool *to = NULL;
        struct sg_error e = {0};

        if (q->moved || !q->on_moved)
            err_set(&e, SG_ERR_LIMIT, -EPIPE, "the tenant's domain has failed: try again");
        else
            tenant_pool_get(w->server, w->tenant, &to, &e);
        if (!to) {
            q->done(q->arg, NULL, &e);
            continue;
        }
        q->moved = true;
        q->on_moved(q->arg, to);
        tenant_pool_request(to, q);
    }
}

static void on_spawner(struct loop_source *src, uint32_t events UNUSED)
{
    struct tenant_pool *w = CONTAINER_OF(src, struct tenant_pool, spawner);

    helper_heard(w, PROCESS_SPAWNER);
    if (!OPS(w->provider)->begun(w->provider))
        return; /* it only answered a heartbeat */
    loop_unwatch(&w->server->loop, &w->spawner);
    if (w->asked && list_empty(&w->requests)) {
        loop_want_idle(&w->server->loop); /* the start is for the pool: no hurry */
        return;
    }
    if (w->asked)
        requests_go_on(w);
    else
        requests_break(w); /* a spawner says nothing unasked: it has ended */
    if (w->broken) {
        move_requests(w);
        return;
    }
    requests_push(w);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static uint32_t room(const struct settings *t)
{
    uint64_t frozen = t->tenant_paused_memory / PAUSED_LEAST; /* more are stored, without a slot */
    uint64_t paused = frozen < t->tenant_paused ? frozen : t->tenant_paused;
    uint64_t n = t->tenant_sandboxes + paused + t->pool_max + SPARE_SLOTS;

    return n < SLOTS_MAX_ ? (uint32_t)n : SLOTS_MAX_;
}

static bool is_used(const struct tenant_pool *w)
{
    return w->n_out > 0 || !list_empty(&w->requests) || w->asked ||
           LIST_FIND(const struct start, b, &w->starts, link, !b->ready);
}

static void tenant_pool_close(struct tenant_pool *w)
{
    struct sg_error e;

    list_remove(&w->link);
    LIST_EACH(struct start, b, &w->starts, link)
        start_free(b);
    free(w->asked);
    recent_done(w);
    kernels_stop(w);
    domain_processes_stop(w);
    loop_unwatch(&w->server->loop, &w->spawner);
    loop_timer_cancel(&w->server->loop, &w->tick);
    loop_timer_cancel(&w->server->loop, &w->calm);
    if (OPS(w->provider)->close(w->provider, &e) < 0)
        log_line(LEVEL_ERROR, "%s", e.message);
    scratch_share_release(w->share);
    free(w);
}

static void on_calm(struct loop_timer *timer)
{
    requests_push(CONTAINER_OF(timer, struct tenant_pool, calm));
}

static void on_tick(struct loop_timer *timer)
{
    struct tenant_pool *w = CONTAINER_OF(timer, struct tenant_pool, tick);
    uint64_t now = clock_ns(), idle_ns = w->server->settings.tenant_idle_ms * 1000000ull;
    bool old = w->n_out == 0 && now - w->idle_since_ns >= idle_ns;

    demand_tick(&w->demand);
    recent_tick(w);
    w->broken |= old;
    if (w->broken)
        filling_empty(w);
    filling_shrink(w);
    loop_want_idle(&w->server->loop); /* to close it, or to trim its slots */
    loop_timer_set(&w->server->loop, &w->tick,
                   now +
                       (w->demand.most || !list_empty(&w->recent) || w->broken || idle_ns < QUIET_NS
                            ? SECOND_NS
                            : QUIET_NS));
    requests_push(w);
}

static void limit_tenant(struct tenant_pool *w)
{
    struct sg_error e = {0};

    if (OPS(w->provider)->limit_memory(w->provider, w->server->settings.tenant_memory, &e) < 0)
        log_line(LEVEL_WARN, "%s", e.message);
    tenant_pool_full_ns(w); /* the kernel counts kills from now on */
}

static int tenant_pool_open(struct server *s, const char *tenant, struct tenant_pool **ret,
                            struct sg_error *e)
{
    struct tenant_pool *w =
        NEW(struct tenant_pool, .server = s, .spawner = {.fd = -1, .fn = on_spawner},
            .tick.fn = on_tick, .calm.fn = on_calm, .idle_since_ns = clock_ns());
    int r;

    snprintf(w->tenant, sizeof(w->tenant), "%s", tenant);
    uint32_t slots = tenant_pool_is_nobodys(w) ? PROBE_SLOTS : room(&s->settings);
    r = s->scratch_store ? scratch_share_open(s->scratch_store, w->tenant, slots, &w->share, e) : 0;
    struct provider_setup setup = {.max_instances = slots,
                                   .server = s->state.name,
                                   .tenant = w->tenant,
                                   .account = true,
                                   .share = w->share,
                                   .strict = s->settings.strict,
                                   .user_marks = s->files.userns >= 0,
                                   .discard = discard,
                                   .discard_mount = discard_mount,
                                   .discard_arg = s};
    if (r == 0)
        r = s->provider->open(&setup, &w->provider, e);
    if (r < 0) {
        readiness_failed(s, e);
        scratch_share_release(w->share);
        free(w);
        return r;
    }
    limit_tenant(w);
    list_push(&s->tenant_pools, &w->link);
    loop_timer_set(&s->loop, &w->tick, clock_ns() + SECOND_NS);
    helper_watch(w, PROCESS_HOLDER);
    helper_watch(w, PROCESS_SPAWNER);
    requests_push(w);
    kernels_start(w);
    *ret = w;
    return 0;
}

int tenant_pool_get(struct server *s, const char *tenant, struct tenant_pool **ret,
                    struct sg_error *e)
{
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link)
        if (!w->broken && strcmp(w->tenant, tenant) == 0) {
            *ret = w;
            return 0;
        }
    return tenant_pool_open(s, tenant, ret, e);
}

void tenant_pool_give_up(struct tenant_pool *w)
{
    w->broken = true;
    loop_timer_set(&w->server->loop, &w->tick, clock_ns() + SECOND_NS);
}

void tenant_pools_renew(struct server *s)
{
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link) {
        filling_empty(w);
        requests_push(w);
    }
}

uint32_t tenant_pools_let_go(struct server *s)
{
    uint32_t n = 0;

    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link) {
        n += w->n_ready;
        filling_empty(w);
        zygotes_let_go(w);
    }
    return n;
}

void tenant_pools_measure(struct server *s)
{
    if (!s->settings.tenant_memory)
        return;
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link) {
        budget_tenant_uses(&s->budget, w->tenant, OPS(w->provider)->memory(w->provider));
        tenant_pool_full_ns(w);
    }
}

uint64_t tenant_pool_full_ns(struct tenant_pool *w)
{
    uint64_t n = w->server->settings.tenant_memory ? OPS(w->provider)->ooms(w->provider) : w->ooms;

    if (n > w->ooms) {
        w->ooms = n;
        w->full_ns = clock_ns();
    }
    return w->full_ns;
}

void tenant_pools_limit(struct server *s)
{
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link)
        limit_tenant(w);
}

/* Closes a tenant pool that nobody uses; first its slots give up what they keep, one at a time. */
static bool close_idle(struct tenant_pool *w)
{
    if (is_used(w))
        return false;
    if (!OPS(w->provider)->trim(w->provider, UINT64_MAX))
        tenant_pool_close(w);
    return true;
}

/* Slots give up what they keep for their next sandbox when it is old, and when descriptors are
 * short. */
static bool trim(struct tenant_pool *w)
{
    uint64_t now = clock_ns();

    return OPS(w->provider)->trim(w->provider, now > KEEP_NS ? now - KEEP_NS : 0) ||
           (fds_level() >= FDS_LOW && OPS(w->provider)->trim(w->provider, UINT64_MAX));
}

static bool tenant_pool_idle(struct tenant_pool *w)
{
    struct sg_error e = {0};

    /* Also in a tenant pool that is to be closed: the start keeps it in use until it is
     * finished. */
    if (w->asked && list_empty(&w->requests) && w->spawner.fd < 0) {
        requests_go_on(w);
        requests_push(w);
        return true;
    }
    if (w->broken)
        return close_idle(w);
    if (clock_ns() >= w->calm_ns && OPS(w->provider)->idle(w->provider))
        return true;
    if (trim(w))
        return true;
    if (!filling_is_wanted(w))
        return filling_prepare(w);
    if (requests_ask(w, &e) < 0) {
        start_refused(w, &e);
        return false;
    }
    requests_push(w);
    return true;
}

bool tenant_pools_idle(struct server *s)
{
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link)
        if (tenant_pool_idle(w))
            return true;
    return false;
}

bool tenant_pools_relieve(struct server *s)
{
    struct tenant_pool *oldest = NULL;

    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link) {
        if (OPS(w->provider)->trim(w->provider, UINT64_MAX))
            return true;
        if (!is_used(w) && (!oldest || w->idle_since_ns < oldest->idle_since_ns))
            oldest = w;
    }
    if (oldest)
        tenant_pool_close(oldest);
    return oldest;
}

void tenant_pools_close(struct server *s)
{
    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link)
        tenant_pool_close(w);
}
