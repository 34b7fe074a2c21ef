/* Making a moment of a guest (ORDER_CHECKPOINT), while its kernels stand still for about a
 * millisecond. docs/internals/fork.md tells why in this order.
 *
 *   instance_hold --NEWS_STILL--> files_freeze --root--> agent --LINE_ROOT--+
 *                      |   |                |  nothing written                +--> instance_go
 *                      |   +--NEWS_HELD-----+---------------------------------+        |
 *                      v in the way                                                    | NEWS_WENT
 *                   refused                                 files_seal --> named --> answered
 *
 * While the broker copies the kernels, the sandbox moves to its new root, and another is made ready
 * for the order that follows (unborn.h).
 *
 * Whatever fails drops the moment; the guest goes on, in its new root if it had come there. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/guest_impl.h"
#include "warden/sandboxes/kernels.h"
#include "warden/server.h"
#include "warden/sandboxes/squash.h"
#include "warden/sandboxes/unborn.h"
#include "warden/layers/strata.h"

#define KEEP_NS 8000000000ull /* more than TWIN_HELD_MS: by then it runs again in any case */

static void forget_fork(struct guest *g)
{
    moment_release(steal_ptr(&g->fork.moment));
    close_p(&g->fork.report);
    g->fork = (struct guest_fork){.report = -1};
}

/* With the broker's report if there is one: it says what is in the way. */
static void fail(struct guest *g, int r, const struct sg_error *e)
{
    struct order_answer a = {.code = r, .error_kind = (int32_t)e->kind};

    log_sandbox(r == -EBUSY ? LEVEL_DEBUG : LEVEL_WARN, LAYER_INFRASTRUCTURE, g->id,
                "no checkpoint: %s", e->message);
    snprintf(a.message, sizeof a.message, "%.255s", e->message);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    g->job.answered = true;
    forget_fork(g);
    guest_settle(g, RUNNING);
}

/* What stands still goes on where it is. */
static void fail_still(struct guest *g, int r, const struct sg_error *e)
{
    instance_go(g->instance, g->fork.moved, NULL);
    fail(g, r, e);
}

void guest_fork_abandon(struct guest *g)
{
    if (g->phase == KEEPING)
        instance_go(g->instance, false, NULL);
    if (g->fork.moving)
        instance_files_moved(g->instance, false);
    if (g->job.kind == JOB_BRANCH && (g->job.order.flags & ORDER_LAST) && g->fork.moment)
        moment_forget(g->fork.moment);
    forget_fork(g);
}

/* An agent that does not answer is nothing to go on with. A broker that does not has others to see
 * to, which is not this guest's fault. */
static void on_late(struct timer *timer)
{
    struct guest *g = CONTAINER_OF(timer, struct guest, timer);
    struct sg_error e = {0};

    if (g->fork.moving) {
        log_sandbox(LEVEL_ERROR, LAYER_AGENT, g->id, "its agent does not answer");
        guest_end(g, END_FAILED);
        return;
    }
    err_set(&e, SG_ERR_LIMIT, -ETIMEDOUT, "what copies kernels has too much to do: try again");
    fail_still(g, -ETIMEDOUT, &e);
}

/* ---- the end of it --------------------------------------------------------------------------- */

static void keep(struct guest *g)
{
    struct moment *m = g->fork.moment;
    struct order_answer a = {.stats.memory_used = m->memory_bytes,
                             .flags = m->ward ? TELL_KERNELS : 0,
                             .paused_usec = g->fork.paused_usec};

    moment_name(m, g->job.order.layer);
    front_answer(g->server, &g->job.ticket, &a, g->fork.report);
    if (!ticket_valid(g->server, &g->job.ticket)) /* nobody knows its name */
        moment_forget(m);
    g->job.answered = true;
    forget_fork(g);
    squash_consider(g->server, g);
    guest_settle(g, RUNNING);
}

/* ---- its steps ------------------------------------------------------------------------------- */

void guest_went(struct guest *g, const struct kernel_news *news, int r, const struct sg_error *e)
{
    struct sg_error own = {0};

    if (g->phase != KEEPING)
        return;
    g->fork.paused_usec = news->held_usec;
    if (r == 0 && g->fork.moved) {
        r = instance_files_seal(g->instance, &own);
        e = &own;
    }
    if (r < 0)
        fail(g, r, e);
    else
        keep(g);
}

/* Both the broker and the agent are done. The broker copies kernels when it has seen to those that
 * stand still. */
static void go(struct guest *g)
{
    struct moment *m = g->fork.moment;
    struct sg_error e = {0};
    int r;

    if (!g->fork.held || g->fork.moving)
        return;
    if (g->fork.why.code < 0) {
        e = g->fork.why;
        fail_still(g, e.code, &e);
        return;
    }
    r = instance_go(g->instance, g->fork.moved, &e);
    if (r < 0)
        fail(g, r, &e);
    else if (m->unborn)
        unborn_copy(m->unborn, (g->job.order.flags & ORDER_LAST) != 0);
}

void guest_not_rooted(int code, struct sg_error *e)
{
    enum sg_error_kind kind = code < 0 ? err_kind_of(-code) : SG_ERR_GONE;

    if (code == -EBUSY)
        err_set(e, SG_ERR_GONE, -EBUSY,
                "something was written or started in the sandbox at this moment: try again");
    else if (kind == SG_ERR_LIMIT)
        err_set(e, kind, code, "the sandbox has no room to change to its new root: %s",
                strerror(-code));
    else
        err_set(e, SG_ERR_GONE, -EBUSY,
                "the sandbox could not change to its new root (%s): see to it that its /run/shm is "
                "a directory",
                code < 0 ? strerror(-code) : "it does not say why");
}

void guest_rooted(struct guest *g, int code)
{
    if (!g->fork.moving)
        return;
    g->fork.moving = false;
    g->fork.moved = code == 0;
    instance_files_moved(g->instance, code == 0);
    if (g->phase == BRANCHING) {
        guest_branch_rooted(g, code);
        return;
    }
    if (code != 0)
        guest_not_rooted(code, &g->fork.why);
    go(g);
}

/* A new root, if anything was written; the stack is what is kept. */
static int freeze_files(struct guest *g, struct sg_error *e)
{
    const int *layer = g->layer ? layer_dir(g->layer) : NULL;
    struct moment *m = g->fork.moment;
    int root = -1, r;

    r = instance_files_freeze(g->instance, layer, m->written, &m->stack, &root, e);
    if (r < 0 || root < 0)
        return r;
    r = instance_root_send(g->instance, root, false, e);
    if (r < 0)
        instance_files_moved(g->instance, false);
    else
        g->fork.moving = true;
    return r;
}

void guest_still(struct guest *g, const struct kernel_news *news)
{
    struct moment *m = g->fork.moment;
    struct sg_error e = {0};
    int written = news->written, r;

    if (g->phase != KEEPING) {
        close_p(&written);
        return;
    }
    m->written = written;
    r = freeze_files(g, &e);
    if (r < 0)
        fail_still(g, r, &e);
    else if (g->job.order.flags & ORDER_SOON)
        m->unborn = unborn_begin(m, g->ward, &g->limits);
}

void guest_held(struct guest *g, const struct kernel_news *news, int r, const struct sg_error *e)
{
    struct moment *m = g->fork.moment;
    int report = news->report, written = news->written;

    close_p(&written); /* it is known by now */
    if (g->phase != KEEPING) {
        close_p(&report);
        if (r == 0)
            provider_mould_drop(g->ward->provider, news->mould);
        return;
    }
    g->fork.report = report;
    g->fork.held = true;
    m->memory_bytes = news->memory_bytes;
    if (r < 0 && m->written < 0) { /* it has not been told to stand still */
        fail(g, r, e);
        return;
    }
    if (r < 0)
        g->fork.why = *e;
    else if (news->n_kernels > 0)
        moment_has_mould(m, g->ward, news->mould);
    memcpy(m->kernels, news->kernels, sizeof m->kernels);
    m->n_kernels = news->n_kernels;
    go(g);
}

void guest_checkpoint(struct guest *g, const struct ticket *t, const struct order *o, int note)
{
    struct sg_error e = {0};
    int r = 0;

    if (g->phase != RUNNING)
        r = err_set(&e, SG_ERR_GONE, -EALREADY, "the sandbox does not run, or changes just now");
    else if (!instance_can_freeze(g->instance))
        r = err_set(&e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                    "this host's kernel cannot share a sandbox's files: it takes Linux 6.15");
    if (r < 0) {
        close_p(&note);
        front_answer_error(g->server, t, r, &e);
        return;
    }
    struct moment *m = moment_new(g->server, g->tenant, g->id);
    struct hold_spec spec = {
        .kernels = o->kernels, .n_kernels = o->n_kernels, .keep = (o->flags & ORDER_KEEP) != 0};
    uint64_t mould = 0;

    m->keep = spec.keep;
    m->note = note;
    m->layer = g->layer ? layer_use(g->layer) : NULL;
    g->job = (struct job){.kind = JOB_CHECKPOINT, .ticket = *t, .from = RUNNING, .order = *o};
    g->fork = (struct guest_fork){.moment = m, .report = -1};
    g->phase = KEEPING;
    g->timer.fn = on_late;
    timer_set(&g->server->reactor, &g->timer, clock_ns() + KEEP_NS);
    r = kernels_broker(g->ward, &e);
    if (r == 0)
        r = instance_hold(g->instance, &spec, &mould, &e);
    if (r < 0)
        fail(g, r, &e);
}

void guests_broker_gone(struct server *s, struct ward *w)
{
    struct sg_error e = {0};
    struct guest *next;

    err_set(&e, SG_ERR_LIMIT, -EPIPE, "what copies kernels has ended: try again");
    for (size_t i = 0; i < GUEST_BUCKETS; i++)
        for (struct guest *g = s->guests[i]; g; g = next) {
            next = g->next;
            if (g->ward != w)
                continue;
            if (g->phase == KEEPING && !g->fork.moving) {
                fail(g, -EPIPE, &e);
            } else if (g->phase == KEEPING) {
                g->fork.held = true;
                g->fork.why = e;
            }
            if (g->phase == BRANCHING && !g->fork.moving)
                guest_copied(g, -EPIPE, &e);
        }
}
