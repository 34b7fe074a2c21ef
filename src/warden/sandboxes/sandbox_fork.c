/* Makes a checkpoint of a sandbox (ORDER_CHECKPOINT), while its kernels stand still for about a
 * millisecond. docs/internals/fork.md tells why in this order.
 *
 *   instance_hold
 *     |
 *     +--NEWS_STILL--> files are frozen --root--> agent --LINE_ROOT_DONE--+
 *     |                      |  nothing written                           +--> instance_go
 *     |                      +--------------------------------------------+        |
 *     +--NEWS_HELD--> kernels are copied ---------------------------------+        |  NEWS_WENT
 *     |                                                                            v
 *     +--something is in the way--> refused    answered <-- named <-- files are sealed
 *
 * While the broker copies the kernels, the sandbox moves to its new root, and another sandbox is
 * made ready for the order that follows (fork_start.h).
 *
 * If any step fails, the checkpoint is dropped. The sandbox goes on, in its new root if it had
 * arrived there. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/sandboxes/kernels.h"
#include "warden/server.h"
#include "warden/sandboxes/squash.h"
#include "warden/sandboxes/fork_start.h"
#include "warden/layers/layer_stack.h"

#define KEEP_NS 8000000000ull /* more than TWIN_HELD_MS: the sandbox runs again by then */

static void forget_fork(struct sandbox *g)
{
    checkpoint_release(steal_ptr(&g->fork.checkpoint));
    close_p(&g->fork.report);
    g->fork = (struct sandbox_fork){.report = -1};
}

/* Answers with the broker's report, if there is one: it says what is in the way. */
static void fail(struct sandbox *g, int r, const struct sg_error *e)
{
    struct order_answer a = {.code = r, .error_kind = (int32_t)e->kind};

    log_sandbox(r == -EBUSY ? LEVEL_DEBUG : LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id,
                "cannot make a checkpoint: %s", e->message);
    snprintf(a.message, sizeof a.message, "%.255s", e->message);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    g->job.answered = true;
    forget_fork(g);
    sandbox_settle(g, RUNNING);
}

/* Lets the sandbox go on where it is. The order is answered when the broker no longer holds the
 * sandbox (sandbox_went): whoever tries again at once must not find it held. */
static void fail_still(struct sandbox *g, const struct sg_error *e)
{
    struct sg_error why = *e;

    g->fork.why = why;
    if (OPS(g->instance)->fork->go(g->instance, g->fork.moved, NULL) < 0)
        fail(g, why.code, &why);
}

void sandbox_fork_abandon(struct sandbox *g)
{
    if (g->phase == KEEPING)
        OPS(g->instance)->fork->go(g->instance, false, NULL);
    if (g->fork.moving)
        OPS(g->instance)->files->moved(g->instance, false);
    if (g->job.kind == JOB_BRANCH && (g->job.order.flags & ORDER_LAST) && g->fork.checkpoint)
        checkpoint_forget(g->fork.checkpoint);
    forget_fork(g);
}

/* A sandbox whose agent does not answer is useless, and is ended. A broker that does not answer is
 * busy with others, which is not this sandbox's fault. */
static void on_late(struct timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);
    struct sg_error e = {0};

    if (g->fork.moving) {
        log_sandbox(LEVEL_ERROR, FAULT_AGENT, g->id, "the agent does not answer");
        sandbox_end(g, END_FAILED);
        return;
    }
    err_set(&e, SG_ERR_LIMIT, -ETIMEDOUT, "too many forks at once: try again in a moment");
    OPS(g->instance)->fork->go(g->instance, g->fork.moved, NULL);
    fail(g, -ETIMEDOUT, &e);
}

/* ---- the checkpoint is made ------------------------------------------------------------------ */

static void keep(struct sandbox *g)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct order_answer a = {.stats.memory_used = m->memory_bytes,
                             .flags = m->tenant_pool ? TELL_KERNELS : 0,
                             .paused_usec = g->fork.paused_usec};

    checkpoint_name(m, g->job.order.snapshot);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    if (!ticket_valid(g->server, &g->job.ticket)) /* no front knows its name */
        checkpoint_forget(m);
    g->job.answered = true;
    forget_fork(g);
    squash_consider(g->server, g);
    sandbox_settle(g, RUNNING);
}

/* ---- the steps ------------------------------------------------------------------------------- */

void sandbox_went(struct sandbox *g, const struct kernel_news *news, int r,
                  const struct sg_error *e)
{
    struct sg_error own = {0};

    if (g->phase != KEEPING)
        return;
    if (g->fork.why.code < 0) {
        own = g->fork.why;
        fail(g, own.code, &own);
        return;
    }
    g->fork.paused_usec = news->held_usec;
    if (r == 0 && g->fork.moved) {
        r = OPS(g->instance)->files->seal(g->instance, &own);
        e = &own;
    }
    if (r < 0)
        fail(g, r, e);
    else
        keep(g);
}

/* Goes on when both the broker and the agent are done. The fork start's kernels come after this:
 * the broker copies them once it has dealt with the kernels that stand still. */
static void go(struct sandbox *g)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct sg_error e = {0};
    int r;

    if (!g->fork.held || g->fork.moving)
        return;
    if (g->fork.why.code < 0) {
        fail_still(g, &g->fork.why);
        return;
    }
    r = OPS(g->instance)->fork->go(g->instance, g->fork.moved, &e);
    if (r < 0)
        fail(g, r, &e);
    else if (m->fork_start)
        fork_start_copy(m->fork_start, (g->job.order.flags & ORDER_LAST) != 0);
}

void sandbox_not_rooted(int code, struct sg_error *e)
{
    enum sg_error_kind kind = code < 0 ? err_kind_of(-code) : SG_ERR_GONE;

    if (code == -EBUSY)
        err_set(e, SG_ERR_GONE, -EBUSY,
                "a program wrote a file or started while the sandbox was copied: try again");
    else if (kind == SG_ERR_LIMIT)
        err_set(e, kind, code, "the sandbox has no room to change to its new root: %s",
                strerror(-code));
    else
        err_set(e, SG_ERR_GONE, -EBUSY,
                "the sandbox could not change to its new root (%s): make sure that its /run/shm is "
                "a directory",
                code < 0 ? strerror(-code) : "no reason given");
}

void sandbox_rooted(struct sandbox *g, int code)
{
    if (!g->fork.moving)
        return;
    g->fork.moving = false;
    g->fork.moved = code == 0;
    OPS(g->instance)->files->moved(g->instance, code == 0);
    if (g->phase == BRANCHING) {
        sandbox_branch_rooted(g, code);
        return;
    }
    if (code != 0)
        sandbox_not_rooted(code, &g->fork.why);
    go(g);
}

/* Makes a new root, if anything was written; the checkpoint keeps the stack. */
static int freeze_files(struct sandbox *g, struct sg_error *e)
{
    const int *snapshot = g->snapshot ? snapshot_dir(g->snapshot) : NULL;
    struct checkpoint *m = g->fork.checkpoint;
    int root = -1, r;

    r = OPS(g->instance)->files->freeze(g->instance, snapshot, m->written, &m->stack, &root, e);
    if (r < 0 || root < 0)
        return r;
    r = OPS(g->instance)->files->root_send(g->instance, root, false, e);
    if (r < 0)
        OPS(g->instance)->files->moved(g->instance, false);
    else
        g->fork.moving = true;
    return r;
}

void sandbox_still(struct sandbox *g, const struct kernel_news *news)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct sg_error e = {0};
    int written = news->written, r;

    if (g->phase != KEEPING) {
        close_p(&written);
        return;
    }
    m->written = written;
    r = freeze_files(g, &e);
    if (r < 0)
        g->fork.why = e; /* used when the broker has made its copies */
    else if (g->job.order.flags & ORDER_SOON)
        m->fork_start = fork_start_begin(m, g->tenant_pool, &g->limits);
}

void sandbox_held(struct sandbox *g, const struct kernel_news *news, int r,
                  const struct sg_error *e)
{
    struct checkpoint *m = g->fork.checkpoint;
    int report = news->report, written = news->written;

    close_p(&written); /* NEWS_STILL has brought it already */
    if (g->phase != KEEPING) {
        close_p(&report);
        if (r == 0)
            OPS(g->tenant_pool->provider)
                ->fork->drop(g->tenant_pool->provider, news->frozen_kernels);
        return;
    }
    g->fork.report = report;
    g->fork.held = true;
    m->memory_bytes = news->memory_bytes;
    if (r < 0 && m->written < 0) { /* the sandbox does not stand still */
        fail(g, r, e);
        return;
    }
    if (r < 0)
        g->fork.why = *e;
    else if (news->n_kernels > 0)
        checkpoint_has_frozen_kernels(m, g->tenant_pool, news->frozen_kernels);
    memcpy(m->kernels, news->kernels, sizeof m->kernels);
    m->n_kernels = news->n_kernels;
    go(g);
}

void sandbox_checkpoint(struct sandbox *g, const struct ticket *t, const struct order *o, int note)
{
    struct sg_error e = {0};
    int r = 0;

    if (g->phase != RUNNING)
        r = err_set(&e, SG_ERR_GONE, -EALREADY,
                    "the sandbox is not running, or another operation changes it");
    else if (!OPS(g->instance)->fork || !OPS(g->instance)->files->can_freeze(g->instance))
        r = err_set(&e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                    "sharing a sandbox's files needs Linux 6.15 or later");
    if (r < 0) {
        close_p(&note);
        front_answer_error(g->server, t, r, &e);
        return;
    }
    struct checkpoint *m = checkpoint_new(g->server, g->tenant, g->id);
    struct hold_spec spec = {
        .kernels = o->kernels, .n_kernels = o->n_kernels, .keep = (o->flags & ORDER_KEEP) != 0};
    uint64_t frozen_kernels = 0;

    m->keep = spec.keep;
    m->note = note;
    m->snapshot = g->snapshot ? snapshot_use(g->snapshot) : NULL;
    g->job = (struct job){.kind = JOB_CHECKPOINT, .ticket = *t, .from = RUNNING, .order = *o};
    g->fork = (struct sandbox_fork){.checkpoint = m, .report = -1};
    g->phase = KEEPING;
    g->timer.fn = on_late;
    timer_set(&g->server->reactor, &g->timer, clock_ns() + KEEP_NS);
    r = kernels_broker(g->tenant_pool, &e);
    if (r == 0)
        r = OPS(g->instance)->fork->hold(g->instance, &spec, &frozen_kernels, &e);
    if (r < 0)
        fail(g, r, &e);
}

void sandboxes_broker_gone(struct server *s, struct tenant_pool *w)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_LIMIT, -EPIPE, "the broker of the tenant has ended: try again");
    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id) {
        if (g->tenant_pool != w)
            continue;
        if (g->phase == KEEPING && !g->fork.moving) {
            fail(g, -EPIPE, &e);
        } else if (g->phase == KEEPING) {
            g->fork.held = true;
            g->fork.why = e;
        }
        if (g->phase == BRANCHING && !g->fork.moving)
            sandbox_copied(g, -EPIPE, &e);
    }
}
