#include "warden/memory/pressure.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/log/log.h"
#include "warden/layers/scratch_store.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"
#include "warden/host/cgroup_place.h"

#define CALM_NS   1000000000ull
#define TIGHT_NS  250000000ull
#define MARGIN    3 /* per cent */
#define KEPT_PART 40

/* Thresholds: with less free than this, in per cent of the budget, the state is at least this
 * one. */
static const unsigned below[PRESSURE_MAX_] = {
    [PRESSURE_POOLS] = 15, [PRESSURE_KERNELS] = 10, [PRESSURE_CREATES] = 5};

static const char *const words[PRESSURE_MAX_] = {
    [PRESSURE_NONE] = "memory is no longer short",
    [PRESSURE_POOLS] = "memory is short: no sandboxes are kept ready",
    [PRESSURE_KERNELS] = "memory is short: kernels of checkpoints are dropped",
    [PRESSURE_CREATES] = "memory is short: new sandboxes are refused"};

/* ---- readings -------------------------------------------------------------------------------- */

static uint64_t free_of(const struct pressure_reading *r)
{
    uint64_t kept = r->total / KEPT_PART;
    uint64_t of_budget = r->limit > r->used ? r->limit - r->used : 0;
    uint64_t of_machine = r->available > kept ? r->available - kept : 0;

    return of_budget < of_machine ? of_budget : of_machine;
}

enum pressure_state pressure_judge(enum pressure_state now, const struct pressure_reading *r)
{
    uint64_t part = r->limit / 100, have = free_of(r);
    enum pressure_state state = PRESSURE_NONE;

    for (enum pressure_state k = PRESSURE_POOLS; k < PRESSURE_MAX_; k++)
        if (have < part * (below[k] + (k <= now ? MARGIN : 0)))
            state = k;
    return state;
}

static bool number_of(const char *text, const char *key, uint64_t *ret)
{
    const char *at = strstr(text, key);
    unsigned long long kib;

    if (!at || sscanf(at + strlen(key), " %llu kB", &kib) != 1)
        return false;
    *ret = (uint64_t)kib * 1024;
    return true;
}

bool pressure_parse(const char *meminfo, struct pressure_reading *ret)
{
    return number_of(meminfo, "MemTotal:", &ret->total) &&
           number_of(meminfo, "MemAvailable:", &ret->available);
}

static bool read_machine(struct pressure_reading *ret)
{
    AUTO(free_p) char *text = NULL;

    return file_read(AT_FDCWD, "/proc/meminfo", 16384, &text, NULL) == 0 &&
           pressure_parse(text, ret);
}

uint64_t pressure_machine(void)
{
    struct pressure_reading r = {0};
    uint64_t group = cgroup_own_memory();

    if (!read_machine(&r))
        r.total = BUDGET_NEW;
    return group && group < r.total ? group : r.total;
}

/* ---- acting ---------------------------------------------------------------------------------- */

static void act(struct server *s)
{
    s->budget.closed = s->pressure.state >= PRESSURE_CREATES;
    if (s->pressure.state >= PRESSURE_POOLS)
        s->pressure.pools += tenant_pools_let_go(s);
    for (unsigned n = 0; s->pressure.state >= PRESSURE_KERNELS && n < KERNELS_AT_ONCE; n++) {
        if (!checkpoints_let_go(s))
            break;
        s->pressure.kernels++;
    }
}

static void on_timer(struct loop_timer *timer)
{
    pressure_look(CONTAINER_OF(timer, struct server, pressure.timer));
}

/* If the figures cannot be read, assumes no pressure: the limits hold all the same. */
void pressure_look(struct server *s)
{
    struct pressure_reading r = {.limit = s->budget.limit};
    enum pressure_state state = PRESSURE_NONE;

    r.used = cgroup_place_uses(s->place);
    if (read_machine(&r))
        state = pressure_judge(s->pressure.state, &r);
    s->budget.used = r.used;
    s->pressure.available = r.available;
    tenant_pools_measure(s);
    scratch_store_share_out(s->scratch_store);
    if (state != s->pressure.state)
        log_line(state > s->pressure.state ? LEVEL_WARN : LEVEL_INFO, "%s: %llu of %llu MiB free",
                 words[state], (unsigned long long)(free_of(&r) >> 20),
                 (unsigned long long)(r.limit >> 20));
    s->pressure.state = state;
    pressure_full_ns(s);
    act(s);
    s->pressure.timer.fn = on_timer;
    loop_timer_set(&s->loop, &s->pressure.timer,
                   clock_ns() + (free_of(&r) / 2 > r.limit / 5 ? CALM_NS : TIGHT_NS));
}

void pressure_stop(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->pressure.timer);
}

uint64_t pressure_full_ns(struct server *s)
{
    uint64_t n = cgroup_place_ooms(s->place);

    if (n > s->pressure.ooms) {
        s->pressure.ooms = n;
        s->pressure.full_ns = clock_ns();
    }
    return s->pressure.full_ns;
}
