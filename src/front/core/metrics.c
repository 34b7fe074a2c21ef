#include "front/core/metrics.h"

#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "lib/uv/handle.h"
#include "front/core/call.h"
#include "front/core/journal.h"
#include "front/core/warden.h"
#include "front/telemetry/figures.h"

#define TICK_MS    250
#define A_TICK_MAX 32                      /* samples a tick: the warden has other work */
#define FIRST_NS   (1000 * 1000 * 1000ull) /* not before: many sandboxes live no longer than that */

/* One sample under way: first the warden's figures, then the agent's. */
struct sample {
    struct sandbox *sandbox;
    struct metric m;
    struct call call;
    void (*done)(void *arg, const struct metric *m);
    void *arg;
};

void sandbox_metrics_restore(struct sandbox_metrics *m, const struct metric *s)
{
    if (!m->ring)
        m->ring = xcalloc(METRICS_KEPT, sizeof(*m->ring));
    if (m->n == METRICS_KEPT) {
        m->first = (m->first + 1) % METRICS_KEPT;
        m->n--;
    }
    m->ring[(m->first + m->n++) % METRICS_KEPT] = *s;
}

static void finish(struct sample *s, bool ok)
{
    s->sandbox->metrics.sampling = false;
    if (ok) {
        sandbox_metrics_restore(&s->sandbox->metrics, &s->m);
        journal_metric(s->sandbox->id, &s->m);
    }
    if (s->done)
        s->done(s->arg, ok ? &s->m : NULL);
    sandbox_unref(s->sandbox);
    free(s);
}

static void on_disk(struct call *c, int status, const char *message UNUSED, const void *result,
                    size_t len)
{
    struct sample *s = c->owner;
    struct wire_reader r = wire_reader_of(result, len);

    s->m.disk_total = wire_get_u64(&r);
    s->m.disk_used = wire_get_u64(&r);
    finish(s, status == 0 && wire_done(&r));
}

/* Returns how much a counter grew since the last sample, and remembers its value. The counter
 * restarts at 0 when the sandbox boots again. */
static uint64_t more_than(uint64_t *told, uint64_t now)
{
    uint64_t more = now > *told ? now - *told : 0;

    *told = now;
    return more;
}

static void tell_limit(struct sandbox *b, enum fault fault, const char *cause, const char *what,
                       uint64_t n)
{
    struct log_about about = {.fault = fault, .sandbox_id = b->id, .tenant = b->spec.tenant};

    if (n == 0)
        return;
    figure_add(FIG_FAILURES, cause, (double)n);
    sandbox_log_add(&b->log, LOG_WARN, fault, 0, "%s: %llu", what, (unsigned long long)n);
    log_with(LEVEL_INFO, &about, "%s: %llu", what, (unsigned long long)n);
}

/* Reports how often the sandbox hit its limits since the last sample. Nobody else would tell why a
 * program died. */
static void tell_limits(struct sandbox *b, const struct order_stats *now)
{
    struct sandbox_metrics *m = &b->metrics;

    tell_limit(b, FAULT_SANDBOX, "sandbox:memory", "it ran out of memory, processes were killed",
               more_than(&m->oom_kills, now->oom_kills));
    tell_limit(b, FAULT_SANDBOX, "sandbox:tenant_memory",
               "the sandboxes of its tenant ran out of memory, processes were killed",
               more_than(&m->tenant_kills, now->tenant_kills));
    tell_limit(b, FAULT_INFRASTRUCTURE, "infrastructure:machine_memory",
               "the machine ran out of memory, processes were killed",
               more_than(&m->machine_kills, now->machine_kills));
    tell_limit(b, FAULT_SANDBOX, "sandbox:processes",
               "it reached its limit of processes, starts were refused",
               more_than(&m->pids_hits, now->pids_hits));
}

static void on_stats(void *arg, const struct warden_answer *w)
{
    const struct order_answer *a = w->a;
    struct sample *s = arg;
    struct sandbox_metrics *m = &s->sandbox->metrics;
    uint64_t now = clock_ns();

    if (w->r < 0) {
        finish(s, false);
        return;
    }
    uint64_t since = m->last_ns ? now - m->last_ns : 0;
    uint64_t used = a->stats.cpu_usec - m->last_cpu_usec;
    s->m = (struct metric){.ms = clock_wall_ms(),
                           .cpu_pct = since ? (float)used * 100000.0f / (float)since : 0,
                           .memory_used = a->stats.memory_used,
                           .memory_cache = a->stats.memory_cache,
                           .memory_total = a->stats.memory_total};
    m->last_ns = now;
    m->last_cpu_usec = a->stats.cpu_usec;
    tell_limits(s->sandbox, &a->stats);
    usage_sampled(s->sandbox, &a->stats);
    s->call = (struct call){.owner = s, .uncounted = true, .on_end = on_disk};
    if (call_begin(&s->call, s->sandbox, OP_DISK, NULL, NULL) < 0)
        finish(s, false);
}

void sandbox_metrics_sample(struct sandbox *b, void (*done)(void *arg, const struct metric *m),
                            void *arg)
{
    struct order o = {.op = ORDER_STATS};
    struct sample *s = NEW(struct sample, .sandbox = sandbox_ref(b), .done = done, .arg = arg);

    b->metrics.sampling = true;
    memcpy(o.id, b->id, sizeof(o.id));
    warden_order(b->front, &o, -1, on_stats, s);
}

static bool is_due(const struct sandbox *b, uint64_t now)
{
    const struct sandbox_metrics *m = &b->metrics;

    return b->state == SANDBOX_RUNNING && b->busy == BUSY_NO && !m->sampling &&
           (m->last_ns ? m->last_ns + METRICS_EVERY_MS * 1000000ull : b->seen_ns + FIRST_NS) <= now;
}

static void on_tick(uv_timer_t *timer)
{
    const struct front *f = timer->data;
    uint64_t now = clock_ns();
    unsigned n = 0;

    SANDBOXES_EACH(b, f)
        if (n < A_TICK_MAX && is_due(b, now)) {
            sandbox_metrics_sample(b, NULL, NULL);
            n++;
        }
}

void metrics_start(struct front *f)
{
    static uv_timer_t timer;

    timer_every(f->loop, &timer, TICK_MS, on_tick, f);
}

void sandbox_metrics_done(struct sandbox_metrics *m)
{
    free(m->ring);
    *m = (struct sandbox_metrics){0};
}

uint32_t sandbox_metrics_count(const struct sandbox_metrics *m)
{
    return m->n;
}

const struct metric *sandbox_metrics_get(const struct sandbox_metrics *m, uint32_t i)
{
    return &m->ring[(m->first + i) % METRICS_KEPT];
}
