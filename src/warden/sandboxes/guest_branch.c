/* A guest from a moment: one that is being made, or one that goes back.
 *
 *   files_take --root--> agent, which ends all that runs --LINE_ROOT--> a copy of each kernel -->
 * answered
 *
 * Of one that is being made nothing is left if any of it fails. One that goes back has lost what
 * ran; if its kernels end on the way it has the files, and the answer is an error. Whether they are
 * there at all is looked at before (ORDER_WHOLE). */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/guest_impl.h"
#include "warden/server.h"

#define BRANCH_NS 15000000000ull
#define LOOK_NS   100000ull

static void begin(struct guest *g);

static void drop_moment(struct guest *g)
{
    struct moment *m = steal_ptr(&g->fork.moment);

    if (g->job.kind == JOB_BRANCH && (g->job.order.flags & ORDER_LAST))
        moment_forget(m);
    moment_release(m);
}

static void fail(struct guest *g, int r, const struct sg_error *e)
{
    log_sandbox(LEVEL_WARN, LAYER_INFRASTRUCTURE, g->id, "%s", e->message);
    front_answer_error(g->server, &g->job.ticket, r, e);
    g->job.answered = true;
    drop_moment(g);
    if (g->job.kind == JOB_BRANCH)
        guest_end(g, END_FAILED);
    else
        guest_settle(g, RUNNING);
}

static void done(struct guest *g)
{
    uint32_t flags = g->fork.n_copied > 0 ? TELL_KERNELS : 0;
    struct sg_error e = {0};

    if (g->job.kind == JOB_REWIND) {
        struct order_answer a = {.flags = flags};

        front_answer(g->server, &g->job.ticket, &a, -1);
        g->job.answered = true;
        drop_moment(g);
        guest_settle(g, RUNNING);
        return;
    }
    if (flags)
        g->steps.kernels = guest_step(g);
    drop_moment(g);
    int r = guest_made(g, flags, &e);
    if (r < 0)
        fail(g, r, &e);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The mould itself becomes the kernel's twin if nobody else will want it. */
static bool is_last(const struct guest *g)
{
    const struct moment *m = g->fork.moment;
    bool named_by_us = (g->job.order.flags & ORDER_LAST) && m->name[0];

    return g->job.kind == JOB_BRANCH && m->users == (named_by_us ? 2 : 1) &&
           (named_by_us || !m->name[0]);
}

/* It had kernels, and they have ended; or the tenant has got another domain since. */
static bool is_lost(const struct guest *g, const struct moment *m)
{
    return m->n_kernels > 0 && m->ward != g->ward;
}

static int say_lost(const struct moment *m, struct sg_error *e)
{
    return err_set(e, SG_ERR_GONE, -EOWNERDEAD, "the kernels of checkpoint %s are gone", m->name);
}

static void copy_next(struct guest *g)
{
    struct moment *m = g->fork.moment;
    struct sg_error e = {0};
    int r;

    bool wanted = g->job.kind == JOB_REWIND || (g->job.order.flags & ORDER_STATE);

    if (!wanted || g->fork.n_copied == m->n_kernels) {
        done(g);
        return;
    }
    if (is_lost(g, m)) {
        if (m->ward)
            moment_without_mould(m);
        if (g->job.order.flags & ORDER_WHOLE)
            fail(g, say_lost(m, &e), &e);
        else
            done(g);
        return;
    }
    r = instance_kernel_copy(g->instance, m->mould, m->kernels[g->fork.n_copied], is_last(g), &e);
    if (r < 0)
        fail(g, r, &e);
}

/* By a broker that has ended, or for what the kernel is: where it works, what it has open. */
static void not_copied(struct guest *g, int r, const struct sg_error *e)
{
    struct sg_error why = *e;

    if (e->kind != SG_ERR_LIMIT)
        r = err_in_the_way(
            &why,
            err_wrap(&why, r,
                     "a kernel cannot be copied, see that its files and directory can be opened"));
    fail(g, r, &why);
}

bool guest_copied(struct guest *g, int r, const struct sg_error *e)
{
    if (g->phase != BRANCHING || g->fork.moving || !g->fork.moved)
        return false;
    g->fork.n_copied++;
    if (r < 0)
        not_copied(g, r, e);
    else
        copy_next(g);
    return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void take_layer(struct guest *g)
{
    struct layer *old = g->layer;

    g->layer = g->fork.moment->layer ? layer_use(g->fork.moment->layer) : NULL;
    layer_release(g->server, old);
}

void guest_branch_rooted(struct guest *g, int code)
{
    struct sg_error e = {0};

    if (code == 0) {
        take_layer(g);
        g->steps.files = guest_step(g);
        copy_next(g);
        return;
    }
    guest_not_rooted(code, &e);
    fail(g, e.code, &e);
}

static void take_files(struct guest *g)
{
    struct moment *m = g->fork.moment;
    const int *layer = m->layer ? layer_dir(m->layer) : NULL;
    struct sg_error e = {0};
    int root = -1;
    int r = instance_files_take(g->instance, m->stack, layer, m->written, &root, &e);

    if (r == 0) {
        r = instance_root_send(g->instance, root, true, &e);
        g->fork.moving = r == 0;
        if (r < 0)
            instance_files_moved(g->instance, false);
    }
    if (r < 0)
        fail(g, r, &e);
}

static void on_late(struct timer *timer)
{
    struct guest *g = CONTAINER_OF(timer, struct guest, timer);

    log_sandbox(LEVEL_ERROR, LAYER_INFRASTRUCTURE, g->id,
                "it did not become what it was to be in %llu s", BRANCH_NS / 1000000000ull);
    guest_end(g, END_FAILED);
}

static void on_look(struct timer *timer)
{
    begin(CONTAINER_OF(timer, struct guest, timer));
}

/* A kernel that is being put into it must be there, to be ended with the rest. */
static void begin(struct guest *g)
{
    if (instance_kernel_pending(g->instance)) {
        g->timer.fn = on_look;
        timer_set(&g->server->reactor, &g->timer, clock_ns() + LOOK_NS);
        return;
    }
    g->timer.fn = on_late;
    timer_set(&g->server->reactor, &g->timer, clock_ns() + BRANCH_NS);
    take_files(g);
}

void guest_branch(struct guest *g)
{
    g->phase = BRANCHING;
    g->job.kind = JOB_BRANCH;
    begin(g);
}

/* Its first kernel is there, or on its way, or has not been asked for yet. */
static void go_on_ready(struct guest *g)
{
    struct sg_error e = {0};
    int r = instance_kernel_hand_over(g->instance, &e);

    if (r < 0)
        fail(g, r, &e);
    else if (r == 1)
        guest_copied(g, 0, NULL);
    else if (!instance_kernel_pending(g->instance))
        copy_next(g);
}

void guest_branch_ready(struct guest *g, bool rooted)
{
    g->phase = BRANCHING;
    g->job.kind = JOB_BRANCH;
    g->fork.moving = !rooted;
    g->fork.moved = rooted;
    g->timer.fn = on_late;
    timer_set(&g->server->reactor, &g->timer, clock_ns() + BRANCH_NS);
    if (rooted) {
        take_layer(g);
        go_on_ready(g);
    }
}

void guest_back_to(struct guest *g, const struct ticket *t, const struct order *o, struct moment *m)
{
    struct sg_error e = {0};
    int r = 0;

    if (g->phase != RUNNING)
        r = err_set(&e, SG_ERR_GONE, -EALREADY, "the sandbox does not run, or changes just now");
    else if ((o->flags & ORDER_WHOLE) && is_lost(g, m))
        r = say_lost(m, &e);
    if (r < 0) {
        front_answer_error(g->server, t, r, &e);
        return;
    }
    g->job = (struct job){.kind = JOB_REWIND, .ticket = *t, .from = RUNNING, .order = *o};
    g->fork = (struct guest_fork){.moment = moment_use(m), .report = -1};
    g->phase = BRANCHING;
    begin(g);
}
