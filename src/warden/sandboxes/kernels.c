#include "warden/sandboxes/kernels.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fds.h"
#include "lib/base/fd.h"
#include "lib/log/log.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/sandbox_life.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/sandboxes/zygotes.h"
#include "warden/server.h"

#define REST_NS     1000000000ull
#define REST_MAX_NS (64 * REST_NS)
#define PROVED_NS   REST_NS
/* The packages that `auto` loads besides the standard library take some 150 MB while they load, and
 * 70 MB afterwards. */
#define SCIENCE_ROOM (256ull << 20)

static void rest(struct tenant_pool *w);
static void load_again(struct tenant_pool *w);

const char *kernels_imports(const struct tenant_pool *w)
{
    const char *name = w->server->settings.warm_kernels;

    if (strcmp(name, "standard") == 0 ||
        (strcmp(name, "auto") == 0 && !budget_has_room(&w->server->budget, SCIENCE_ROOM)))
        return "";
    return name;
}

static bool wanted(const struct tenant_pool *w)
{
    return OPS(w->provider)->kernels && !tenant_pool_is_nobodys(w) &&
           strcmp(w->server->settings.warm_kernels, "none") != 0;
}

bool kernels_may_be_copied(const struct tenant_pool *w)
{
    return wanted(w) && !w->kernels.plain && OPS(w->provider)->fork;
}

/* ---- the zygote ------------------------------------------------------------------------------ */

static void leave_home(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;

    loop_unwatch(&w->server->loop, &k->home_end);
    if (!k->home)
        return;
    checkpoints_home_gone(w->server, w);
    w->n_out++; /* until the home is gone */
    teardown_begin(w, steal_ptr(&k->home), NULL, NULL);
}

int kernels_broker(struct tenant_pool *w, struct sg_error *e)
{
    struct loop_source *broker = &w->kernels.broker;
    int r = broker->fd >= 0 ? 0 : OPS(w->provider)->kernels->open(w->provider, e);

    if (r == 0 && broker->fd < 0) {
        loop_watch(&w->server->loop, broker, OPS(w->provider)->kernels->fd(w->provider), EPOLLIN);
        helper_watch(w, PROCESS_BROKER);
    }
    return r;
}

static void load(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;
    struct sg_error e = {0};
    int r = kernels_broker(w, &e);

    if (r == 0)
        r = OPS(w->provider)
                ->kernels->zygote(w->provider, k->home, kernels_imports(w), k->plain, &e);
    k->state = KERNELS_LOADING;
    if (r < 0) {
        log_line(LEVEL_WARN, "kernels will start cold: %s", e.message);
        rest(w);
    }
}

static void on_home_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct tenant_pool *w = CONTAINER_OF(src, struct tenant_pool, kernels.home_end);

    leave_home(w);
    load_again(w);
}

/* The home does not count as a sandbox that keeps the tenant pool in use: n_out goes back. */
static void on_home(void *arg, struct instance *i, const struct sg_error *e)
{
    struct tenant_pool *w = arg;
    struct tenant_pool_kernels *k = &w->kernels;

    if (!i) {
        log_line(LEVEL_WARN, "kernels will start cold: %s", e->message);
        rest(w);
        return;
    }
    w->n_out--;
    k->home = i;
    loop_watch(&w->server->loop, &k->home_end, OPS(i)->process(i), EPOLLIN);
    load(w);
}

static void find_home(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;

    k->state = KERNELS_HOMELESS;
    k->request = (struct tenant_pool_request){.done = on_home, .arg = w};
    tenant_pools_usual_limits(w->server, &k->request.limits);
    tenant_pool_request(w, &k->request);
}

static void on_rested(struct loop_timer *timer)
{
    struct tenant_pool *w = CONTAINER_OF(timer, struct tenant_pool, kernels.rest);

    if (w->broken)
        return;
    if (w->kernels.home)
        load(w);
    else
        find_home(w);
}

/* Each rest is longer than the last, so that a zygote that cannot work is not tried all day. */
static void rest(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;

    k->state = KERNELS_RESTING;
    loop_timer_set(&w->server->loop, &k->rest, clock_ns() + k->rest_ns);
    if (k->rest_ns < REST_MAX_NS)
        k->rest_ns *= 2;
    sandboxes_ask_again(w->server, w);
}

/* The zygote has ended. If it had made kernels, or had lived for a while, the next one will work
 * too, and is loaded at once. */
static void load_again(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;

    if (k->state != KERNELS_READY || (!k->proved && clock_ns() - k->ready_ns < PROVED_NS)) {
        rest(w);
        return;
    }
    k->state = KERNELS_RESTING;
    k->rest_ns = REST_NS;
    k->again = true;
    loop_timer_set(&w->server->loop, &k->rest, clock_ns());
    sandboxes_ask_again(w->server, w);
}

/* ---- kernels --------------------------------------------------------------------------------- */

bool kernels_feed(struct tenant_pool *w, struct instance *i)
{
    struct sg_error e = {0};

    if (w->kernels.state != KERNELS_READY || fds_level() >= FDS_LOW)
        return false;
    int r = OPS(i)->kernels->ask(i, 0, 0, &e);
    /* A busy broker is no trouble: this sandbox's agent starts its kernel itself, if it is
     * asked. */
    if (r < 0)
        log_line(r == -EAGAIN ? LEVEL_DEBUG : LEVEL_WARN, "cannot make a kernel for the pool: %s",
                 e.message);
    return r == 0;
}

static void refuse(struct instance *i)
{
    struct sg_error e;

    if (OPS(i)->kernels->refuse(i, &e) < 0)
        log_line(LEVEL_DEBUG, "%s", e.message);
}

/* Whether the zygote is worth waiting for: only the first time it loads, when it has not failed
 * yet. To load it again takes longer than to start a kernel without it. */
static bool is_coming(const struct tenant_pool *w)
{
    const struct tenant_pool_kernels *k = &w->kernels;

    return k->rest_ns == REST_NS && !k->again &&
           (k->state == KERNELS_HOMELESS || k->state == KERNELS_LOADING ||
            (k->state == KERNELS_RESTING && !k->home));
}

bool kernels_want(struct tenant_pool *w, struct instance *i)
{
    struct sg_error e = {0};

    if (is_coming(w))
        return false;
    bool ready = w->kernels.state == KERNELS_READY;
    int r = ready && fds_level() < FDS_SCARCE ? OPS(i)->kernels->ask(i, 0, 0, &e) : -ENODEV;

    if (r < 0 && r != -EALREADY) { /* -EALREADY: a kernel is on its way */
        refuse(i);
        sandbox_kernel_is_cold(USER(i), e.message[0] ? e.message
                                        : ready      ? "the server has few descriptors left"
                                                     : "the interpreter that kernels are copied "
                                                       "from is not loaded");
    }
    return true;
}

static void on_zygote(struct tenant_pool *w, int r, const struct sg_error *e)
{
    if (r < 0 && e->kind == SG_ERR_UNSUPPORTED && !w->kernels.plain) {
        log_line(LEVEL_INFO, "kernels are made by plain fork: %s", e->message);
        w->kernels.plain = true;
        load(w);
        return;
    }
    if (r < 0) {
        log_line(LEVEL_WARN, "kernels start cold for now: %s", e->message);
        load_again(w);
        return;
    }
    w->kernels.state = KERNELS_READY;
    w->kernels.ready_ns = clock_ns();
    w->kernels.proved = false;
    sandboxes_ask_again(w->server, w);
    loop_want_idle(&w->server->loop); /* pooled sandboxes have no kernels yet */
}

/* Passes news of the broker on to the sandbox. If that has ended, drops the copies: nobody wants
 * them. */
static void tell_sandbox(struct tenant_pool *w, const struct kernel_news *news, int r,
                         const struct sg_error *e)
{
    struct sandbox *g = news->instance ? USER(news->instance) : NULL;
    int report = news->report, written = news->written;

    if (g) {
        sandbox_happens(g,
                        news->kind == NEWS_STILL  ? ON_STILL
                        : news->kind == NEWS_HELD ? ON_HELD
                                                  : ON_WENT,
                        &(struct happening){.news = news, .r = r, .e = e});
        return;
    }
    close_p(&report);
    close_p(&written);
    if (news->kind == NEWS_HELD && r == 0)
        OPS(w->provider)->fork->drop(w->provider, news->frozen_kernels);
}

static void on_broker(struct loop_source *src, uint32_t events UNUSED)
{
    struct tenant_pool *w = CONTAINER_OF(src, struct tenant_pool, kernels.broker);
    struct sg_error e = {0};
    struct kernel_news news;
    int r = OPS(w->provider)->kernels->take(w->provider, &news, &e);

    helper_heard(w, PROCESS_BROKER);
    w->kernels.proved |= news.kind == NEWS_KERNEL && r == 0;
    if (zygotes_told(w, &news, r, &e))
        return;
    if (news.kind == NEWS_ZYGOTE) {
        on_zygote(w, r, &e);
    } else if (news.kind == NEWS_STILL || news.kind == NEWS_HELD || news.kind == NEWS_WENT) {
        tell_sandbox(w, &news, r, &e);
    } else if (news.kind == NEWS_LOST) {
        checkpoints_lost(w->server, w, news.frozen_kernels);
    } else if (news.kind == NEWS_KERNEL && news.instance && USER(news.instance) &&
               sandbox_copied(USER(news.instance), r, &e)) {
        return;
    } else if (news.kind == NEWS_KERNEL && news.instance) {
        tenant_pool_fed(w, news.instance, r == 0);
        if (r < 0) {
            log_line(LEVEL_WARN, "a kernel could not be made: %s", e.message);
            refuse(news.instance);
        }
    } else if (news.kind == NEWS_GONE) {
        loop_unwatch(&w->server->loop, &w->kernels.broker);
        helper_ended(w, PROCESS_BROKER);
        checkpoints_lost(w->server, w, 0);
        zygotes_broker_gone(w);
        sandboxes_broker_gone(w->server, w);
        log_line(LEVEL_WARN, "kernels start cold for now: %s", e.message);
        if (wanted(w))
            load_again(w);
    }
}

void kernels_start(struct tenant_pool *w)
{
    w->kernels =
        (struct tenant_pool_kernels){.broker = {.fd = -1, .fn = on_broker},
                                     .home_end = {.fd = -1, .fn = on_home_ended},
                                     .plain = w->server->settings.kernel_fork == FORK_PLAIN,
                                     .rest.fn = on_rested,
                                     .rest_ns = REST_NS};
    w->kernels.state = wanted(w) ? KERNELS_RESTING : KERNELS_OFF;
    if (wanted(w)) /* by the timer: the request that opened the tenant pool comes first */
        loop_timer_set(&w->server->loop, &w->kernels.rest, clock_ns());
}

void kernels_stop(struct tenant_pool *w)
{
    struct tenant_pool_kernels *k = &w->kernels;

    loop_timer_cancel(&w->server->loop, &k->rest);
    loop_unwatch(&w->server->loop, &k->broker);
    loop_unwatch(&w->server->loop, &k->home_end);
    zygotes_stop(w);
    k->state = KERNELS_OFF;
}
