/* A process's bytes: read while the host takes them, written while the process takes them. */
#include <string.h>
#include <sys/ioctl.h>

#include "agent/proc.h"
#include "base/clock.h"

#define PTY_EOF "\004" /* what a terminal driver takes for the end of input */

static void output_close(struct proc_output *out)
{
    loop_unwatch(&out->proc->op.agent->loop, &out->src);
    close_p(&out->fd);
    out->fd = -1;
    out->owed = 0;
}

static void output_pause(struct proc_output *out)
{
    /* out of the loop altogether: a hang-up would be reported for ever */
    loop_unwatch(&out->proc->op.agent->loop, &out->src);
    out->paused = true;
}

static void output_take(struct proc_output *out, size_t n)
{
    struct proc *p = out->proc;

    if (out->discard)
        out->dropped += n;
    else
        chan_send(p->op.agent->chan, p->op.stream, out->sub, agent_scratch, n);
    out->owed -= n < out->owed ? n : out->owed;
    if (p->exited)
        p->last_output_ns = clock_ns();
}

static void on_output(struct loop_source *src, uint32_t events)
{
    struct proc_output *out = CONTAINER_OF(src, struct proc_output, src);
    struct proc *p = out->proc;
    size_t room = out->discard ? sizeof(agent_scratch) : chan_credit(p->op.stream);

    (void)events;
    if (room == 0) {
        output_pause(out);
        return;
    }
    ssize_t n =
        read(out->fd, agent_scratch, room < sizeof(agent_scratch) ? room : sizeof(agent_scratch));
    if (n > 0)
        output_take(out, (size_t)n);
    else if (n < 0 && (errno == EAGAIN || errno == EINTR))
        out->owed = 0;
    else
        output_close(out); /* a terminal says EIO when its last user has gone */
    if (p->exited)
        proc_check_end(p);
}

static void input_close(struct proc *p)
{
    struct proc_input *in = &p->in;

    if (in->fd < 0)
        return;
    loop_unwatch(&p->op.agent->loop, &in->src);
    close(in->fd);
    in->fd = -1;
    /* The host must not wait for credit for bytes that nobody will ever read. */
    if (in->pending.len > 0 && p->op.stream)
        chan_consumed(p->op.agent->chan, p->op.stream, in->pending.len);
    strbuf_done(&in->pending);
    strbuf_init(&in->pending, CHAN_WINDOW);
}

/* Returns the bytes taken; closes the input if the process no longer reads. */
static size_t input_write(struct proc *p, const void *data, size_t len)
{
    ssize_t n = write(p->in.fd, data, len);

    if (n > 0) {
        chan_consumed(p->op.agent->chan, p->op.stream, (size_t)n);
        return (size_t)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        input_close(p);
    return 0;
}

static void input_finish(struct proc *p)
{
    if (p->tty && write(p->in.fd, PTY_EOF, 1) == 1)
        return; /* output comes from the same terminal, and more input cannot come */
    input_close(p);
}

static void on_input(struct loop_source *src, uint32_t events)
{
    struct proc *p = CONTAINER_OF(src, struct proc, in.src);
    size_t n = input_write(p, p->in.pending.buf, p->in.pending.len);

    (void)events;
    if (p->in.fd < 0)
        return;
    strbuf_consume(&p->in.pending, n);
    if (p->in.pending.len > 0)
        return;
    loop_unwatch(&p->op.agent->loop, src);
    if (p->in.eof)
        input_finish(p);
}

void proc_input_data(struct proc *p, const void *data, size_t len)
{
    struct chan *chan = p->op.agent->chan;
    size_t n = 0;

    if (p->in.fd >= 0 && p->in.pending.len == 0)
        n = input_write(p, data, len);
    if (p->in.fd < 0) {
        chan_consumed(chan, p->op.stream, len - n);
        return;
    }
    if (n == len)
        return;
    strbuf_add(&p->in.pending, (const char *)data + n, len - n);
    if (p->in.pending.truncated ||
        loop_watch(&p->op.agent->loop, &p->in.src, p->in.fd, EPOLLOUT) < 0)
        input_close(p);
}

void proc_input_eof(struct proc *p)
{
    p->in.eof = true;
    if (p->in.fd >= 0 && p->in.pending.len == 0)
        input_finish(p);
}

void proc_stdio_init(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        p->out[i] = (struct proc_output){.src = {.fd = -1, .fn = on_output},
                                         .proc = p,
                                         .fd = -1,
                                         .sub = i == 0 ? CHAN_STDOUT : CHAN_STDERR};
    p->in = (struct proc_input){.src = {.fd = -1, .fn = on_input}, .fd = -1};
    strbuf_init(&p->in.pending, CHAN_WINDOW);
}

int proc_stdio_watch(struct proc *p)
{
    int r = 0;

    for (int i = 0; r == 0 && i < 2; i++)
        if (p->out[i].fd >= 0)
            r = loop_watch(&p->op.agent->loop, &p->out[i].src, p->out[i].fd, EPOLLIN);
    return r;
}

void proc_stdio_close(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        output_close(&p->out[i]);
    input_close(p);
    strbuf_done(&p->in.pending);
}

void proc_stdio_resume(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        struct proc_output *out = &p->out[i];

        if (!out->paused || out->fd < 0)
            continue;
        out->paused = false;
        if (loop_watch(&p->op.agent->loop, &out->src, out->fd, EPOLLIN) < 0)
            output_close(out);
    }
}

void proc_stdio_exited(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        int n = 0;

        if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &n) == 0 && n > 0)
            p->out[i].owed = (size_t)n;
    }
    input_close(p);
}

void proc_discard(struct proc *p, uint32_t sub)
{
    for (int i = 0; i < 2; i++)
        if (p->out[i].sub == sub)
            p->out[i].discard = true;
    proc_stdio_resume(p);
}
