/* What waits in a tenant pool. */
#include "lib/base/clock.h"
#include "lib/base/fds.h"
#include "lib/log/log.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/kernels.h"
#include "warden/sandboxes/recent_templates.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/tenant_pool_impl.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/server.h"

#define CALM_NS 5000000ull
#define BARE_NS (60 * TENANT_POOL_SECOND_NS) /* after a copy of a sandbox, more are expected */

/* ---- demand ---------------------------------------------------------------------------------- */

void demand_tick(struct demand *d)
{
    d->most -= (d->most + 7) / 8;
    if (d->taken > d->most)
        d->most = d->taken;
    d->taken = 0;
}

static uint32_t demand_now(const struct demand *d)
{
    return d->most > d->taken ? d->most : d->taken;
}

void filling_count(struct tenant_pool *w, const struct tenant_pool_request *q)
{
    uint64_t soon = clock_ns() + TENANT_POOL_SECOND_NS;

    if (q->snapshot && !q->bare)
        recent_used(w, q->snapshot, &q->limits);
    else
        w->demand.taken++;
    if (w->tick.at_ns > soon)
        loop_timer_set(&w->server->loop, &w->tick, soon);
}

void filling_pause(struct tenant_pool *w, bool bare)
{
    uint64_t now = clock_ns();

    w->calm_ns = now + (bare ? 2 * CALM_NS : CALM_NS);
    if (bare)
        w->bare_until_ns = now + BARE_NS;
    loop_timer_set(&w->server->loop, &w->calm, w->calm_ns);
}

/* ---- the pool's size ------------------------------------------------------------------------- */

/* Whether copies of sandboxes were made here of late. Then one pooled sandbox stays without a
 * kernel: a sandbox that becomes a copy has no use for a kernel of its own, and ending that kernel
 * would take longer than all the rest of the copy. */
static bool wants_bare(const struct tenant_pool *w)
{
    return clock_ns() < w->bare_until_ns;
}

static uint32_t pool_target(const struct tenant_pool *w)
{
    const struct settings *t = &w->server->settings;
    uint32_t n = demand_now(&w->demand);

    if (tenant_pool_is_nobodys(w) || w->server->pressure.state >= PRESSURE_POOLS)
        return 0;
    n = n < t->pool_min ? t->pool_min : n;
    n += wants_bare(w);
    return n > t->pool_max ? t->pool_max : n;
}

/* How many of the plain template wait, or of a recent template. */
static uint32_t n_ready_of(const struct tenant_pool *w, const struct snapshot *of)
{
    uint32_t n = 0;

    LIST_EACH(const struct start, b, &w->starts, link)
        n += b->ready && b->snapshot == of;
    return n;
}

/* Starts that are under way count too. */
static uint32_t pool_size(const struct tenant_pool *w, const struct snapshot *of)
{
    uint32_t n = 0;

    LIST_EACH(const struct start, b, &w->starts, link)
        n += !b->owner && b->snapshot == of;
    return n;
}

static bool is_full(const struct tenant_pool *w)
{
    uint32_t n = 0;

    LIST_EACH(const struct start, b, &w->starts, link)
        n += !b->owner;
    return n >= w->server->settings.pool_max;
}

static bool lacks_plain(const struct tenant_pool *w)
{
    return pool_size(w, NULL) < pool_target(w);
}

/* The first recent template of which too few wait; NULL: there is none. */
static const struct recent *lacking(const struct tenant_pool *w)
{
    if (w->server->pressure.state >= PRESSURE_POOLS)
        return NULL;
    LIST_EACH(const struct recent, f, &w->recent, link) {
        uint32_t n = pool_size(w, f->of);
        if (n == 0 || n < demand_now(&f->demand))
            return f;
    }
    return NULL;
}

bool filling_is_wanted(const struct tenant_pool *w)
{
    uint64_t now = clock_ns();
    bool calm = now >= w->calm_ns, few = 2 * n_ready_of(w, NULL) < pool_target(w);

    if (w->broken || w->asked || now < w->refused_ns || fds_level() >= FDS_LOW || is_full(w))
        return false;
    return ((calm || few) && lacks_plain(w)) || (calm && lacking(w));
}

void filling_decide(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;
    const struct recent *f = lacks_plain(w) ? NULL : lacking(w);

    if (f) {
        b->snapshot = snapshot_use(f->of);
        b->limits = f->limits;
    } else {
        tenant_pools_usual_limits(w->server, &b->limits);
    }
}

/* ---- preparing those that wait --------------------------------------------------------------- */

void tenant_pool_fed(struct tenant_pool *w, struct instance *i, bool has_kernel)
{
    LIST_EACH(struct start, b, &w->starts, link)
        if (b->instance == i)
            b->fed = has_kernel;
}

static bool is_bare(const struct start *b)
{
    return b->ready && !kernel_has(b->instance);
}

/* The last sandbox without a kernel, which is to stay so; NULL: there are more, or none is
 * wanted. */
static const struct start *last_bare(const struct tenant_pool *w)
{
    const struct start *last = NULL;
    uint32_t n = 0;

    LIST_EACH(const struct start, b, &w->starts, link)
        if (is_bare(b) && !b->snapshot) {
            last = b;
            n++;
        }
    return n == 1 && n_ready_of(w, NULL) > 1 && wants_bare(w) ? last : NULL;
}

/* Gives a kernel to a pooled sandbox that has none. Done after refilling: in a storm of requests
 * nobody has the time to use kernels. */
static bool feed_one(struct tenant_pool *w)
{
    const struct start *bare = last_bare(w);

    LIST_EACH(struct start, b, &w->starts, link) {
        if (!is_bare(b) || b == bare)
            continue;
        if (!snapshot_world(b->snapshot))
            return kernels_feed(w, b->instance);
        if (zygotes_feed(w, b->snapshot, b->instance))
            return true;
    }
    return false;
}

/* Prepares the way out of a pooled sandbox, so that most of the work is done before it is asked
 * for. */
static bool prepare_one(struct tenant_pool *w)
{
    const struct server *s = w->server;
    struct sg_error e = {0};

    if (s->path == 0 || s->settings.egress_e2b_default == EGRESS_BLOCK)
        return false;
    LIST_EACH(struct start, b, &w->starts, link) {
        if (!b->ready || b->tried || OPS(b->instance)->network->prepared(b->instance))
            continue;
        b->tried = true;
        if (OPS(b->instance)->network->prepare(b->instance, s->path, &e) < 0)
            log_line(LEVEL_WARN, "cannot prepare the network of a pooled sandbox: %s", e.message);
        return true;
    }
    return false;
}

bool filling_prepare(struct tenant_pool *w)
{
    return prepare_one(w) || feed_one(w);
}

/* ---- those that are too many ----------------------------------------------------------------- */

static void shrink_plain(struct tenant_pool *w)
{
    uint32_t target = pool_target(w), n = n_ready_of(w, NULL), over = n > target ? n - target : 0;
    const struct start *bare = target > 0 ? last_bare(w) : NULL;

    LIST_EACH(struct start, b, &w->starts, link)
        if (over > 0 && b->ready && !b->snapshot && b != bare) {
            start_end(b);
            over--;
        }
}

/* Recent templates that are over their target end one each second, and so do those in whose place
 * the plain template is wanted. */
static void shrink_recent(struct tenant_pool *w)
{
    bool crowded = is_full(w) && lacks_plain(w);

    LIST_EACH(struct start, b, &w->starts, link)
        if (b->ready && b->snapshot && !start_is_wanted(b))
            start_end(b);
    LIST_EACH(const struct recent, f, &w->recent, link) {
        uint32_t n = n_ready_of(w, f->of);
        struct start *b =
            LIST_FIND(struct start, at, &w->starts, link, at->ready && at->snapshot == f->of);
        if (b && (crowded || (n > 1 && n > demand_now(&f->demand))))
            start_end(b);
    }
}

void filling_shrink(struct tenant_pool *w)
{
    shrink_plain(w);
    shrink_recent(w);
}

void filling_empty(struct tenant_pool *w)
{
    LIST_EACH(struct start, b, &w->starts, link)
        if (b->ready)
            start_end(b);
}
