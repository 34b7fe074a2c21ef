/* OP_KERNEL_HOLD: no cell begins while the host copies the sandbox. Kernels stay as they are, and
 * so does the queue; new executions wait in it.
 *
 *   1. Wait until no cell runs.
 *   2. Ask kernels that have threads to let the threads of their libraries rest
 *      (kernels/README.md).
 *   3. Wait until all have, for KERNEL_REST_MS at most.
 *   4. Tell the host.
 *
 * The agent waits for a kernel's answer but does not believe it: the broker, which makes the
 * copies, sees for itself whether the threads rest. A kernel without threads is not asked, so the
 * hold costs it nothing. */
#include <stdio.h>
#include <sys/stat.h>

#include "inside/agent/kernels.h"
#include "inside/agent/launch.h"

#define EVENT_BYTES_MAX (FRAME_PAYLOAD_MAX - 64)

struct holder {
    struct op op;
    struct countdown limit; /* until cells have ended, then until threads rest, then of the hold */
    bool asked;             /* no cell runs, and kernels were asked to rest */
    bool late;              /* the time to rest is over: no longer waits for it */
    bool telling;
    bool told;
    uint64_t last; /* serial of the last context that the host was told */
};

static const struct context *first_busy(const struct agent *a)
{
    return LIST_FIND(const struct context, c, &a->kernels.contexts, link, c->busy);
}

/* A copy that has not woken up yet has all the state it was copied with, so the hold waits for it,
 * even if it would not wait for a cell. */
static const struct context *first_waking(const struct agent *a)
{
    return LIST_FIND(const struct context, c, &a->kernels.contexts, link,
                     c->kernel && c->kernel->was != 0 && !c->kernel->packets.ready);
}

/* Whether the kernel can be copied and has more than one thread. */
static bool has_threads(const struct context *c)
{
    const struct kernel *k = c->kernel;
    char path[32];
    struct stat st;

    if (!k || !k->packets.ready || k->pidfd < 0 || c->language.program != PROGRAM_PYTHON)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)k->child.pid);
    return stat(path, &st) == 0 && st.st_nlink > 3;
}

static void ask_to_rest(struct agent *a)
{
    struct context *c = NULL;

    while ((c = context_after(a, c ? c->serial : 0)))
        if (has_threads(c))
            kernel_rest(c->kernel);
}

static bool some_rest_yet(const struct agent *a)
{
    return LIST_FIND(const struct context, c, &a->kernels.contexts, link,
                     c->kernel && c->kernel->packets.resting);
}

static int say_busy(const struct context *c, struct sg_error *e)
{
    return err_set(e, SG_ERR_LIMIT, -EBUSY, "%s in context %s (%s): wait for it",
                   c->busy ? "a cell runs" : "a copied kernel starts", c->id, c->language.name);
}

/* A kernel that is not ready yet, and no copy, has no state to be copied. */
static void tell_context(struct op *op, const struct context *c)
{
    const struct kernel *k = c->kernel && c->kernel->packets.ready ? c->kernel : NULL;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(EVENT_BYTES_MAX);

    context_put(c, &out);
    wire_put_u32(&out, k && kernel_is_there(k) ? (uint32_t)k->child.pid : 0);
    wire_put_u32(&out, k && k->pidfd >= 0 && c->language.program == PROGRAM_PYTHON);
    if (c->env.len > 0 && c->env.len <= EVENT_BYTES_MAX - out.len)
        strbuf_add(&out, c->env.buf, c->env.len);
    else
        wire_put_u32(&out, 0);
    chan_event(op->agent->chan, op->stream, EVENT_KERNEL, out.buf, out.len);
}

static void hold_go_on(struct op *op)
{
    struct holder *h = CONTAINER_OF(op, struct holder, op);
    struct agent *a = op->agent;
    const struct context *c;

    if (!h->telling) {
        if (first_busy(a) || first_waking(a))
            return;
        if (!h->asked) {
            h->asked = true;
            ask_to_rest(a);
            countdown_start(&h->limit, KERNEL_REST_MS);
        }
        if (some_rest_yet(a) && !h->late)
            return;
        h->telling = true;
        countdown_start(&h->limit, KERNEL_HOLD_MS);
    }
    while (!h->told && op_may_send(op)) {
        c = context_after(a, h->last);
        if (c) {
            tell_context(op, c);
            h->last = c->serial;
        } else {
            a->kernels.launches = launch_count();
            chan_event(a->chan, op->stream, EVENT_HELD, NULL, 0);
            h->told = true;
        }
    }
}

static void on_limit(struct countdown *timer)
{
    struct holder *h = CONTAINER_OF(timer, struct holder, limit);
    const struct context *busy = first_busy(h->op.agent);
    struct sg_error e = {0};

    if (h->asked && !h->telling) {
        h->late = true;
        hold_go_on(&h->op);
        return;
    }
    if (!busy)
        busy = first_waking(h->op.agent);
    if (!h->telling && busy)
        say_busy(busy, &e);
    else
        err_set(&e, SG_ERR_GONE, -ETIMEDOUT,
                "the cells were held for %d s, the longest time, and run again",
                KERNEL_HOLD_MS / 1000);
    op_fail(&h->op, &e);
}

/* Runs as a task: when the channel ends, all its operations end one by one, and no cell may begin
 * in between. */
static void on_release(struct loop_task *task)
{
    struct agent *a = CONTAINER_OF(task, struct agent, kernels.release);
    struct context *c = NULL;

    while ((c = context_after(a, c ? c->serial : 0)))
        context_advance(c);
}

static void hold_destroy(struct op *op)
{
    struct kernels *t = &op->agent->kernels;

    countdown_stop(&CONTAINER_OF(op, struct holder, op)->limit);
    t->hold = NULL;
    t->release.fn = on_release;
    loop_task_queue(&op->agent->loop, &t->release);
}

static const struct op_ops hold_ops = {
    .resume = hold_go_on, .turn = hold_go_on, .destroy = hold_destroy};

/* Runs as a task: the context may be about to go, so look when the current work is done. */
void kernels_hold_check(struct agent *a)
{
    if (a->kernels.hold)
        op_again(a->kernels.hold);
}

int kernel_hold(struct request *q)
{
    struct agent *a = q->agent;
    uint64_t wait_ms = wire_get_u64(q->r);
    int res = request_done(q);

    if (res < 0)
        return res;
    if (a->kernels.hold)
        return err_set(q->e, SG_ERR_LIMIT, -EALREADY,
                       "the sandbox is already being copied: try again");
    if (wait_ms == 0 && first_busy(a))
        return say_busy(first_busy(a), q->e);
    struct holder *h = op_new(q, &hold_ops, sizeof(*h));
    countdown_init(&h->limit, &a->loop, on_limit);
    a->kernels.hold = &h->op;
    countdown_start(&h->limit, first_busy(a) ? wait_ms : KERNEL_HOLD_MS);
    hold_go_on(&h->op);
    return 0;
}
