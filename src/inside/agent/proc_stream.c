/* The streams of a process: the one that started it, and those of OP_PROCESS_ATTACH. */
#include <sys/wait.h>

#include "inside/agent/disk.h"
#include "inside/agent/proc.h"

static uint64_t microseconds(struct timeval tv)
{
    return (uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec;
}

void proc_tell_started(struct proc *p, struct proc_stream *s)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(16);

    wire_put_u32(&out, (uint32_t)p->child.pid);
    wire_put_u32(&out, p->tty);
    chan_event(p->agent->chan, s->op.stream, EVENT_STARTED, out.buf, out.len);
}

void proc_tell_end(struct proc *p, struct proc_stream *s)
{
    bool killed = WIFSIGNALED(p->status);
    struct disk disk = disk_look();
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(256);

    wire_put_u32(&out, killed ? PROC_KILLED : PROC_EXITED);
    wire_put_u32(&out, (uint32_t)(killed ? WTERMSIG(p->status) : WEXITSTATUS(p->status)));
    wire_put_u64(&out, microseconds(p->usage.ru_utime));
    wire_put_u64(&out, microseconds(p->usage.ru_stime));
    wire_put_u64(&out, (uint64_t)p->usage.ru_maxrss * 1024);
    wire_put_u64(&out, disk.used);
    wire_put_u32(&out, disk.full);
    wire_put_u64(&out, s->dropped[0]);
    wire_put_u64(&out, s->dropped[1]);
    wire_put_u32(&out, p->timed_out);
    wire_put_u64(&out, p->memory_limit);
    op_end(&s->op, &out);
}

static void stream_data(struct op *op, uint8_t sub, const void *data, size_t len)
{
    struct proc_stream *s = CONTAINER_OF(op, struct proc_stream, op);

    if (sub == CHAN_STDIN && s->fed)
        proc_feed_data(&s->feed, data, len);
    else
        chan_consumed(op->agent->chan, op->stream, len);
}

static void stream_eof(struct op *op)
{
    struct proc_stream *s = CONTAINER_OF(op, struct proc_stream, op);

    if (s->fed)
        proc_feed_eof(&s->feed);
}

static void stream_control(struct op *op, uint8_t what, struct wire_reader *r)
{
    struct proc_stream *s = CONTAINER_OF(op, struct proc_stream, op);
    struct proc *p = s->proc;
    uint32_t a = wire_get_u32(r);

    if (r->bad)
        return;
    if (what == CONTROL_SIGNAL) {
        proc_signal(p, a);
    } else if (what == CONTROL_DISCARD && (a == CHAN_STDOUT || a == CHAN_STDERR)) {
        s->discard[a == CHAN_STDERR] = true;
        proc_output_resume(p);
    } else if (what == CONTROL_RESIZE && p->tty) {
        uint32_t cols = wire_get_u32(r);
        if (wire_done(r) && p->out[0].fd >= 0)
            pty_resize(p->out[0].fd, a, cols);
    }
}

/* CANCEL by the owner kills the process; the stream stays until it can tell how the process
 * ended. */
static void stream_cancel(struct op *op)
{
    struct proc_stream *s = CONTAINER_OF(op, struct proc_stream, op);

    if (s->owner)
        proc_kill(s->proc);
    else
        op_cancelled(op);
}

static void stream_resume(struct op *op)
{
    proc_output_resume(CONTAINER_OF(op, struct proc_stream, op)->proc);
}

static void stream_destroy(struct op *op)
{
    struct proc_stream *s = CONTAINER_OF(op, struct proc_stream, op);

    list_remove(&s->link);
    proc_feed_remove(&s->feed);
    if (s->proc->over)
        return;
    if (s->owner)
        proc_kill(s->proc);
    proc_output_resume(s->proc);
}

static const struct op_ops stream_ops = {.data = stream_data,
                                         .eof = stream_eof,
                                         .control = stream_control,
                                         .cancel = stream_cancel,
                                         .resume = stream_resume,
                                         .destroy = stream_destroy};

struct proc_stream *proc_subscribe(struct proc *p, struct request *q)
{
    struct proc_stream *stream = op_new(q, &stream_ops, sizeof(*stream));

    stream->proc = p;
    list_push(&p->streams, &stream->link);
    return stream;
}

int process_attach(struct request *q)
{
    struct proc *p;
    int res = request_process(q, &p);

    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    struct proc_stream *stream = proc_subscribe(p, q);
    if (p->report_fd < 0)
        proc_tell_started(p, stream);
    if (p->over)
        proc_tell_end(p, stream);
    return 0;
}
