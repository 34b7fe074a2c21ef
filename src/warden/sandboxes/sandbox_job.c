/* Jobs of a sandbox: pausing, going on, saving its files. See sandbox_life.h for the states. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "wire/ends.h"
#include "lib/log/log.h"
#include "warden/host/limits.h"
#include "warden/sandboxes/teardown.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"

#define FREEZE_NS       2000000000ull
#define FREEZE_STEP_NS  100000ull /* between the first looks; grows to a millisecond */
#define FREEZE_AGAIN_NS 200000000ull

/* ---- the end of a job ------------------------------------------------------------------------ */

static void answer_error(struct sandbox *g, int r, const struct sg_error *e)
{
    log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", e->message);
    front_answer_error(g->server, &g->job.ticket, r, e);
    g->job.answered = true;
}

/* Tells the front that asked, or, if nobody did, the present front. */
void action_paused(struct sandbox *g, const struct happening *h UNUSED)
{
    struct order_answer a = {0};

    sandbox_describe(g, &a);
    sandbox_usage(g, &a.stats);
    log_sandbox(LEVEL_DEBUG, FAULT_SANDBOX, g->id, "%s", phase_rules[g->phase].name);
    if (ticket_valid(g->server, &g->job.ticket)) {
        front_answer(g->server, &g->job.ticket, &a, -1);
    } else {
        a.tell = TELL_PAUSED;
        front_tell(g->server, &a, NULL, 0);
    }
}

static int thaw(struct sandbox *g, struct sg_error *e)
{
    return OPS(g->instance)->pause(g->instance, false, e);
}

/* The job has been answered. */
static void go_on_running(struct sandbox *g)
{
    struct sg_error e = {0};

    if (thaw(g, &e) == 0) {
        sandbox_happens(g, ON_THAWED, NULL);
        return;
    }
    log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id, "%s", e.message);
    if (e.kind == SG_ERR_LIMIT) { /* no descriptor: stays paused until a resume */
        g->job.ticket = (struct ticket){0};
        sandbox_happens(g, ON_FROZEN, NULL);
    } else {
        sandbox_end(g, END_FAILED);
    }
}

/* Thawing takes no time, so this is no job. */
void action_thaw(struct sandbox *g, const struct happening *h)
{
    struct order_answer a = {0};
    struct sg_error e = {0};
    int r = thaw(g, &e);

    if (r < 0) {
        front_answer_error(g->server, h->ticket, r, &e);
        if (e.kind == SG_ERR_LIMIT)
            sandbox_take_next_order(g);
        else
            sandbox_end(g, END_FAILED);
        return;
    }
    g->deadline_ns = h->order->deadline_ns;
    g->on_expiry = (enum order_expiry)h->order->on_expiry;
    sandbox_describe(g, &a); /* tells the state before the change */
    front_answer(g->server, h->ticket, &a, -1);
    sandbox_happens(g, ON_THAWED, NULL);
}

/* Nobody has been told of a branch yet: its end is no news of its source, and another can be made.
 */
static int say_ended(enum phase was, struct sg_error *e)
{
    return was == BRANCHING ? err_set(e, SG_ERR_LIMIT, -ECANCELED,
                                      "a new sandbox has ended while it was made: try again")
                            : err_set(e, SG_ERR_GONE, -ECANCELED, "the sandbox has ended");
}

static bool has_ended(const struct sandbox *g, const struct sg_error *e)
{
    struct pollfd end = {.fd = g->instance ? OPS(g->instance)->process(g->instance) : -1,
                         .events = POLLIN};
    bool hung_up = e->kind == SG_ERR_GONE && (e->code == -EPIPE || e->code == -ECONNRESET);

    return hung_up || poll(&end, 1, 0) == 1;
}

int sandbox_judge(const struct sandbox *g, const struct happening *h, struct sg_error *ret)
{
    *ret = *h->e;
    return has_ended(g, h->e) ? say_ended(h->was, ret) : h->r;
}

void sandbox_abandon_job(struct sandbox *g, enum phase was)
{
    struct sg_error e = {0};
    bool ours = was != BRANCHING && g->ending && end_kind(g->ending)->fault == FAULT_INFRASTRUCTURE;
    int r = ours ? err_set(&e, SG_ERR_INTERNAL, -ESHUTDOWN, "the sandbox has ended: %s",
                           end_text(g->ending, g->ending_text))
                 : say_ended(was, &e);

    if (g->save)
        snapshot_save_cancel(steal_ptr(&g->save));
    sandbox_fork_abandon(g, was);
    if (g->job.event != ON_NONE && !g->job.answered)
        front_answer_error(g->server, &g->job.ticket, r, &e);
    g->job.event = ON_NONE;
    for (struct waiter *w; (w = LIST_POP(struct waiter, &g->waiting, link)); free(w))
        front_answer_error(g->server, &w->ticket, r, &e);
    g->n_waiting = 0;
}

/* ---- booting --------------------------------------------------------------------------------- */

static void no_instance(struct sandbox *g)
{
    g->tenant_pool = NULL;
    if (g->ending)
        sandbox_abandon_job(g, STOWING);
}

static void on_stowed(void *arg)
{
    struct sandbox *g = arg;
    bool another = g->job.event == ON_RESTART && ticket_valid(g->server, &g->job.ticket);

    no_instance(g);
    snapshot_release(g->snapshot);
    g->snapshot = steal_ptr(&g->new_snapshot);
    sandbox_happens(g, g->ending ? ON_GONE : another ? ON_ANOTHER : ON_STOWED, NULL);
}

/* The sandbox's files are saved: ends its instance. */
void action_stow(struct sandbox *g, const struct happening *h UNUSED)
{
    sandbox_drop_instance(g, on_stowed);
}

static void on_unbooted(void *arg)
{
    no_instance(arg);
    sandbox_happens(arg, ON_GONE, NULL);
}

void action_unboot(struct sandbox *g, const struct happening *h UNUSED)
{
    sandbox_drop_instance(g, on_unbooted);
}

void action_not_booted(struct sandbox *g, const struct happening *h)
{
    g->tenant_pool = NULL;
    budget_give_back(&g->server->budget, &g->share, 0);
    log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", h->e->message);
    sandbox_answer_not_started(g, h);
}

void action_booted(struct sandbox *g, const struct happening *h)
{
    struct order_answer a = {0};
    int fd = h->fd;

    g->deadline_ns = g->job.order.deadline_ns;
    g->on_expiry = (enum order_expiry)g->job.order.on_expiry;
    sandbox_describe(g, &a);
    a.state = phase_rules[g->job.from].told;
    front_answer(g->server, &g->job.ticket, &a, fd);
    close(fd);
}

/* Opens the channel, if somebody still wants the sandbox. */
static void finish_boot(struct sandbox *g)
{
    struct sg_error e = {0};
    int fd = -1;

    if (!g->ending && ticket_valid(g->server, &g->job.ticket)) {
        fd = sandbox_connect(g, &e);
        if (fd < 0)
            answer_error(g, fd, &e);
    }
    sandbox_happens(g, fd < 0 ? ON_UNWANTED : ON_STARTED, &(struct happening){.fd = fd});
}

void action_boot_mounted(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};

    loop_timer_cancel(&g->server->loop, &g->timer);
    if (h->r == 0) {
        finish_boot(g);
        return;
    }
    answer_error(g, sandbox_not_mounted(g, h->r, &e), &e);
    sandbox_happens(g, ON_UNWANTED, &(struct happening){.fd = -1});
}

static void on_booted(void *arg, struct instance *i, const struct sg_error *e)
{
    struct sandbox *g = arg;

    if (!i) {
        sandbox_happens(g, ON_NOT_STARTED, &(struct happening){.r = e->code, .e = e});
        return;
    }
    sandbox_adopt(g, i);
    if (g->volumes.n > 0 && !g->ending)
        sandbox_happens(g, ON_TO_MOUNT, NULL);
    else
        finish_boot(g);
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

void action_boot(struct sandbox *g, const struct happening *h UNUSED)
{
    struct sg_error e = {0};
    int r = change_limits(g, &e);

    if (r == 0)
        r = sandbox_take_share(g, &e);
    if (r == 0)
        r = tenant_pool_get(g->server, g->tenant, &g->tenant_pool, &e);
    if (r < 0) {
        sandbox_happens(g, ON_NOT_STARTED, &(struct happening){.r = r, .e = &e});
        return;
    }
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
        sandbox_happens(g, ON_BACK, NULL);
}

static void save_failed(struct sandbox *g, const struct sg_error *e)
{
    answer_error(g, e->code, e);
    /* The sandbox's time is over, and its files cannot be written: keep it paused, in memory. */
    if (g->job.event == ON_STORE && g->job.ticket.turn == 0)
        sandbox_happens(g, ON_FROZEN, NULL);
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
    if (g->job.event == ON_SNAPSHOT) {
        if (!ticket_valid(g->server, &g->job.ticket))
            snapshot_forget(l); /* no front knows its name */
        snapshot_release(l);
        front_answer(g->server, &g->job.ticket, &a, -1);
        g->job.answered = true;
        back(g);
        return;
    }
    g->new_snapshot = l;
    sandbox_happens(g, ON_SAVED, NULL);
}

void action_save(struct sandbox *g, const struct happening *h UNUSED)
{
    bool named = g->job.event == ON_SNAPSHOT;
    struct save_order o = {.name = named ? g->job.order.snapshot : NULL,
                           .durable = named && (g->job.order.flags & ORDER_DURABLE),
                           .below = g->snapshot,
                           .from = g->instance};
    struct sg_error e = {0};

    g->save = snapshot_save(g->server, &o, on_saved, g, &e);
    if (!g->save)
        save_failed(g, &e);
}

/* ---- freezing -------------------------------------------------------------------------------- */

static void frozen(struct sandbox *g)
{
    sandbox_happens(g, g->job.event == ON_PAUSE ? ON_FROZEN : ON_TO_SAVE, NULL);
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

static void on_freeze_look(struct loop_timer *timer)
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
        loop_timer_set(&g->server->loop, &g->timer, now + g->freeze_step_ns);
        return;
    }
    err_set(&e, SG_ERR_LIMIT, -ETIMEDOUT, "the sandbox could not be frozen: try again");
    not_frozen(g, &e);
}

static void on_freeze_again(struct loop_timer *timer)
{
    action_freeze(CONTAINER_OF(timer, struct sandbox, timer), NULL);
}

/* Freezing could not even be asked for. If the sandbox's time is over and only descriptors are
 * missing, tries again later, because somebody wants the sandbox's state. */
static void not_asked(struct sandbox *g, const struct sg_error *e)
{
    if (g->job.ticket.turn == 0 && e->kind == SG_ERR_LIMIT) {
        g->timer.fn = on_freeze_again;
        loop_timer_set(&g->server->loop, &g->timer, clock_ns() + FREEZE_AGAIN_NS);
        return;
    }
    answer_error(g, e->code, e);
    if (g->job.ticket.turn == 0)
        sandbox_end(g, END_FAILED);
    else
        sandbox_happens(g, ON_THAWED, NULL);
}

/* If a kernel is on its way into the sandbox, waits for it, which is short: it would be frozen half
 * made. */
void action_freeze(struct sandbox *g, const struct happening *h UNUSED)
{
    struct sg_error e = {0};

    if (kernel_pending(g->instance)) {
        g->timer.fn = on_freeze_again;
        loop_timer_set(&g->server->loop, &g->timer, clock_ns() + FREEZE_STEP_NS);
    } else if (OPS(g->instance)->pause(g->instance, true, &e) < 0) {
        not_asked(g, &e);
    } else {
        g->freeze_until_ns = clock_ns() + FREEZE_NS;
        g->freeze_step_ns = FREEZE_STEP_NS;
        g->timer.fn = on_freeze_look;
        on_freeze_look(&g->timer);
    }
}
