/* Branches: a sandbox that is made from a checkpoint, or that goes back to one.
 *
 *   take, carry --root--> agent, which ends all that runs
 *               --LINE_ROOT_DONE--> a copy of each kernel --> answered
 *
 * If any step fails for a sandbox that is being made, nothing of it is left. A sandbox that goes
 * back has lost its processes by then: if its kernels end on the way, it has the files, and the
 * answer is an error. So it is checked beforehand whether the checkpoint has its kernels at all
 * (ORDER_WHOLE). */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"

#define BRANCH_NS 15000000000ull
#define LOOK_NS   100000ull

static void begin(struct sandbox *g);

static void drop_checkpoint(struct sandbox *g)
{
    checkpoint_release(steal_ptr(&g->fork.checkpoint));
}

void action_rewound(struct sandbox *g, const struct happening *h UNUSED)
{
    struct order_answer a = {.flags = g->fork.n_copied > 0 ? TELL_KERNELS : 0};

    front_answer(g->server, &g->job.ticket, &a, -1);
    drop_checkpoint(g);
}

void action_not_rewound(struct sandbox *g, const struct happening *h)
{
    log_sandbox(LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id, "%s", h->e->message);
    front_answer_error(g->server, &g->job.ticket, h->r, h->e);
    drop_checkpoint(g);
}

void action_branched(struct sandbox *g, const struct happening *h)
{
    uint32_t flags = g->fork.n_copied > 0 ? TELL_KERNELS : 0;

    if (g->job.order.flags & ORDER_LAST)
        checkpoint_forget(g->fork.checkpoint);
    drop_checkpoint(g);
    if (flags)
        g->steps.kernels = sandbox_step(g);
    sandbox_made(g, flags, h->fd);
}

static void done(struct sandbox *g)
{
    struct happening h = {.fd = -1};
    struct sg_error e = {0};

    if (g->phase == BRANCHING)
        h.fd = sandbox_connect(g, &e);
    if (g->phase == BRANCHING && h.fd < 0)
        sandbox_fork_fail(g, h.fd, &e);
    else
        sandbox_happens(g, ON_DONE, &h);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* If nobody else will want the frozen kernel, it becomes the sandbox's kernel itself, and is not
 * copied. */
static bool is_last(const struct sandbox *g)
{
    const struct checkpoint *m = g->fork.checkpoint;
    bool named_by_us = (g->job.order.flags & ORDER_LAST) && m->name[0];

    return g->phase == BRANCHING && m->users == (named_by_us ? 2 : 1) &&
           (named_by_us || !m->name[0]);
}

/* Whether the checkpoint's kernels are lost: they have ended, or the tenant has another domain by
 * now. */
static bool is_lost(const struct sandbox *g, const struct checkpoint *m)
{
    return m->n_kernels > 0 && m->tenant_pool != g->tenant_pool;
}

static int say_lost(const struct checkpoint *m, struct sg_error *e)
{
    return err_set(e, SG_ERR_GONE, -EOWNERDEAD, "the kernels of checkpoint %s are gone", m->name);
}

static void copy_next(struct sandbox *g)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct sg_error e = {0};
    int r;

    bool wanted = g->phase == REWINDING || (g->job.order.flags & ORDER_STATE);

    if (!wanted || g->fork.n_copied == m->n_kernels) {
        done(g);
        return;
    }
    if (is_lost(g, m)) {
        if (m->tenant_pool)
            checkpoint_without_frozen_kernels(m);
        if (g->job.order.flags & ORDER_WHOLE)
            sandbox_fork_fail(g, say_lost(m, &e), &e);
        else
            done(g);
        return;
    }
    r = OPS(g->instance)
            ->kernels->copy(g->instance, m->frozen_kernels, m->kernels[g->fork.n_copied],
                            is_last(g), &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
}

/* A copy failed: the broker has ended, or the kernel itself is the reason, by the directory it
 * works in or the files it has open. */
static void not_copied(struct sandbox *g, int r, const struct sg_error *e)
{
    struct sg_error why = *e;

    if (e->kind != SG_ERR_LIMIT)
        r = err_in_the_way(&why, err_wrap(&why, r,
                                          "a kernel cannot be copied: make sure that its directory "
                                          "and its open files still exist"));
    sandbox_fork_fail(g, r, &why);
}

void action_copied(struct sandbox *g, const struct happening *h)
{
    g->fork.n_copied++;
    if (h->r < 0)
        not_copied(g, h->r, h->e);
    else
        copy_next(g);
}

bool sandbox_copied(struct sandbox *g, int r, const struct sg_error *e)
{
    bool branches = g->phase == BRANCHING || g->phase == REWINDING;

    if (!branches || g->fork.moving || !g->fork.moved)
        return false;
    sandbox_happens(g, ON_COPIED, &(struct happening){.r = r, .e = e});
    return true;
}

void action_branch_broker_gone(struct sandbox *g, const struct happening *h)
{
    sandbox_copied(g, h->r, h->e);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void take_snapshot_name(struct sandbox *g)
{
    struct snapshot *old = g->snapshot;

    g->snapshot = g->fork.checkpoint->snapshot ? snapshot_use(g->fork.checkpoint->snapshot) : NULL;
    snapshot_release(old);
}

void action_branch_mounted(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};

    if (h->r < 0)
        sandbox_fork_fail(g, sandbox_not_mounted(g, h->r, &e), &e);
    else
        copy_next(g);
}

/* Copies of kernels may have files of volumes open. A sandbox that goes back has its volumes: they
 * went along with its root. */
static void mount_and_copy(struct sandbox *g)
{
    struct sg_error e = {0};
    int r;

    if (g->phase == REWINDING || g->volumes.n == 0) {
        copy_next(g);
        return;
    }
    r = sandbox_mount(g, &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
}

void action_branch_rooted(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};

    if (!sandbox_took_root(g, h->r))
        return;
    if (h->r == 0) {
        take_snapshot_name(g);
        g->steps.files = sandbox_step(g);
        mount_and_copy(g);
        return;
    }
    sandbox_not_rooted(h->r, &e);
    sandbox_fork_fail(g, e.code, &e);
}

static void take_files(struct sandbox *g)
{
    struct sg_error e = {0};
    int r = OPS(g->instance)->files->take(g->instance, g->fork.checkpoint->stack, &e);

    if (r == 0)
        r = sandbox_move(g, &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
}

void action_branch_carried(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};
    int r = h->r;

    if (r < 0)
        e = *h->e;
    else
        r = sandbox_send_root(g, &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
}

static void on_late(struct loop_timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);

    log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id,
                "the sandbox failed to start: its copies were not ready in %llu s",
                BRANCH_NS / 1000000000ull);
    sandbox_end(g, END_FAILED);
}

static void on_look(struct loop_timer *timer)
{
    begin(CONTAINER_OF(timer, struct sandbox, timer));
}

/* If a kernel is on its way into the sandbox, waits for it, so that it is ended with the rest. */
static void begin(struct sandbox *g)
{
    if (kernel_pending(g->instance)) {
        g->timer.fn = on_look;
        loop_timer_set(&g->server->loop, &g->timer, clock_ns() + LOOK_NS);
        return;
    }
    g->timer.fn = on_late;
    loop_timer_set(&g->server->loop, &g->timer, clock_ns() + BRANCH_NS);
    take_files(g);
}

/* Goes on with a fork start. Its first kernel is there, or on its way, or has not been asked for
 * yet. */
static void go_on_ready(struct sandbox *g)
{
    struct sg_error e = {0};
    int r = OPS(g->instance)->kernels->hand_over(g->instance, &e);

    if (r < 0)
        sandbox_fork_fail(g, r, &e);
    else if (r == 1)
        sandbox_copied(g, 0, NULL);
    else if (!kernel_pending(g->instance))
        copy_next(g);
}

void action_branch(struct sandbox *g, const struct happening *h)
{
    if (!h->ready) {
        begin(g);
        return;
    }
    g->fork.moving = !h->rooted;
    g->fork.moved = h->rooted;
    g->timer.fn = on_late;
    loop_timer_set(&g->server->loop, &g->timer, clock_ns() + BRANCH_NS);
    if (h->rooted) {
        take_snapshot_name(g);
        go_on_ready(g);
    }
}

void action_rewind(struct sandbox *g, const struct happening *h)
{
    g->fork = (struct sandbox_fork){.checkpoint = checkpoint_use(h->checkpoint), .report = -1};
    begin(g);
}

void sandbox_back_to(struct sandbox *g, const struct ticket *t, const struct order *o,
                     struct checkpoint *m)
{
    struct sg_error e = {0};

    if (g->phase == RUNNING && (o->flags & ORDER_WHOLE) && is_lost(g, m))
        front_answer_error(g->server, t, say_lost(m, &e), &e);
    else
        sandbox_happens(g, ON_REWIND,
                        &(struct happening){.ticket = t, .order = o, .checkpoint = m});
}
