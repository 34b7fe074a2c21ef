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
 * Files that kernels have open for writing are carried to the new root before it is made, by a files
 * worker (wire/files.h). While the broker copies the kernels, the sandbox moves to its new root, and another sandbox is
 * made ready for the order that follows (fork_start.h).
 *
 * If any step fails, the checkpoint is dropped. The sandbox goes on, in its new root if it had
 * arrived there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/sandboxes/kernels.h"
#include "warden/server.h"
#include "warden/sandboxes/squash.h"
#include "warden/processes/files_worker.h"
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
void action_not_kept(struct sandbox *g, const struct happening *h)
{
    struct sg_error e;
    int r = sandbox_judge(g, h, &e);
    struct order_answer a = {.code = r, .error_kind = (int32_t)e.kind};

    log_sandbox(r == -EBUSY ? LEVEL_DEBUG : LEVEL_WARN, FAULT_INFRASTRUCTURE, g->id,
                "cannot make a checkpoint: %s", e.message);
    snprintf(a.message, sizeof(a.message), "%.255s", e.message);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    forget_fork(g);
}

void sandbox_fork_fail(struct sandbox *g, int r, const struct sg_error *e)
{
    sandbox_happens(g, ON_FAILED, &(struct happening){.r = r, .e = e});
}

/* Lets the sandbox go on where it is. The order is answered when the broker no longer holds the
 * sandbox (action_went): whoever tries again at once must not find it held. */
static void fail_still(struct sandbox *g)
{
    if (OPS(g->instance)->fork->go(g->instance, g->fork.moved, NULL) < 0)
        sandbox_fork_fail(g, g->fork.why.code, &g->fork.why);
}

void sandbox_fork_abandon(struct sandbox *g, enum phase was)
{
    if (was == KEEPING)
        OPS(g->instance)->fork->go(g->instance, false, NULL);
    if (g->fork.carrying)
        files_worker_cancel(steal_ptr(&g->fork.carrying));
    if (g->fork.moving)
        OPS(g->instance)->files->moved(g->instance, false);
    if (was == BRANCHING && (g->job.order.flags & ORDER_LAST) && g->fork.checkpoint)
        checkpoint_forget(g->fork.checkpoint);
    forget_fork(g);
}

/* A sandbox whose agent does not answer is useless, and is ended. A broker that does not answer is
 * busy with others, which is not this sandbox's fault. */
static void on_late(struct loop_timer *timer)
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
    sandbox_fork_fail(g, -ETIMEDOUT, &e);
}

/* ---- the checkpoint is made ------------------------------------------------------------------ */

void action_kept(struct sandbox *g, const struct happening *h UNUSED)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct order_answer a = {.stats.memory_used = m->memory_bytes,
                             .flags = m->tenant_pool ? TELL_KERNELS : 0,
                             .paused_usec = g->fork.paused_usec};

    checkpoint_name(m, g->job.order.snapshot);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    if (!ticket_valid(g->server, &g->job.ticket)) /* no front knows its name */
        checkpoint_forget(m);
    forget_fork(g);
    squash_consider(g->server, g);
}

/* ---- the steps ------------------------------------------------------------------------------- */

void action_went(struct sandbox *g, const struct happening *h)
{
    struct sg_error own = {0};
    struct happening end = {.r = h->r, .e = h->e};

    if (g->fork.why.code < 0) {
        end = (struct happening){.r = g->fork.why.code, .e = &g->fork.why};
    } else {
        g->fork.paused_usec = h->news->held_usec;
        if (h->r == 0 && g->fork.moved)
            end = (struct happening){.r = OPS(g->instance)->files->seal(g->instance, &own),
                                     .e = &own};
    }
    sandbox_happens(g, end.r < 0 ? ON_FAILED : ON_DONE, &end);
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
        fail_still(g);
        return;
    }
    r = OPS(g->instance)->fork->go(g->instance, g->fork.moved, &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
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

bool sandbox_took_root(struct sandbox *g, int code)
{
    if (!g->fork.moving || g->fork.carrying)
        return false;
    g->fork.moving = false;
    g->fork.moved = code == 0;
    OPS(g->instance)->files->moved(g->instance, code == 0);
    return true;
}

void action_keep_rooted(struct sandbox *g, const struct happening *h)
{
    if (!sandbox_took_root(g, h->r))
        return;
    if (h->r != 0)
        sandbox_not_rooted(h->r, &g->fork.why);
    go(g);
}

int sandbox_send_root(struct sandbox *g, struct sg_error *e)
{
    const struct provider_files *files = OPS(g->instance)->files;
    const struct snapshot *from = g->phase == KEEPING ? g->snapshot : g->fork.checkpoint->snapshot;
    int root = -1, r = files->root(g->instance, from ? snapshot_dir(from) : NULL, &root, e);

    if (r == 0) {
        r = files->root_send(g->instance, root, g->phase != KEEPING, e);
        if (r < 0)
            files->moved(g->instance, false);
    }
    g->fork.moving = r == 0;
    return r;
}

static void on_carried(void *arg, const struct files_answer *a)
{
    struct sandbox *g = arg;
    struct sg_error e = {0};

    g->fork.carrying = NULL;
    if (a->code < 0) {
        g->fork.moving = false;
        OPS(g->instance)->files->moved(g->instance, false);
        err_set(&e, (enum sg_error_kind)a->kind, a->code, "%s", a->message);
    }
    sandbox_happens(g, ON_CARRIED, &(struct happening){.r = a->code, .e = &e});
}

static bool has_open_files(const struct checkpoint *m)
{
    struct stat st;

    return m->written >= 0 && fstat(m->written, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

int sandbox_move(struct sandbox *g, struct sg_error *e)
{
    const struct provider_files *files = OPS(g->instance)->files;
    AUTO(free_p) struct files_order *o = NULL;
    struct layer_stack_view view;
    int r;

    if (!has_open_files(g->fork.checkpoint))
        return sandbox_send_root(g, e);
    o = xcalloc(1, sizeof(*o));
    files_order_init(o, FILES_CARRY);
    o->list = g->fork.checkpoint->written;
    files->next_layers(g->instance, &view);
    r = files_order_add_view(o, &view);
    if (r < 0)
        err_set(e, SG_ERR_LIMIT, r, "the sandbox's files are on too many file systems");
    else if (!(g->fork.carrying = files_worker_start(g->server, o, on_carried, g, e)))
        r = -EAGAIN;
    if (r < 0)
        files->moved(g->instance, false);
    g->fork.moving = r == 0;
    return r;
}

void action_keep_carried(struct sandbox *g, const struct happening *h)
{
    struct sg_error e = {0};

    if (h->r < 0)
        g->fork.why = *h->e;
    else if (sandbox_send_root(g, &e) < 0)
        g->fork.why = e;
    go(g);
}

/* Makes a new root, if anything was written; the checkpoint keeps the stack. */
static int freeze_files(struct sandbox *g, struct sg_error *e)
{
    int r = OPS(g->instance)->files->freeze(g->instance, &g->fork.checkpoint->stack, e);

    return r == 0 ? sandbox_move(g, e) : r < 0 ? r : 0;
}

/* The checkpoint was given up meanwhile. */
void action_drop_news(struct sandbox *g, const struct happening *h)
{
    int report = h->news->report, written = h->news->written;

    close_p(&written);
    close_p(&report);
    if (h->event == ON_HELD && h->r == 0)
        OPS(g->tenant_pool->provider)
            ->fork->drop(g->tenant_pool->provider, h->news->frozen_kernels);
}

void action_still(struct sandbox *g, const struct happening *h)
{
    struct checkpoint *m = g->fork.checkpoint;
    struct sg_error e = {0};

    m->written = h->news->written;
    if (freeze_files(g, &e) < 0)
        g->fork.why = e; /* used when the broker has made its copies */
    else if ((g->job.order.flags & ORDER_SOON) && !has_open_files(m) && g->volumes.n == 0)
        m->fork_start = fork_start_begin(m, g->tenant_pool, &g->limits);
}

void action_held(struct sandbox *g, const struct happening *h)
{
    struct checkpoint *m = g->fork.checkpoint;
    const struct kernel_news *news = h->news;
    int written = news->written;

    close_p(&written); /* NEWS_STILL has brought it already */
    g->fork.report = news->report;
    g->fork.held = true;
    m->memory_bytes = news->memory_bytes;
    if (h->r < 0 && m->written < 0) { /* the sandbox does not stand still */
        sandbox_fork_fail(g, h->r, h->e);
        return;
    }
    if (h->r < 0)
        g->fork.why = *h->e;
    else if (news->n_kernels > 0)
        checkpoint_has_frozen_kernels(m, g->tenant_pool, news->frozen_kernels);
    memcpy(m->kernels, news->kernels, sizeof(m->kernels));
    m->n_kernels = news->n_kernels;
    go(g);
}

void action_keep(struct sandbox *g, const struct happening *h)
{
    const struct order *o = &g->job.order;
    struct checkpoint *m = checkpoint_new(g->server, g->tenant, g->id);
    struct hold_spec spec = {
        .kernels = o->kernels, .n_kernels = o->n_kernels, .keep = (o->flags & ORDER_KEEP) != 0};
    uint64_t frozen_kernels = 0;
    struct sg_error e = {0};
    int r;

    m->keep = spec.keep;
    m->note = h->fd;
    m->snapshot = g->snapshot ? snapshot_use(g->snapshot) : NULL;
    g->fork = (struct sandbox_fork){.checkpoint = m, .report = -1};
    g->timer.fn = on_late;
    loop_timer_set(&g->server->loop, &g->timer, clock_ns() + KEEP_NS);
    r = kernels_broker(g->tenant_pool, &e);
    if (r == 0)
        r = OPS(g->instance)->fork->hold(g->instance, &spec, &frozen_kernels, &e);
    if (r < 0)
        sandbox_fork_fail(g, r, &e);
}

void sandbox_checkpoint(struct sandbox *g, const struct ticket *t, const struct order *o, int note)
{
    struct sg_error e = {0};

    if (g->phase == RUNNING &&
        (!OPS(g->instance)->fork || !OPS(g->instance)->files->can_freeze(g->instance))) {
        close_p(&note);
        front_answer_error(g->server, t,
                           err_set(&e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                                   "sharing a sandbox's files needs Linux 6.3 or later, or disks "
                                   "that are not in memory"),
                           &e);
        return;
    }
    sandbox_happens(g, ON_CHECKPOINT, &(struct happening){.ticket = t, .order = o, .fd = note});
}

void action_keep_broker_gone(struct sandbox *g, const struct happening *h)
{
    if (!g->fork.moving) {
        sandbox_fork_fail(g, h->r, h->e);
        return;
    }
    g->fork.held = true;
    g->fork.why = *h->e;
}

void sandboxes_broker_gone(struct server *s, struct tenant_pool *w)
{
    struct sg_error e = {0};
    int r = err_set(&e, SG_ERR_LIMIT, -EPIPE, "the broker of the tenant has ended: try again");

    MAP_EACH(struct sandbox, g, &s->sandboxes, by_id)
        if (g->tenant_pool == w)
            sandbox_happens(g, ON_BROKER_GONE, &(struct happening){.r = r, .e = &e});
}
