#include "warden/sandboxes/zygotes.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/fds.h"
#include "lib/log/log.h"
#include "warden/sandboxes/kernels.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/teardown.h"
#include "warden/server.h"

#define SECOND_NS 1000000000ull
#define LOAD_NS   (30 * SECOND_NS)
#define REST_NS   (60 * SECOND_NS)
#define IDLE_NS   (300 * SECOND_NS)

struct zygote {
    struct list link;
    struct tenant_pool *tenant_pool;
    struct snapshot *of;
    enum { MAKING, LOADING, FREEZING, READY, UNUSABLE } state;
    struct instance *home;              /* NULL: not there yet, or not any more */
    struct tenant_pool_request request; /* MAKING */
    struct loop_source word, home_end;
    struct loop_timer timer; /* the end of the state */
    uint64_t frozen_kernels;
    int32_t was;
    uint64_t used_ns;
    struct sg_error why; /* UNUSABLE */
};

static struct zygote *find(const struct tenant_pool *w, const struct snapshot *of)
{
    return LIST_FIND(struct zygote, z, &w->zygotes, link, z->of == of);
}

static struct zygote *find_home(const struct tenant_pool *w, const struct instance *home)
{
    return home ? LIST_FIND(struct zygote, z, &w->zygotes, link, z->home == home) : NULL;
}

static void forget(struct zygote *z)
{
    struct loop *l = &z->tenant_pool->server->loop;

    loop_unwatch(l, &z->word);
    loop_unwatch(l, &z->home_end);
    loop_timer_cancel(l, &z->timer);
    list_remove(&z->link);
    snapshot_release(z->of);
    free(z);
}

/* Its frozen kernel ends with it; kernels that were copied from that stay. */
static void leave_home(struct zygote *z)
{
    struct tenant_pool *w = z->tenant_pool;

    loop_unwatch(&w->server->loop, &z->word);
    loop_unwatch(&w->server->loop, &z->home_end);
    if (!z->home)
        return;
    w->n_out++; /* until the home is gone */
    teardown_begin(w, steal_ptr(&z->home), NULL, NULL);
}

static void end(struct zygote *z)
{
    leave_home(z);
    forget(z);
}

static void rest(struct zygote *z, const struct sg_error *e)
{
    z->why = *e;
    leave_home(z);
    z->state = UNUSABLE;
    loop_timer_set(&z->tenant_pool->server->loop, &z->timer, clock_ns() + REST_NS);
}

static void unusable(struct zygote *z, const struct sg_error *e)
{
    struct tenant_pool *w = z->tenant_pool;

    rest(z, e);
    sandboxes_ask_again(w->server, w);
}

static void on_timer(struct loop_timer *timer)
{
    struct zygote *z = CONTAINER_OF(timer, struct zygote, timer);
    struct sg_error e = {0};

    if (z->state == READY || z->state == UNUSABLE) {
        end(z);
        return;
    }
    err_set(&e, SG_ERR_UNSUPPORTED, -ETIMEDOUT, "its Python was not ready after %u s",
            (unsigned)(LOAD_NS / SECOND_NS));
    unusable(z, &e);
}

static void on_home_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct zygote *z = CONTAINER_OF(src, struct zygote, home_end);
    struct sg_error e = {.message = "the sandbox in which its Python was started has ended"};

    if (z->state == READY)
        end(z);
    else
        unusable(z, &e);
}

static void on_word(struct loop_source *src, uint32_t events UNUSED)
{
    struct zygote *z = CONTAINER_OF(src, struct zygote, word);
    struct hold_spec spec = {.kernels = &z->was, .n_kernels = 1};
    struct sg_error e = {0};
    int r = OPS(z->home)->kernels->loaded(z->home, &z->was, &e);

    if (r == -EAGAIN)
        return;
    loop_unwatch(&z->tenant_pool->server->loop, &z->word);
    z->state = FREEZING;
    if (r == 0)
        r = OPS(z->home)->fork->hold(z->home, &spec, &z->frozen_kernels, &e);
    if (r < 0)
        unusable(z, &e);
}

static void on_home(void *arg, struct instance *i, const struct sg_error *e)
{
    struct zygote *z = arg;
    struct tenant_pool *w = z->tenant_pool;
    struct sg_error own = {0};
    int r;

    if (!i) {
        unusable(z, e);
        return;
    }
    w->n_out--; /* it does not keep the tenant pool in use */
    z->home = i;
    z->state = LOADING;
    loop_watch(&w->server->loop, &z->home_end, OPS(i)->process(i), EPOLLIN);
    loop_timer_set(&w->server->loop, &z->timer, clock_ns() + LOAD_NS);
    r = kernels_broker(w, &own);
    if (r == 0)
        r = OPS(i)->kernels->load(i, kernels_imports(w), &own);
    if (r < 0)
        unusable(z, &own);
}

/* ---- wanting --------------------------------------------------------------------------------- */

/* One that is being made is waited for, and stays. */
static bool make_room(struct tenant_pool *w)
{
    struct zygote *oldest = NULL;
    size_t n = 0;

    LIST_EACH(struct zygote, z, &w->zygotes, link) {
        n++;
        if ((z->state == READY || z->state == UNUSABLE) &&
            (!oldest || z->used_ns < oldest->used_ns))
            oldest = z;
    }
    if (n < ZYGOTES_MAX)
        return true;
    if (oldest)
        end(oldest);
    return oldest;
}

static struct zygote *begin(struct tenant_pool *w, struct snapshot *of)
{
    struct zygote *z;

    if (!kernels_may_be_copied(w) || !snapshot_is_named(of) || fds_level() >= FDS_LOW ||
        w->server->pressure.state >= PRESSURE_POOLS || !make_room(w))
        return NULL;
    z = NEW(struct zygote, .tenant_pool = w, .of = snapshot_use(of),
            .word = {.fd = -1, .fn = on_word}, .home_end = {.fd = -1, .fn = on_home_ended},
            .timer.fn = on_timer, .used_ns = clock_ns(),
            .request = {.snapshot = of, .bare = true, .done = on_home});
    z->request.arg = z;
    tenant_pools_usual_limits(w->server, &z->request.limits);
    list_push(&w->zygotes, &z->link);
    tenant_pool_request(w, &z->request);
    return find(w, of); /* unless that failed at once */
}

/* Negative: it gets no kernel, and e says why if that is the template's doing. */
static int copy(struct zygote *z, struct instance *i, struct sg_error *e)
{
    if (z->state == UNUSABLE) {
        *e = z->why;
        return -ENOEXEC;
    }
    z->used_ns = clock_ns();
    loop_timer_set(&z->tenant_pool->server->loop, &z->timer, z->used_ns + IDLE_NS);
    if (OPS(i)->kernels->python_changed(i))
        return err_set(e, SG_ERR_UNSUPPORTED, -ESTALE,
                       "the sandbox has written to /usr or to Python's packages");
    return OPS(i)->kernels->ask(i, z->frozen_kernels, z->was, e);
}

bool zygotes_want(struct tenant_pool *w, struct snapshot *of, struct instance *i, const char *id)
{
    struct zygote *z = find(w, of);
    struct sg_error e = {0}, own;
    int r = -ENODEV;

    if (!z)
        z = begin(w, of);
    if (z && z->state != READY && z->state != UNUSABLE)
        return false;
    if (z)
        r = copy(z, i, &e);
    if (r < 0 && r != -EALREADY) { /* -EALREADY: a kernel is on its way */
        const char *why = z ? e.message : "there is no zygote for it";

        OPS(i)->kernels->refuse(i, &own);
        log_sandbox(z ? LEVEL_WARN : LEVEL_DEBUG, FAULT_SANDBOX, id, "its kernel starts cold: %s",
                    why);
        sandbox_kernel_is_cold(USER(i), why);
    }
    return true;
}

void zygotes_expect(struct tenant_pool *w, struct snapshot *of)
{
    if (!find(w, of))
        begin(w, of);
}

bool zygotes_feed(struct tenant_pool *w, struct snapshot *of, struct instance *i)
{
    const struct zygote *z = find(w, of);
    struct sg_error e;

    return z && z->state == READY && fds_level() < FDS_LOW &&
           OPS(i)->kernels->ask(i, z->frozen_kernels, z->was, &e) == 0;
}

/* ---- news of the broker ---------------------------------------------------------------------- */

/* The broker has looked into strangers' kernels: it may say anything at any time. */
static bool is_due(const struct zygote *z, const struct kernel_news *news)
{
    if (news->kind == NEWS_LOST)
        return (z->state == FREEZING || z->state == READY) &&
               z->frozen_kernels == news->frozen_kernels;
    return z->state == (news->kind == NEWS_KERNEL ? LOADING : FREEZING);
}

static int go_on(struct zygote *z, const struct kernel_news *news, struct sg_error *e)
{
    struct loop *l = &z->tenant_pool->server->loop;

    if (!is_due(z, news))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the broker answered what was not asked");
    if (news->kind == NEWS_KERNEL) {
        loop_watch(l, &z->word, OPS(z->home)->kernels->loading(z->home), EPOLLIN);
    } else if (news->kind == NEWS_HELD) {
        OPS(z->home)->kernels->unload(z->home);
        return OPS(z->home)->fork->go(z->home, false, e);
    } else if (news->kind == NEWS_WENT) {
        z->state = READY;
        loop_timer_set(l, &z->timer, clock_ns() + IDLE_NS);
        log_line(LEVEL_DEBUG, "a zygote of tenant '%s' is ready", z->tenant_pool->tenant);
        sandboxes_ask_again(z->tenant_pool->server, z->tenant_pool);
    }
    return 0;
}

bool zygotes_told(struct tenant_pool *w, const struct kernel_news *news, int r,
                  const struct sg_error *e)
{
    struct zygote *z = news->kind == NEWS_LOST
                           ? LIST_FIND(struct zygote, at, &w->zygotes, link, is_due(at, news))
                           : find_home(w, news->instance);
    int report = news->report, written = news->written;
    struct sg_error own = {0};

    if (!z)
        return false;
    close_p(&report);
    close_p(&written);
    if (news->kind == NEWS_LOST) {
        end(z);
        sandboxes_ask_again(w->server, w);
        return true;
    }
    if (r == 0) {
        r = go_on(z, news, &own);
        e = &own;
    }
    if (r < 0)
        unusable(z, e);
    return true;
}

/* The end of one may begin another, and end any other for that. */
void zygotes_let_go(struct tenant_pool *w)
{
    struct zygote *z;

    while ((z = LIST_FIND(struct zygote, at, &w->zygotes, link, at->state == READY)))
        end(z);
}

void zygotes_broker_gone(struct tenant_pool *w)
{
    struct sg_error e = {.message = "the process that copies kernels has ended"};
    struct zygote *z;

    while ((z = LIST_FIND(struct zygote, at, &w->zygotes, link,
                          at->state == LOADING || at->state == FREEZING)))
        rest(z, &e);
    zygotes_let_go(w);
    sandboxes_ask_again(w->server, w); /* which may begin others, and end these */
}

uint32_t zygotes_count(const struct tenant_pool *w)
{
    uint32_t n = 0;

    LIST_EACH(const struct zygote, z, &w->zygotes, link)
        n += z->state == READY;
    return n;
}

void zygotes_stop(struct tenant_pool *w)
{
    LIST_EACH(struct zygote, z, &w->zygotes, link)
        forget(z);
}
