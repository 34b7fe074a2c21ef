/* A process from fork to END, and the list of all. See proc.h for its states. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "agent/launch.h"
#include "agent/proc.h"
#include "base/clock.h"

#define SIGNAL_MAX 64

static uint64_t microseconds(struct timeval tv)
{
    return (uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec;
}

/* The root's upper layer is the scratch space, and statfs of an overlay answers for that. */
static void put_disk(struct strbuf *out)
{
    struct statfs fs = {0};
    bool known = statfs("/", &fs) == 0;
    uint64_t used = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree) * (uint64_t)fs.f_bsize;

    wire_put_u64(out, used);
    wire_put_u32(out, (known && fs.f_blocks > 0 && fs.f_bavail == 0 ? 1u : 0u) |
                          (known && fs.f_files > 0 && fs.f_ffree == 0 ? 2u : 0u));
}

static void proc_end(struct proc *p)
{
    bool killed = WIFSIGNALED(p->status);
    struct strbuf out;

    strbuf_init(&out, 256);
    wire_put_u32(&out, killed ? PROC_KILLED : PROC_EXITED);
    wire_put_u32(&out, (uint32_t)(killed ? WTERMSIG(p->status) : WEXITSTATUS(p->status)));
    wire_put_u64(&out, microseconds(p->usage.ru_utime));
    wire_put_u64(&out, microseconds(p->usage.ru_stime));
    wire_put_u64(&out, (uint64_t)p->usage.ru_maxrss * 1024);
    put_disk(&out);
    wire_put_u64(&out, p->out[0].dropped);
    wire_put_u64(&out, p->out[1].dropped);
    op_end(&p->op, &out);
    strbuf_done(&out);
}

/* When to stop waiting for more output; 0: not before what is owed was delivered. */
static uint64_t drain_deadline(const struct proc *p)
{
    uint64_t last = p->exit_ns + GRACE_MAX_NS;
    uint64_t quiet = (p->last_output_ns > p->exit_ns ? p->last_output_ns : p->exit_ns);
    bool owed = p->out[0].owed > 0 || p->out[1].owed > 0;

    if (owed)
        return p->cancelled ? last : 0;
    if (p->cancelled)
        return p->exit_ns;
    quiet += GRACE_QUIET_NS;
    return quiet < last ? quiet : last;
}

void proc_check_end(struct proc *p)
{
    uint64_t deadline = drain_deadline(p);
    bool closed = p->out[0].fd < 0 && p->out[1].fd < 0;

    if (closed || (deadline > 0 && clock_ns() >= deadline))
        proc_end(p);
    else if (deadline > 0)
        loop_timer_set(&p->op.agent->loop, &p->grace, deadline);
}

static void on_grace(struct loop_timer *timer)
{
    proc_check_end(CONTAINER_OF(timer, struct proc, grace));
}

/* Learns whether exec has succeeded. False: the operation has ended. */
static bool take_report(struct proc *p)
{
    struct sg_error e = {0};
    int r = launch_result(p->report_fd, &e);

    if (r == 0)
        return true;
    if (r < 0) {
        reaper_forget(&p->child);
        op_fail(&p->op, &e);
        return false;
    }
    loop_unwatch(&p->op.agent->loop, &p->report);
    close_p(&p->report_fd);
    p->report_fd = -1;

    struct strbuf pid;
    strbuf_init(&pid, 16);
    wire_put_u32(&pid, (uint32_t)p->child.pid);
    chan_event(p->op.agent->chan, p->op.stream, EVENT_STARTED, pid.buf, pid.len);
    strbuf_done(&pid);

    /* Not before: the host hears that a program runs, then what it writes. */
    r = proc_stdio_watch(p);
    if (r < 0) {
        err_set(&e, SG_ERR_LIMIT, r, "watch the program's output: %s", strerror(-r));
        op_fail(&p->op, &e);
    }
    return r == 0;
}

static void on_report(struct loop_source *src, uint32_t events)
{
    (void)events;
    take_report(CONTAINER_OF(src, struct proc, report));
}

static void on_exit_status(struct child *child, int status, const struct rusage *usage)
{
    struct proc *p = CONTAINER_OF(child, struct proc, child);

    if (p->report_fd >= 0 && !take_report(p))
        return;
    p->exited = true;
    p->status = status;
    p->usage = *usage;
    p->exit_ns = clock_ns();
    proc_stdio_exited(p);
    proc_check_end(p);
}

static void proc_signal(const struct proc *p, uint32_t sig)
{
    if (p->exited || sig == 0 || sig > SIGNAL_MAX)
        return;
    /* there is no group yet if the child has not come to setsid */
    if (kill(-p->child.pid, (int)sig) < 0)
        kill(p->child.pid, (int)sig);
}

static void proc_data(struct op *op, uint8_t sub, const void *data, size_t len)
{
    struct proc *p = CONTAINER_OF(op, struct proc, op);

    if (sub == CHAN_STDIN)
        proc_input_data(p, data, len);
    else
        chan_consumed(op->agent->chan, op->stream, len);
}

static void proc_eof(struct op *op)
{
    proc_input_eof(CONTAINER_OF(op, struct proc, op));
}

static void proc_control(struct op *op, uint8_t what, struct wire_reader *r)
{
    struct proc *p = CONTAINER_OF(op, struct proc, op);
    uint32_t a = wire_get_u32(r);

    if (r->bad)
        return;
    if (what == CONTROL_SIGNAL) {
        proc_signal(p, a);
    } else if (what == CONTROL_DISCARD) {
        proc_discard(p, a);
    } else if (what == CONTROL_RESIZE && p->tty) {
        uint32_t cols = wire_get_u32(r);
        if (wire_done(r) && p->out[0].fd >= 0)
            pty_resize(p->out[0].fd, a, cols);
    }
}

static void proc_cancel(struct op *op)
{
    struct proc *p = CONTAINER_OF(op, struct proc, op);

    p->cancelled = true;
    if (p->exited)
        proc_check_end(p);
    else
        session_kill(p->child.pid);
}

static void proc_resume(struct op *op)
{
    proc_stdio_resume(CONTAINER_OF(op, struct proc, op));
}

static void proc_destroy(struct op *op)
{
    struct proc *p = CONTAINER_OF(op, struct proc, op);

    if (!p->exited && p->child.link)
        session_kill(p->child.pid);
    reaper_forget(&p->child);
    loop_timer_cancel(&p->grace);
    loop_unwatch(&op->agent->loop, &p->report);
    close_p(&p->report_fd);
    proc_stdio_close(p);
}

static const struct op_ops proc_ops = {.data = proc_data,
                                       .eof = proc_eof,
                                       .control = proc_control,
                                       .cancel = proc_cancel,
                                       .resume = proc_resume,
                                       .destroy = proc_destroy};

struct proc *proc_new(struct agent *a, struct chan_stream *s, const struct agent_user *as,
                      pid_t pid, int report_fd)
{
    struct proc *p = op_new(a, s, &proc_ops, sizeof(*p));

    proc_stdio_init(p);
    p->as = as;
    p->child = (struct child){.pid = pid, .on_exit = on_exit_status};
    p->report = (struct loop_source){.fd = -1, .fn = on_report};
    p->report_fd = report_fd;
    p->grace.fn = on_grace;
    reaper_add(&a->reaper, &p->child);
    /* Should this fail, the report is read when the process ends. */
    loop_watch(&a->loop, &p->report, report_fd, EPOLLIN);
    return p;
}

static struct proc *as_proc(struct op *op)
{
    return op->ops == &proc_ops ? CONTAINER_OF(op, struct proc, op) : NULL;
}

int process_list(struct agent *a, struct chan_stream *s, struct wire_reader *r, struct sg_error *e)
{
    /* All of them fit into one END: CHAN_STREAMS_MAX of 60 bytes each. */
    size_t n = 0, command_max = COMMAND_MAX - 1;
    struct strbuf out;
    int res = request_done(r, e);

    if (res < 0)
        return res;
    for (struct op *op = a->ops; op; op = op->next)
        n += as_proc(op) && !as_proc(op)->exited;
    if (n > FRAME_PAYLOAD_MAX / 2 / COMMAND_MAX)
        command_max = 24;
    strbuf_init(&out, FRAME_PAYLOAD_MAX - 1024);
    wire_put_u32(&out, (uint32_t)n);
    for (struct op *op = a->ops; op; op = op->next) {
        struct proc *p = as_proc(op);
        char command[COMMAND_MAX];

        if (!p || p->exited)
            continue;
        wire_put_u32(&out, (uint32_t)p->child.pid);
        wire_put_str(&out, p->as->name);
        snprintf(command, sizeof(command), "%.*s", (int)command_max, p->command);
        wire_put_str(&out, command);
    }
    chan_end(a->chan, s, 0, NULL, out.buf, out.len);
    strbuf_done(&out);
    return 0;
}

int process_signal(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                   struct sg_error *e)
{
    uint32_t pid = wire_get_u32(r), sig = wire_get_u32(r);
    int res = request_done(r, e);

    if (res < 0)
        return res;
    if (sig == 0 || sig > SIGNAL_MAX)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "there is no signal %u: use 1 to %d", sig,
                       SIGNAL_MAX);
    for (struct op *op = a->ops; op; op = op->next) {
        struct proc *p = as_proc(op);

        if (!p || p->exited || (uint32_t)p->child.pid != pid)
            continue;
        if (kill(p->child.pid, (int)sig) < 0)
            return err_errno(e, "signal process %u", pid);
        chan_end(a->chan, s, 0, NULL, NULL, 0);
        return 0;
    }
    return err_set(e, SG_ERR_NOT_FOUND, -ESRCH, "no process %u was started here and still runs",
                   pid);
}
