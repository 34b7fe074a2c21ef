#include "front/core/figures_told.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "front/core/guard.h"
#include "front/core/warden.h"
#include "front/telemetry/figures.h"

#define KINDS_MAX 160

/* How many findings of one kind the guard had when it was last asked. */
struct found {
    char kind[64];
    double n;
};

static struct {
    void (*told)(void);
    bool warden_owes, guard_owes;
    struct found found[KINDS_MAX];
    size_t n_found;
    double guard_started; /* start of the guard that answered last; 0: none */
} state;

/* ---- processes ------------------------------------------------------------------------------- */

void figures_set_process(const char *process, const struct order_process *p)
{
    figure_set(FIG_UP, process, 1);
    figure_total(FIG_CPU, process, (double)p->cpu_usec / 1e6);
    figure_set(FIG_RESIDENT, process, (double)p->resident_bytes);
    figure_set(FIG_FDS, process, (double)p->open_fds);
    figure_set(FIG_FDS_MAX, process, (double)p->max_fds);
    figure_set(FIG_STARTED, process, (double)p->started_ms / 1e3);
}

static void forget_process(const char *process)
{
    static const enum figure figures[] = {FIG_CPU, FIG_RESIDENT, FIG_FDS, FIG_FDS_MAX, FIG_STARTED};

    figure_set(FIG_UP, process, 0);
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
        figure_forget(figures[i], process);
}

/* ---- the warden ------------------------------------------------------------------------------ */

static void forget_warden(void)
{
    static const char *const bytes[] = {"limit", "reserved", "used", "available"};

    forget_process("warden");
    figure_forget(FIG_POOL, NULL);
    figure_forget(FIG_ZYGOTES, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
        figure_forget(FIG_MEMORY_BUDGET, bytes[i]);
    figure_forget(FIG_MEMORY_PRESSURE, NULL);
}

static void set_budget(const struct order_figures *f)
{
    figure_set(FIG_MEMORY_BUDGET, "limit", (double)f->memory_limit);
    figure_set(FIG_MEMORY_BUDGET, "reserved", (double)f->memory_reserved);
    figure_set(FIG_MEMORY_BUDGET, "used", (double)f->memory_used);
    figure_set(FIG_MEMORY_BUDGET, "available", (double)f->memory_available);
    figure_set(FIG_MEMORY_PRESSURE, NULL, f->memory_pressure);
    figure_total(FIG_MEMORY_RELIEF, "pool", (double)f->pools_let_go);
    figure_total(FIG_MEMORY_RELIEF, "checkpoint", (double)f->kernels_let_go);
    figure_total(FIG_MEMORY_RELIEF, "create", (double)f->creates_refused);
}

static void set_faults(const struct order_figures *f)
{
    static const char *const whys[] = {"exited", "killed", "stopped", "silent"};
    _Static_assert(ARRAY_SIZE(whys) == PROCESS_FAULT_MAX_, "every fault has a name");
    char label[64];

    for (enum process p = 0; p < PROCESS_MAX_; p++)
        for (enum process_fault why = 0; why < PROCESS_FAULT_MAX_; why++) {
            snprintf(label, sizeof(label), "%s:%s", process_name(p), whys[why]);
            figure_total(FIG_FAULTS, label, (double)f->faults[p][why]);
        }
}

static void on_warden(void *arg UNUSED, const struct warden_answer *w)
{
    struct order_figures f;

    state.warden_owes = false;
    if (w->r == 0 && *w->fd >= 0 && pread(*w->fd, &f, sizeof(f), 0) == (ssize_t)sizeof(f)) {
        figures_set_process("warden", &f.warden);
        figure_set(FIG_POOL, NULL, f.pool);
        figure_set(FIG_ZYGOTES, NULL, f.zygotes);
        figure_total(FIG_WARDEN_SANDBOXES, "made", (double)f.made);
        figure_total(FIG_WARDEN_SANDBOXES, "pooled", (double)f.pooled);
        figure_total(FIG_WARDEN_SANDBOXES, "ended", (double)f.ended);
        set_faults(&f);
        set_budget(&f);
    } else {
        forget_warden();
    }
    state.told();
}

/* ---- the guard ------------------------------------------------------------------------------- */

static struct found *found_of(const char *kind)
{
    for (size_t i = 0; i < state.n_found; i++)
        if (strncmp(state.found[i].kind, kind, sizeof(state.found[i].kind) - 1) == 0)
            return &state.found[i];
    if (state.n_found == KINDS_MAX)
        return NULL;
    struct found *f = &state.found[state.n_found++];
    *f = (struct found){0};
    snprintf(f->kind, sizeof(f->kind), "%s", kind);
    return f;
}

/* Adds the guard's new findings to the figures; only the difference is added, since the front
 * counts findings of the same kinds. Findings from before this front first asked were counted by
 * the front before it. A new guard begins at 0. */
static void add_sanitised(json_t *kinds, bool first)
{
    const char *kind;
    json_t *v;

    json_object_foreach(kinds, kind, v)
    {
        struct found *f = found_of(kind);
        double n = json_number_value(v);

        if (!f)
            continue;
        if (!first && n > f->n)
            figure_add(FIG_SANITISED, kind, n - f->n);
        f->n = n;
    }
}

static double number(const json_t *o, const char *key)
{
    double n = json_number_value(json_object_get(o, key));

    return n >= 0 && n < 1e18 ? n : 0;
}

static void take_guard(json_t *told)
{
    const json_t *process = json_object_get(told, "process"), *dns = json_object_get(told, "dns");
    struct order_process p = {.cpu_usec = (uint64_t)(number(process, "cpuSeconds") * 1e6),
                              .resident_bytes = (uint64_t)number(process, "residentBytes"),
                              .open_fds = (uint64_t)number(process, "openFds"),
                              .max_fds = (uint64_t)number(process, "maxFds"),
                              .started_ms = (int64_t)number(process, "startedMs")};
    double started = (double)p.started_ms;

    figures_set_process("guard", &p);
    if (started != state.guard_started)
        state.n_found = 0;
    add_sanitised(json_object_get(told, "sanitised"), state.guard_started == 0);
    state.guard_started = started;
    figure_total(FIG_DNS, "allowed", number(dns, "allowed"));
    figure_total(FIG_DNS, "blocked", number(dns, "blocked"));
}

static void on_guard(void *arg UNUSED, int r, const void *payload, size_t len, int fd)
{
    json_t *told = r == 0 ? json_loadb(payload, len, JSON_REJECT_DUPLICATES, NULL) : NULL;

    close_p(&fd);
    state.guard_owes = false;
    if (json_is_object(told))
        take_guard(told);
    else
        forget_process("guard");
    json_decref(told);
    state.told();
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Both are marked as owing an answer before the first is asked, since an answer may come at
 * once. */
void figures_told_ask(struct front *f, void (*told)(void))
{
    struct order o = {.op = ORDER_FIGURES};
    bool ask_warden = !state.warden_owes, ask_guard = !state.guard_owes;

    state.told = told;
    state.warden_owes = state.guard_owes = true;
    if (ask_warden)
        warden_order(f, &o, -1, on_warden, NULL);
    if (ask_guard)
        guard_ask(f, ASK_FIGURES, NULL, NULL, NULL, 0, on_guard, NULL);
}

bool figures_told_all(void)
{
    return !state.warden_owes && !state.guard_owes;
}

void figures_told_close(void)
{
    if (state.warden_owes)
        forget_warden();
    if (state.guard_owes)
        forget_process("guard");
}
