/* Jobs of a sandbox: pausing, going on, saving its files. See sandbox.h for the phases. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "wire/ends.h"
#include "lib/log/log.h"
#include "engine/sandbox.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"

#define FREEZE_NS       2000000000ull
#define FREEZE_STEP_NS  100000ull /* between the first looks; grows to a millisecond */
#define FREEZE_AGAIN_NS 200000000ull
#define WAITING_MAX     64

static void take_next_order(struct sandbox *g);
static void boot(struct sandbox *g);
static void freeze(struct sandbox *g);

/* ---- the end of a job ------------------------------------------------------------------------ */

static void answer_error(struct sandbox *g, int r, const struct sg_error *e)
{
    log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", e->message);
    front_answer_error(g->server, &g->job.ticket, r, e);
    g->job.answered = true;
}

static void on_deadline(struct timer *timer);

void sandbox_settle(struct sandbox *g, enum phase phase)
{
    g->phase = phase;
    g->job = (struct job){.kind = JOB_NONE};
    if (g->ending) {
        sandbox_end(g, g->ending);
        return;
    }
    g->timer.fn = on_deadline;
    timer_cancel(&g->server->reactor, &g->timer);
    if (phase == RUNNING && g->deadline_ns)
        timer_set(&g->server->reactor, &g->timer, g->deadline_ns);
    if (phase == RUNNING)
        sandbox_ask_again(g);
    take_next_order(g);
}

/* Tells the front that asked, or, if nobody did, the present front. */
static void tell_paused(struct sandbox *g, enum phase phase)
{
    struct order_answer a = {0};

    g->phase = phase;
    sandbox_describe(g, &a);
    sandbox_usage(g, &a.stats);
    log_sandbox(LEVEL_DEBUG, FAULT_SANDBOX, g->id, phase == PAUSED ? "paused" : "stored");
    if (ticket_valid(g->server, &g->job.ticket)) {
        front_answer(g->server, &g->job.ticket, &a, -1);
    } else {
        a.tell = TELL_PAUSED;
        front_tell(g->server, &a, NULL, 0);
    }
    sandbox_settle(g, phase);
}

static int thaw(struct sandbox *g, struct sg_error *e)
{
    return OPS(g->instance)->pause(g->instance, false, e);
}

static void go_on_running(struct sandbox *g)
{
    struct sg_error e = {0};

    if (thaw(g, &e) == 0) {
        sandbox_settle(g, RUNNING);
        return;
    }
    log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id, "%s", e.message);
    if (e.kind == SG_ERR_LIMIT) { /* no descriptor: stays paused until a resume */
        g->job.ticket = (struct ticket){0};
        tell_paused(g, PAUSED);
        return;
    }
    g->ending = END_FAILED;
    sandbox_settle(g, RUNNING);
}

void sandbox_abandon_job(struct sandbox *g)
{
    struct sg_error e = {0};
    bool ours = g->ending && end_kind(g->ending)->fault == FAULT_INFRASTRUCTURE;
    int r = ours ? err_set(&e, SG_ERR_INTERNAL, -ESHUTDOWN, "the sandbox has ended: %s",
                           end_text(g->ending, g->ending_text))
                 : err_set(&e, SG_ERR_GONE, -ECANCELED, "the sandbox has ended");

    if (g->save)
        snapshot_save_cancel(steal_ptr(&g->save));
    sandbox_fork_abandon(g);
    if (g->job.kind != JOB_NONE && !g->job.answered)
        front_answer_error(g->server, &g->job.ticket, r, &e);
    g->job.kind = JOB_NONE;
    for (struct waiter *w; (w = LIST_POP(struct waiter, &g->waiting, link)); free(w))
        front_answer_error(g->server, &w->ticket, r, &e);
    g->n_waiting = 0;
}

/* ---- booting --------------------------------------------------------------------------------- */

static void on_stowed(void *arg, int r, const struct sg_error *e)
{
    struct sandbox *g = arg;

    (void)r, (void)e;
    tenant_pool_return(g->tenant_pool);
    g->tenant_pool = NULL;
    if (g->new_snapshot) {
        snapshot_release(g->server, g->snapshot);
        g->snapshot = steal_ptr(&g->new_snapshot);
    }
    if (g->ending)
        sandbox_abandon_job(g);
    if (g->ending || g->job.kind == JOB_BOOT)
        sandbox_settle(g, STORED);
    else if (g->job.kind == JOB_RESTART && ticket_valid(g->server, &g->job.ticket))
        boot(g);
    else
        tell_paused(g, STORED);
}

/* The sandbox's files are saved: ends its instance. */
static void stow(struct sandbox *g)
{
    g->phase = STOWING;
    sandbox_drop_instance(g, on_stowed);
}

static void on_booted(void *arg, struct instance *i, const struct sg_error *e)
{
    struct sandbox *g = arg;
    struct order_answer a = {0};
    struct sg_error own = {0};
    int fd;

    if (!i) {
        g->tenant_pool = NULL;
        answer_error(g, e->code, e);
        sandbox_settle(g, STORED);
        return;
    }
    sandbox_adopt(g, i);
    if (g->ending || !ticket_valid(g->server, &g->job.ticket)) {
        g->job.kind = JOB_BOOT;
        stow(g);
        return;
    }
    fd = sandbox_connect(g, &own);
    if (fd < 0) {
        answer_error(g, fd, &own);
        g->job.kind = JOB_BOOT;
        stow(g);
        return;
    }
    g->deadline_ns = g->job.order.deadline_ns;
    g->on_expiry = (enum order_expiry)g->job.order.on_expiry;
    sandbox_describe(g, &a);
    a.state = g->job.from == PAUSED ? STATE_PAUSED : STATE_STORED;
    front_answer(g->server, &g->job.ticket, &a, fd);
    close(fd);
    sandbox_settle(g, RUNNING);
}

/* Limits that the order does not set stay as they were. */
static int change_limits(struct sandbox *g, struct sg_error *e)
{
    struct sg_limits l = g->job.order.limits;

    if (l.memory_bytes == 0)
        l.memory_bytes = g->limits.memory_bytes;
    if (l.disk_bytes == 0) {
        l.disk_bytes = g->limits.disk_bytes;
        l.disk_inodes = g->limits.disk_inodes;
    }
    if (l.cpus_milli == 0)
        l.cpus_milli = g->limits.cpus_milli;
    if (l.pids == 0)
        l.pids = g->limits.pids;
    return limits_complete(&l, &g->limits, e);
}

static void boot(struct sandbox *g)
{
    struct sg_error e = {0};
    int r = change_limits(g, &e);

    if (r == 0)
        r = sandbox_take_share(g, &e);
    if (r == 0)
        r = tenant_pool_get(g->server, g->tenant, &g->tenant_pool, &e);
    if (r < 0) {
        budget_give_back(&g->server->budget, &g->share, 0);
        answer_error(g, r, &e);
        sandbox_settle(g, STORED);
        return;
    }
    g->phase = BOOTING;
    g->request = (struct tenant_pool_request){.limits = g->limits,
                                              .snapshot = g->snapshot,
                                              .done = on_booted,
                                              .on_moved = sandbox_moved,
                                              .arg = g};
    tenant_pool_request(g->tenant_pool, &g->request);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static void back(struct sandbox *g)
{
    if (g->job.from == RUNNING)
        go_on_running(g);
    else
        sandbox_settle(g, g->job.from);
}

static void save_failed(struct sandbox *g, const struct sg_error *e)
{
    answer_error(g, e->code, e);
    /* The sandbox's time is over, and its files cannot be written: keep it paused, in memory. */
    if (g->job.kind == JOB_STORE && g->job.ticket.turn == 0)
        tell_paused(g, PAUSED);
    else
        back(g);
}

static void on_saved(void *arg, struct snapshot *l, uint64_t bytes, const struct sg_error *e)
{
    struct sandbox *g = arg;
    struct order_answer a = {.stats.disk_bytes = bytes};

    g->save = NULL;
    if (!l) {
        save_failed(g, e);
        return;
    }
    if (g->job.kind == JOB_SNAPSHOT) {
        if (!ticket_valid(g->server, &g->job.ticket))
            snapshot_forget(g->server, l); /* no front knows its name */
        snapshot_release(g->server, l);
        front_answer(g->server, &g->job.ticket, &a, -1);
        back(g);
        return;
    }
    g->new_snapshot = l;
    stow(g);
}

static void save(struct sandbox *g)
{
    bool named = g->job.kind == JOB_SNAPSHOT;
    struct save_order o = {.name = named ? g->job.order.snapshot : NULL,
                           .durable = named && (g->job.order.flags & ORDER_DURABLE),
                           .below = g->snapshot,
                           .from = g->instance};
    struct sg_error e = {0};

    g->phase = SAVING;
    g->save = snapshot_save(g->server, &o, on_saved, g, &e);
    if (!g->save)
        save_failed(g, &e);
}

/* ---- freezing -------------------------------------------------------------------------------- */

static void frozen(struct sandbox *g)
{
    if (g->job.kind == JOB_PAUSE)
        tell_paused(g, PAUSED);
    else
        save(g);
}

/* A sandbox whose time is over must not run on: it is ended. */
static void not_frozen(struct sandbox *g, const struct sg_error *e)
{
    answer_error(g, e->code, e);
    if (g->job.ticket.turn == 0)
        sandbox_end(g, END_FAILED);
    else
        go_on_running(g);
}

static void on_freeze_look(struct timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);
    uint64_t now = clock_ns();
    struct sg_error e = {0};

    if (OPS(g->instance)->paused(g->instance)) {
        frozen(g);
        return;
    }
    if (now < g->freeze_until_ns) {
        if (g->freeze_step_ns < 10 * FREEZE_STEP_NS)
            g->freeze_step_ns += FREEZE_STEP_NS / 4;
        timer_set(&g->server->reactor, &g->timer, now + g->freeze_step_ns);
        return;
    }
    err_set(&e, SG_ERR_LIMIT, -ETIMEDOUT, "the sandbox could not be frozen: try again");
    not_frozen(g, &e);
}

static void on_freeze_again(struct timer *timer)
{
    freeze(CONTAINER_OF(timer, struct sandbox, timer));
}

/* Freezing could not even be asked for. If the sandbox's time is over and only descriptors are
 * missing, tries again later, because somebody wants the sandbox's state. */
static void not_asked(struct sandbox *g, const struct sg_error *e)
{
    if (g->job.ticket.turn == 0 && e->kind == SG_ERR_LIMIT) {
        g->timer.fn = on_freeze_again;
        timer_set(&g->server->reactor, &g->timer, clock_ns() + FREEZE_AGAIN_NS);
        return;
    }
    answer_error(g, e->code, e);
    if (g->job.ticket.turn == 0)
        sandbox_end(g, END_FAILED);
    else
        sandbox_settle(g, RUNNING);
}

/* If a kernel is on its way into the sandbox, waits for it, which is short: it would be frozen half
 * made. */
static void freeze(struct sandbox *g)
{
    struct sg_error e = {0};

    g->phase = FREEZING;
    if (kernel_pending(g->instance)) {
        g->timer.fn = on_freeze_again;
        timer_set(&g->server->reactor, &g->timer, clock_ns() + FREEZE_STEP_NS);
        return;
    }
    if (OPS(g->instance)->pause(g->instance, true, &e) < 0) {
        not_asked(g, &e);
        return;
    }
    g->freeze_until_ns = clock_ns() + FREEZE_NS;
    g->freeze_step_ns = FREEZE_STEP_NS;
    g->timer.fn = on_freeze_look;
    on_freeze_look(&g->timer);
}

/* ---- beginning a job ------------------------------------------------------------------------- */

static void begin(struct sandbox *g, enum job_kind kind, const struct ticket *t,
                  const struct order *o)
{
    g->job = (struct job){.kind = kind, .ticket = *t, .from = g->phase};
    if (o)
        g->job.order = *o;
    timer_cancel(&g->server->reactor, &g->timer);
    if (kind == JOB_BOOT)
        boot(g);
    else if (g->phase == RUNNING)
        freeze(g);
    else
        save(g);
}

static void on_deadline(struct timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);
    struct ticket nobody = {0};

    log_sandbox(LEVEL_DEBUG, FAULT_SANDBOX, g->id, "the timeout has expired");
    if (g->on_expiry == EXPIRY_KILL)
        sandbox_end(g, END_EXPIRED);
    else
        begin(g, g->on_expiry == EXPIRY_PAUSE ? JOB_PAUSE : JOB_STORE, &nobody, NULL);
}

static void refuse(struct sandbox *g, const struct ticket *t, const char *why)
{
    struct sg_error e = {0};
    int r = err_set(&e, SG_ERR_INVALID, -EALREADY, "%s", why);

    front_answer_error(g->server, t, r, &e);
    take_next_order(g);
}

/* Thawing takes no time, so this is no job. */
static void resume_memory(struct sandbox *g, const struct ticket *t, const struct order *o)
{
    struct order_answer a = {0};
    struct sg_error e = {0};
    int r = thaw(g, &e);

    if (r < 0) {
        front_answer_error(g->server, t, r, &e);
        if (e.kind == SG_ERR_LIMIT)
            take_next_order(g);
        else
            sandbox_end(g, END_FAILED);
        return;
    }
    g->deadline_ns = o->deadline_ns;
    g->on_expiry = (enum order_expiry)o->on_expiry;
    sandbox_describe(g, &a); /* tells the state before the change */
    front_answer(g->server, t, &a, -1);
    sandbox_settle(g, RUNNING);
}

static void resume(struct sandbox *g, const struct ticket *t, const struct order *o)
{
    bool anew = (o->flags & ORDER_FILES_ONLY) != 0;

    if (g->phase == RUNNING)
        refuse(g, t, "the sandbox runs already");
    else if (g->phase == PAUSED && !anew)
        resume_memory(g, t, o);
    else
        begin(g, g->phase == PAUSED ? JOB_RESTART : JOB_BOOT, t, o);
}

static void dispatch(struct sandbox *g, const struct ticket *t, const struct order *o)
{
    bool files = (o->flags & ORDER_FILES_ONLY) != 0;

    if (o->op == ORDER_RESUME)
        resume(g, t, o);
    else if (o->op == ORDER_SNAPSHOT)
        begin(g, JOB_SNAPSHOT, t, o);
    else if (g->phase == STORED || (g->phase == PAUSED && !files))
        refuse(g, t, "the sandbox is paused already");
    else
        begin(g, files ? JOB_STORE : JOB_PAUSE, t, o);
}

static void take_next_order(struct sandbox *g)
{
    struct waiter *w;

    while ((w = LIST_POP(struct waiter, &g->waiting, link))) {
        struct waiter copy = *w;
        g->n_waiting--;
        free(w);
        if (!ticket_valid(g->server, &copy.ticket))
            continue;
        dispatch(g, &copy.ticket, &copy.order);
        return;
    }
}

void sandbox_order(struct sandbox *g, const struct ticket *t, const struct order *o)
{
    struct waiter *w;
    struct sg_error e = {0};

    if (g->phase == RUNNING || g->phase == PAUSED || g->phase == STORED) {
        dispatch(g, t, o);
        return;
    }
    if (g->phase == ENDING || g->ending || g->n_waiting == WAITING_MAX) {
        front_answer_error(g->server, t,
                           g->n_waiting == WAITING_MAX
                               ? err_set(&e, SG_ERR_LIMIT, -EBUSY,
                                         "too many operations wait for this sandbox: try again")
                               : err_set(&e, SG_ERR_GONE, -ENOENT, "the sandbox is ending"),
                           &e);
        return;
    }
    w = xcalloc(1, sizeof *w);
    w->ticket = *t;
    w->order = *o;
    list_append(&g->waiting, &w->link);
    g->n_waiting++;
}
