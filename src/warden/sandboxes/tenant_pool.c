#include "warden/sandboxes/tenant_pool.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fds.h"
#include "lib/log/log.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/discard.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/kernels.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/sandboxes/recent_templates.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/server.h"

#define SECOND_NS   1000000000ull
#define QUIET_NS    (30 * SECOND_NS) /* how often to check a tenant pool that nobody uses */
#define START_NS    (15 * SECOND_NS)
#define CALM_NS     5000000ull
#define BARE_NS     (60 * SECOND_NS) /* after a copy of a sandbox, more copies are expected */
#define KEEP_NS     (30 * SECOND_NS) /* how long slots keep unused things */
#define SLOTS_MAX_  16384u
#define SPARE_SLOTS 16u /* homes of zygotes among them */
#define PROBE_SLOTS 2u
#define HOSTNAME    "sandbox"

struct start {
    struct tenant_pool *tenant_pool;
    struct list link; /* in tenant_pool.starts, but not while asked for */
    struct instance *instance;
    struct sg_limits limits;
    struct snapshot *snapshot; /* that it is made of; NULL: the template alone */
    bool ready;
    bool fed;                          /* its agent has a kernel */
    bool tried;                        /* to prepare its way out */
    struct tenant_pool_request *owner; /* the request that gets it; NULL: the pool */
    struct loop_source line;           /* starting: it says that it is up. Ready: its end */
    struct loop_timer timer;
};

static void push(struct tenant_pool *w);

/* ---- the pool's size and limits -------------------------------------------------------------- */

void tenant_pools_usual_limits(const struct server *s, struct sg_limits *ret)
{
    struct sg_limits l = {.memory_bytes = s->settings.sandbox_memory,
                          .disk_bytes = s->settings.sandbox_disk,
                          .cpus_milli = s->settings.sandbox_cpus_milli,
                          .pids = s->settings.sandbox_pids};

    if (limits_complete(&l, ret, NULL) < 0)
        *ret = l;
}

/* Whether copies of sandboxes were made here of late. Then one pooled sandbox stays without a
 * kernel: a sandbox that becomes a copy has no use for a kernel of its own, and ending that kernel
 * would take longer than all the rest of the copy. */
static bool wants_bare(const struct tenant_pool *w)
{
    return clock_ns() < w->bare_until_ns;
}

static bool is_nobodys(const struct tenant_pool *w)
{
    return strcmp(w->tenant, TENANT_POOL_NOBODY) == 0;
}

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

static uint32_t pool_target(const struct tenant_pool *w)
{
    const struct settings *t = &w->server->settings;
    uint32_t n = demand_now(&w->demand);

    if (is_nobodys(w) || w->server->pressure.state >= PRESSURE_POOLS)
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

static bool wants_refill(const struct tenant_pool *w)
{
    uint64_t now = clock_ns();
    bool calm = now >= w->calm_ns, few = 2 * n_ready_of(w, NULL) < pool_target(w);

    if (w->broken || w->asked || now < w->refused_ns || fds_level() >= FDS_LOW || is_full(w))
        return false;
    return ((calm || few) && pool_size(w, NULL) < pool_target(w)) || (calm && lacking(w));
}

static void on_calm(struct loop_timer *timer)
{
    push(CONTAINER_OF(timer, struct tenant_pool, calm));
}

/* A sandbox was taken: its work comes before refilling. That work is longer if the sandbox gets
 * files and kernels of another (bare). */
static void keep_calm(struct tenant_pool *w, bool bare)
{
    uint64_t now = clock_ns();

    w->calm_ns = now + (bare ? 2 * CALM_NS : CALM_NS);
    if (bare)
        w->bare_until_ns = now + BARE_NS;
    loop_timer_set(&w->server->loop, &w->calm, w->calm_ns);
}

/* ---- starts ---------------------------------------------------------------------------------- */

/* Removes the start from the tenant pool; the instance stays. */
static void start_free(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;

    loop_unwatch(&w->server->loop, &b->line);
    loop_timer_cancel(&w->server->loop, &b->timer);
    if (list_linked(&b->link) && b->ready)
        w->n_ready--;
    else if (list_linked(&b->link))
        w->n_starting--;
    list_remove(&b->link);
    snapshot_release(b->snapshot);
    free(b);
}

/* A sandbox that nobody had taken has ended, or its start has failed. */
static void start_end(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;
    struct instance *i = b->instance;

    start_free(b);
    w->n_out++;
    teardown_begin(w, i, NULL, NULL);
}

static void start_fail(struct start *b, const struct sg_error *e)
{
    struct tenant_pool_request *owner = b->owner;

    if (!owner) {
        log_line(LEVEL_WARN, "cannot make a sandbox for the pool: %s", e->message);
        b->tenant_pool->refused_ns = clock_ns() + SECOND_NS;
        readiness_failed(b->tenant_pool->server, e);
    }
    start_end(b);
    if (owner)
        owner->done(owner->arg, NULL, e);
}

static void hand_over(struct start *b, struct tenant_pool_request *to)
{
    struct tenant_pool *w = b->tenant_pool;
    struct instance *i = b->instance;

    start_free(b);
    w->n_out++;
    to->done(to->arg, i, NULL);
}

static bool fits(const struct start *b, const struct tenant_pool_request *q)
{
    return b->snapshot == q->snapshot && limits_equal(&b->limits, &q->limits);
}

/* Takes the first request that waits for a sandbox like this. */
static struct tenant_pool_request *take_fitting_request(struct tenant_pool *w,
                                                        const struct start *b)
{
    struct tenant_pool_request *q =
        LIST_FIND(struct tenant_pool_request, at, &w->requests, link, fits(b, at));

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

static bool is_wanted(const struct start *b)
{
    struct sg_limits usual;

    if (b->snapshot)
        return recent_want(b->tenant_pool, b->snapshot, &b->limits);
    tenant_pools_usual_limits(b->tenant_pool->server, &usual);
    return limits_equal(&b->limits, &usual);
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
        b->owner = take_fitting_request(w, b);
    if (b->owner) {
        hand_over(b, b->owner);
        return;
    }
    loop_timer_cancel(&w->server->loop, &b->timer);
    loop_unwatch(&w->server->loop, &b->line);
    b->line.fn = on_ready_gone;
    loop_watch(&w->server->loop, &b->line, OPS(b->instance)->process(b->instance), EPOLLIN);
    b->ready = true;
    w->n_starting--;
    w->n_ready++;
    if (is_wanted(b))
        loop_want_idle(&w->server->loop); /* to give it a kernel and a way out */
    else
        start_end(b); /* settings or templates have changed since it was begun */
}

static void on_late(struct loop_timer *timer)
{
    struct start *b = CONTAINER_OF(timer, struct start, timer);
    struct sg_error e = {0};

    err_set(&e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox did not start in %u s",
            (unsigned)(START_NS / SECOND_NS));
    start_fail(b, &e);
}

/* Without a scratch store a sandbox's files are in memory too. So its memory limit is the sum of both, and a
 * sandbox that fills its disk gets a disk that is full, and its programs are not killed for memory.
 */
static struct instance_spec spec_of(const struct server *s, const struct sg_limits *limits,
                                    const struct snapshot *snapshot)
{
    struct instance_spec spec = {
        .limits = *limits, .hostname = HOSTNAME, .line = true, .twins = true};

    if (!s->scratch_store)
        spec.limits.memory_bytes += limits->disk_bytes;
    if (snapshot)
        spec.layer = snapshot_dir(snapshot);
    spec.world = snapshot_world(snapshot);
    return spec;
}

/* Takes no more requests. Sandboxes that run in the tenant pool go on. */
static void break_tenant_pool(struct tenant_pool *w)
{
    if (w->spawner_gone)
        return;
    w->broken = w->spawner_gone = true;
    helper_ended(w, PROCESS_SPAWNER);
}

static struct tenant_pool_request *next_request(struct tenant_pool *w)
{
    return LIST_POP(struct tenant_pool_request, &w->requests, link);
}

/* What the start is made of: what the request wants, or else what the pool lacks most. */
static void decide(struct start *b, const struct tenant_pool_request *q)
{
    struct tenant_pool *w = b->tenant_pool;
    const struct recent *f = q || pool_size(w, NULL) < pool_target(w) ? NULL : lacking(w);
    struct snapshot *of = q ? q->snapshot : f ? f->of : NULL;

    b->snapshot = of ? snapshot_use(of) : NULL;
    if (q || f)
        b->limits = q ? q->limits : f->limits;
    else
        tenant_pools_usual_limits(w->server, &b->limits);
}

/* The spawner has answered: decides which request gets the start, if not the pool, and finishes
 * it. */
static void start_go_on(struct start *b)
{
    struct tenant_pool *w = b->tenant_pool;
    struct tenant_pool_request *q = next_request(w);
    struct sg_error e = {0};

    w->asked = NULL;
    b->owner = q;
    decide(b, q);
    list_push(&w->starts, &b->link);
    w->n_starting++;
    struct instance_spec spec = spec_of(w->server, &b->limits, b->snapshot);
    uint64_t began_ns = clock_ns();
    int r = OPS(b->instance)->finish(b->instance, &spec, &e);
    if (q && q->snapshot)
        q->files_usec = (uint32_t)((clock_ns() - began_ns) / 1000);
    if (r == -EPIPE) {
        break_tenant_pool(w);
        if (q) { /* it goes on waiting, see on_spawner */
            b->owner = NULL;
            list_push(&w->requests, &q->link);
        }
    }
    if (r < 0) {
        start_fail(b, &e);
        return;
    }
    b->line.fn = on_word;
    b->timer.fn = on_late;
    loop_watch(&w->server->loop, &b->line, OPS(b->instance)->line(b->instance), EPOLLIN);
    loop_timer_set(&w->server->loop, &b->timer, clock_ns() + START_NS);
}

/* The requests that wait at a broken tenant pool move to the tenant's next one, but only once. */
static void move_requests(struct tenant_pool *w)
{
    struct tenant_pool_request *q;

    while ((q = next_request(w))) {
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
        start_go_on(w->asked);
    else
        break_tenant_pool(w); /* a spawner says nothing unasked: it has ended */
    if (w->broken) {
        move_requests(w);
        return;
    }
    push(w);
}

static int ask(struct tenant_pool *w, struct sg_error *e)
{
    struct start *b = NEW(struct start, .tenant_pool = w, .line.fd = -1);
    int r;

    r = OPS(w->provider)->begin(w->provider, &b->instance, e);
    if (r < 0) {
        free(b);
        return r;
    }
    w->asked = b;
    return 0;
}

/* Asks the spawner for the next start if a request waits, and listens for its answer. */
static void push(struct tenant_pool *w)
{
    struct loop *l = &w->server->loop;
    struct sg_error e = {0};

    while (!w->asked && !list_empty(&w->requests) && !w->broken && ask(w, &e) < 0) {
        struct tenant_pool_request *q = next_request(w);
        q->done(q->arg, NULL, &e);
    }
    if (w->spawner.fd < 0 && !w->broken)
        loop_watch(l, &w->spawner, OPS(w->provider)->fd(w->provider), EPOLLIN);
    if (wants_refill(w))
        loop_want_idle(l);
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
        if (!b->owner && fits(b, q) && (!best || readiness(b, q) > readiness(best, q)))
            best = b;
    return best;
}

static void count_taken(struct tenant_pool *w, const struct tenant_pool_request *q)
{
    if (q->snapshot && !q->bare)
        recent_used(w, q->snapshot, &q->limits);
    else
        w->demand.taken++;
    if (w->tick.at_ns > clock_ns() + SECOND_NS)
        loop_timer_set(&w->server->loop, &w->tick, clock_ns() + SECOND_NS);
}

struct instance *tenant_pool_take(struct tenant_pool *w, const struct sg_limits *limits)
{
    struct tenant_pool_request like = {.limits = *limits, .bare = true};
    struct start *b = best_for(w, &like);
    struct instance *i;

    if (!b || !b->ready || kernel_pending(b->instance))
        return NULL;
    i = b->instance;
    count_taken(w, &like);
    keep_calm(w, true);
    start_free(b);
    w->n_out++;
    push(w);
    return i;
}

void tenant_pool_request(struct tenant_pool *w, struct tenant_pool_request *q)
{
    struct start *best = best_for(w, q);

    count_taken(w, q);
    if (best && best->ready) {
        keep_calm(w, q->bare);
        q->pooled = true;
        hand_over(best, q);
    } else if (best) {
        best->owner = q;
    } else {
        list_append(&w->requests, &q->link);
    }
    push(w);
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

void tenant_pool_fed(struct tenant_pool *w, struct instance *i, bool has_kernel)
{
    LIST_EACH(struct start, b, &w->starts, link)
        if (b->instance == i)
            b->fed = has_kernel;
}

void tenant_pool_return(struct tenant_pool *w)
{
    w->n_out--;
    w->idle_since_ns = clock_ns();
    push(w);
}

/* ---- the tenant pool itself ------------------------------------------------------------------ */

static uint32_t room(const struct settings *t)
{
    uint64_t frozen = t->tenant_paused_memory / PAUSED_LEAST; /* more are stored, without a slot */
    uint64_t paused = frozen < t->tenant_paused ? frozen : t->tenant_paused;
    uint64_t n = t->tenant_sandboxes + paused + t->pool_max + SPARE_SLOTS;

    return n < SLOTS_MAX_ ? (uint32_t)n : SLOTS_MAX_;
}

static bool is_used(const struct tenant_pool *w)
{
    return w->n_out > 0 || !list_empty(&w->requests) || w->asked || w->n_starting > 0;
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
    free(w);
}

/* Ends sandboxes of the pool that are over the target. */
static void shrink(struct tenant_pool *w, uint32_t target)
{
    uint32_t n = n_ready_of(w, NULL), over = n > target ? n - target : 0;
    const struct start *bare = target > 0 ? last_bare(w) : NULL;

    LIST_EACH(struct start, b, &w->starts, link)
        if (over > 0 && b->ready && !b->snapshot && b != bare) {
            start_end(b);
            over--;
        }
}

/* The same for recent templates: those over their target end one each second, and so do those in whose place the plain template
 * is wanted. */
static void shrink_recent(struct tenant_pool *w)
{
    bool crowded = is_full(w) && pool_size(w, NULL) < pool_target(w);

    LIST_EACH(struct start, b, &w->starts, link)
        if (b->ready && b->snapshot && !is_wanted(b))
            start_end(b);
    LIST_EACH(const struct recent, f, &w->recent, link) {
        uint32_t n = n_ready_of(w, f->of);
        struct start *b =
            LIST_FIND(struct start, at, &w->starts, link, at->ready && at->snapshot == f->of);
        if (b && (crowded || (n > 1 && n > demand_now(&f->demand))))
            start_end(b);
    }
}

static void empty(struct tenant_pool *w)
{
    LIST_EACH(struct start, b, &w->starts, link)
        if (b->ready)
            start_end(b);
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
        empty(w);
    shrink(w, pool_target(w));
    shrink_recent(w);
    loop_want_idle(&w->server->loop); /* to close it, or to trim its slots */
    loop_timer_set(&w->server->loop, &w->tick,
                   now +
                       (w->demand.most || !list_empty(&w->recent) || w->broken || idle_ns < QUIET_NS
                            ? SECOND_NS
                            : QUIET_NS));
    push(w);
}

/* Removes files that no sandbox uses any more. */
static void on_discard(void *arg, int mount, uint32_t first_id, const char *dir)
{
    discard(arg, mount, first_id, dir);
}

static void on_discard_mount(void *arg, int mount)
{
    discard_mount(arg, mount);
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
    struct provider_setup setup = {.max_instances =
                                       is_nobodys(w) ? PROBE_SLOTS : room(&s->settings),
                                   .server = s->state.name,
                                   .tenant = w->tenant,
                                   .account = true,
                                   .scratch_store = s->scratch_store,
                                   .strict = s->settings.strict,
                                   .user_marks = s->files.userns >= 0,
                                   .discard = on_discard,
                                   .discard_mount = on_discard_mount,
                                   .discard_arg = s};
    r = s->provider->open(&setup, &w->provider, e);
    if (r < 0) {
        readiness_failed(s, e);
        free(w);
        return r;
    }
    limit_tenant(w);
    list_push(&s->tenant_pools, &w->link);
    loop_timer_set(&s->loop, &w->tick, clock_ns() + SECOND_NS);
    helper_watch(w, PROCESS_HOLDER);
    helper_watch(w, PROCESS_SPAWNER);
    push(w);
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
        empty(w);
        push(w);
    }
}

uint32_t tenant_pools_let_go(struct server *s)
{
    uint32_t n = 0;

    LIST_EACH(struct tenant_pool, w, &s->tenant_pools, link) {
        n += w->n_ready;
        empty(w);
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
        start_go_on(w->asked);
        push(w);
        return true;
    }
    if (w->broken)
        return close_idle(w);
    if (clock_ns() >= w->calm_ns && OPS(w->provider)->idle(w->provider))
        return true;
    if (trim(w))
        return true;
    if (!wants_refill(w))
        return prepare_one(w) || feed_one(w);
    if (ask(w, &e) < 0) {
        w->refused_ns = clock_ns() + SECOND_NS;
        log_line(LEVEL_WARN, "cannot make a sandbox for the pool: %s", e.message);
        readiness_failed(w->server, &e);
        return false;
    }
    push(w);
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
