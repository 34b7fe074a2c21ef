/* OP_KERNEL_EXECUTE: the queue of a context, the cell that runs, and the stream that follows it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/environ.h"
#include "inside/agent/kernels.h"
#include "inside/agent/own_ports.h"

#define NOTE_STUCK \
    "the kernel did not stop when it was interrupted, and was killed: its variables are gone"

int request_variables(struct wire_reader *r, struct strbuf *ret, struct sg_error *e)
{
    AUTO(strings_done) struct strings s = {0};
    const uint8_t *from = r->p;
    int res = environ_read_variables(r, &s, e);

    if (res < 0)
        return res;
    strbuf_add(ret, from, (size_t)(r->p - from));
    return ret->truncated ? err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory") : 0;
}

static void tell_end(struct execution *x, enum kernel_end how, uint32_t code, uint64_t memory_limit)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(32);

    wire_put_u32(&out, how);
    wire_put_u32(&out, code);
    wire_put_u32(&out, x->timed_out);
    wire_put_u64(&out, memory_limit);
    op_end(&x->op, &out);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void enqueue(struct context *c, struct execution *x)
{
    x->context = c;
    list_append(&c->waiting, &x->link);
    c->n_waiting++;
}

/* Afterwards the execution has no context. */
static void dequeue(struct execution *x)
{
    list_remove(&x->link);
    x->context->n_waiting--;
    x->context = NULL;
}

static struct execution *first_waiting(const struct context *c)
{
    return LIST_FIRST(struct execution, &c->waiting, link);
}

void context_end_waiting(struct context *c, enum kernel_end how)
{
    struct execution *x;

    while ((x = first_waiting(c))) {
        dequeue(x);
        tell_end(x, how, 0, 0);
    }
}

void context_fail_waiting(struct context *c, const struct sg_error *e)
{
    struct execution *x;

    while ((x = first_waiting(c))) {
        dequeue(x);
        op_fail(&x->op, e);
    }
}

/* ---- the cell that runs ---------------------------------------------------------------------- */

static void tell_executing(struct context *c, struct execution *x)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(KERNEL_NOTE_MAX + 64);

    wire_put_u32(&out, c->cells);
    wire_put_str(&out, c->note ? c->note : "");
    chan_event(c->agent->chan, x->op.stream, EVENT_EXECUTING, out.buf, out.len);
    c->note = NULL;
}

void kernel_variables(struct kernel *k, char what, const struct strbuf *list)
{
    AUTO(strings_done) struct strings s = {0};
    struct wire_reader r = wire_reader_of(list->buf, list->len);

    if (environ_read_variables(&r, &s, NULL) == 0)
        for (size_t i = 0; i < s.n; i++)
            kernel_queue(k, what, s.v[i]);
}

static void run_next(struct context *c)
{
    struct execution *x = first_waiting(c);

    dequeue(x);
    x->context = c;
    c->running = x;
    c->busy = true;
    c->cells++;
    c->memory = memory_look(c->agent);
    tell_executing(c, x);
    if (x->timeout_ms > 0)
        countdown_start(&c->limit, x->timeout_ms);
    kernel_variables(c->kernel, 'V', &x->cell_env);
    kernel_run(c->kernel, c->cells, &x->code);
}

void context_advance(struct context *c)
{
    struct execution *x = first_waiting(c);

    if (c->busy || !x || c->agent->kernels.hold)
        return;
    if (!c->kernel && !c->wants_twin && !countdown_runs(&c->again)) {
        strbuf_done(&c->env);
        c->env = x->env;
        strbuf_init(&x->env, c->env.max);
        context_start(c); /* calls context_advance again if there is a kernel now */
        return;
    }
    if (c->kernel && c->kernel->packets.ready && kernel_is_there(c->kernel))
        run_next(c);
}

/* How a twin ended is not known: then what is counted must do. */
static uint64_t memory_limit(struct context *c, enum kernel_end how, uint32_t code)
{
    bool killed = code == 128 + SIGKILL || code == KERNEL_CODE_UNKNOWN;

    return how == KERNEL_DIED && killed ? memory_ended(c->agent, &c->memory) : 0;
}

void context_cell_over(struct context *c, enum kernel_end how, uint32_t code)
{
    struct execution *x = c->running;

    c->busy = false;
    c->running = NULL;
    countdown_stop(&c->limit);
    countdown_stop(&c->grace);
    if (x) {
        x->context = NULL;
        tell_end(x, how, code, memory_limit(c, how, code));
    }
    context_advance(c);
    kernels_hold_check(c->agent);
}

void context_interrupt(struct context *c)
{
    if (!c->busy || countdown_runs(&c->grace))
        return;
    kernel_interrupt(c->kernel);
    countdown_start(&c->grace, KERNEL_GRACE_MS);
}

static void on_grace_step(struct countdown *timer)
{
    kernel_interrupt(CONTAINER_OF(timer, struct context, grace)->kernel);
}

static void on_grace_over(struct countdown *timer)
{
    struct context *c = CONTAINER_OF(timer, struct context, grace);

    /* Perhaps the cell has stopped, and the host does not take its output. Then wait longer. */
    if (c->kernel->paused)
        countdown_start(&c->grace, KERNEL_GRACE_MS);
    else
        context_lose_kernel(c, KERNEL_STUCK, 0, NOTE_STUCK);
}

static void on_limit(struct countdown *timer)
{
    struct context *c = CONTAINER_OF(timer, struct context, limit);

    c->running->timed_out = true;
    context_interrupt(c);
}

void context_cells_init(struct context *c)
{
    countdown_init(&c->limit, &c->agent->loop, on_limit);
    countdown_init(&c->grace, &c->agent->loop, on_grace_over);
    c->grace.step = on_grace_step;
}

/* ---- the operation --------------------------------------------------------------------------- */

static void execution_data(struct op *op, uint8_t sub UNUSED, const void *data, size_t len)
{
    struct execution *x = CONTAINER_OF(op, struct execution, op);
    struct kernels *t = &op->agent->kernels;
    struct sg_error e = {0};

    chan_consumed(op->agent->chan, op->stream, len);
    if (len > KERNEL_CODE_MAX - x->code.len)
        err_set(&e, SG_ERR_LIMIT, -E2BIG, "the code is longer than %u MiB: read it from a file",
                KERNEL_CODE_MAX >> 20);
    else if (len > KERNEL_HELD_MAX - t->held)
        err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                "the cells that wait hold more than %u MiB of code: wait for some to end",
                KERNEL_HELD_MAX >> 20);
    else
        strbuf_add(&x->code, data, len);
    if (e.code == 0 && x->code.truncated)
        err_set(&e, SG_ERR_LIMIT, -ENOMEM, "no memory for the code: raise the memory limit");
    if (e.code < 0) {
        op_fail(op, &e);
        return;
    }
    x->held += len;
    t->held += len;
}

/* Since the request came, the context may have been removed, or its queue filled. */
static void execution_eof(struct op *op)
{
    struct execution *x = CONTAINER_OF(op, struct execution, op);
    struct sg_error e = {0};
    struct context *c = context_find(op->agent, x->context_id, &e);

    if (c && c->n_waiting == KERNEL_QUEUE_MAX)
        err_set(&e, SG_ERR_LIMIT, -EAGAIN,
                "%d cells already wait in this context: wait for one to end", KERNEL_QUEUE_MAX);
    if (e.code < 0) {
        op_fail(op, &e);
        return;
    }
    enqueue(c, x);
    context_advance(c);
}

static void execution_resume(struct op *op)
{
    struct execution *x = CONTAINER_OF(op, struct execution, op);

    if (x->context && x->context->running == x)
        kernel_resume(x->context->kernel);
}

static void execution_destroy(struct op *op)
{
    struct execution *x = CONTAINER_OF(op, struct execution, op);
    struct context *c = x->context;

    op->agent->kernels.held -= x->held;
    strbuf_done(&x->env);
    strbuf_done(&x->cell_env);
    strbuf_done(&x->code);
    if (!c)
        return;
    if (c->running != x) {
        dequeue(x);
        return;
    }
    /* Nobody listens any more, but the cell still runs. */
    c->running = NULL;
    countdown_stop(&c->limit);
    kernel_resume(c->kernel);
    context_interrupt(c);
}

static const struct op_ops execution_ops = {.data = execution_data,
                                            .eof = execution_eof,
                                            .resume = execution_resume,
                                            .destroy = execution_destroy};

/* Finds the context by its id, or the default context of a language. NULL: *q->e says why. */
static struct context *request_context(struct request *q)
{
    const char *id = wire_get_str(q->r, KERNEL_ID_LEN);
    const char *name = wire_get_str(q->r, KERNEL_NAME_MAX);
    struct kernel_language language;
    struct context *c;

    if (q->r->bad || (id[0] && name[0])) {
        err_set(q->e, SG_ERR_INVALID, -EINVAL, "the request names no context or language, or both");
        return NULL;
    }
    if (id[0])
        return context_find(q->agent, id, q->e);
    kernel_language_name(name, language.name);
    c = context_of_language(q->agent, language.name);
    if (c)
        return c; /* the language was checked when the context was made */
    return kernel_language_find(name, &language, q->e) < 0
               ? NULL
               : context_default(q->agent, &language, q->e);
}

int kernel_execute(struct request *q)
{
    struct context *c = request_context(q);
    AUTO(strbuf_done) struct strbuf env = strbuf_upto(OPS_OPEN_MAX);
    AUTO(strbuf_done) struct strbuf cell_env = strbuf_upto(OPS_OPEN_MAX);
    struct kernels *t = &q->agent->kernels;
    uint64_t timeout_ms = wire_get_u64(q->r);
    int res = c ? request_variables(q->r, &env, q->e) : q->e->code;

    if (res == 0)
        res = request_variables(q->r, &cell_env, q->e);
    if (res == 0)
        res = request_done(q);
    if (res == 0 && env.len + cell_env.len > KERNEL_HELD_MAX - t->held)
        res = err_set(q->e, SG_ERR_LIMIT, -EAGAIN,
                      "the cells that wait hold too much code: wait for some to end");
    if (res < 0)
        return res;
    own_ports_open(q->agent);
    struct execution *x = op_new(q, &execution_ops, sizeof(*x));
    chan_set_mark(q->stream, KERNEL_PACKET_MAX);
    memcpy(x->context_id, c->id, sizeof(x->context_id));
    x->timeout_ms = timeout_ms;
    strbuf_init(&x->code, KERNEL_CODE_MAX);
    x->env = env;
    x->cell_env = cell_env;
    env = cell_env = strbuf_upto(0);
    x->held = x->env.len + x->cell_env.len;
    t->held += x->held;
    return 0;
}
