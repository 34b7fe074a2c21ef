/* A process from fork to the record of its end. See proc.h for its states. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "inside/agent/launch.h"
#include "inside/agent/proc.h"
#include "lib/base/clock.h"

static void proc_over(struct proc *p)
{
    loop_timer_cancel(&p->agent->loop, &p->grace);
    proc_output_close(p);
    p->over = true;
    procs_keep(p);
    while (!list_empty(&p->streams))
        proc_tell_end(p, LIST_FIRST(struct proc_stream, &p->streams, link));
}

/* When to stop waiting for more output; 0: owed output must be delivered first. */
static uint64_t drain_deadline(const struct proc *p)
{
    uint64_t last = p->exit_ns + GRACE_MAX_NS;
    uint64_t quiet = (p->last_output_ns > p->exit_ns ? p->last_output_ns : p->exit_ns);
    bool owed = p->out[0].owed > 0 || p->out[1].owed > 0;

    if (owed)
        return p->hurried ? last : 0;
    if (p->hurried)
        return p->exit_ns;
    quiet += GRACE_QUIET_NS;
    return quiet < last ? quiet : last;
}

void proc_check_end(struct proc *p)
{
    uint64_t deadline = drain_deadline(p);
    bool closed = p->out[0].fd < 0 && p->out[1].fd < 0;

    if (closed || (deadline > 0 && clock_ns() >= deadline))
        proc_over(p);
    else if (deadline > 0)
        loop_timer_set(&p->agent->loop, &p->grace, deadline);
}

static void on_grace(struct loop_timer *timer)
{
    proc_check_end(CONTAINER_OF(timer, struct proc, grace));
}

static void proc_failed(struct proc *p, const struct sg_error *e)
{
    reaper_forget(&p->child);
    proc_output_close(p);
    proc_input_close(p);
    p->over = true;
    while (!list_empty(&p->streams))
        op_fail(&LIST_FIRST(struct proc_stream, &p->streams, link)->op, e);
    procs_forget(p);
}

/* Learns whether exec has succeeded. False: it has not, and the process is forgotten. */
static bool take_report(struct proc *p)
{
    struct sg_error e = {0};
    int r = launch_result(p->report_fd, &e);

    if (r == 0)
        return true;
    if (r < 0) {
        proc_failed(p, &e);
        return false;
    }
    loop_unwatch(&p->agent->loop, &p->report);
    close_p(&p->report_fd);
    p->report_fd = -1;
    LIST_EACH(struct proc_stream, s, &p->streams, link)
        proc_tell_started(p, s);

    /* Only now: the host must hear that the program runs before it gets its output. */
    proc_output_watch(p);
    return true;
}

static void on_report(struct loop_source *src, uint32_t events UNUSED)
{
    take_report(CONTAINER_OF(src, struct proc, report));
}

/* A shell exits with 128 + SIGKILL if that is how the program ended that it ran. */
static bool died_of_kill(const struct proc *p)
{
    return !p->hurried && !p->killed &&
           (WIFSIGNALED(p->status) ? WTERMSIG(p->status) == SIGKILL
                                   : WEXITSTATUS(p->status) == 128 + SIGKILL);
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
    if (died_of_kill(p))
        p->memory_limit = memory_ended(p->agent, &p->memory);
    loop_timer_cancel(&p->agent->loop, &p->limit);
    proc_output_exited(p);
    proc_input_close(p);
    proc_check_end(p);
}

void proc_signal(struct proc *p, uint32_t sig)
{
    if (p->exited || sig == 0 || sig > SIGNAL_MAX)
        return;
    p->killed |= sig == SIGKILL;
    /* a child that has not called setsid yet has no group */
    if (kill(-p->child.pid, (int)sig) < 0)
        kill(p->child.pid, (int)sig);
}

void proc_kill(struct proc *p)
{
    if (p->over)
        return;
    p->hurried = true;
    if (p->exited)
        proc_check_end(p);
    else
        session_kill(p->child.pid);
}

static void on_limit(struct loop_timer *timer)
{
    struct proc *p = CONTAINER_OF(timer, struct proc, limit);

    p->timed_out = true;
    proc_kill(p);
}

static uint64_t limit_deadline(uint64_t timeout_ms)
{
    uint64_t now = clock_ns(), room = (UINT64_MAX - now) / 1000000;

    return now + (timeout_ms < room ? timeout_ms : room) * 1000000;
}

void proc_new(struct request *q, const struct proc_start *start)
{
    struct proc *p = xcalloc(1, sizeof(*p));

    p->agent = q->agent;
    snprintf(p->user, sizeof(p->user), "%s", q->as->name);
    p->tty = start->tty;
    p->memory = start->memory;
    p->tag = xstrdup(start->tag);
    p->note = xstrdup(start->note);
    memcpy(p->command, start->command, sizeof(p->command));
    proc_output_init(p);
    proc_input_init(p, start->in);
    p->out[0].fd = start->out;
    p->out[1].fd = start->err;
    p->child = (struct child){.pid = start->pid, .on_exit = on_exit_status};
    p->report = (struct loop_source){.fd = -1, .fn = on_report};
    p->report_fd = start->report_fd;
    p->grace.fn = on_grace;
    p->limit.fn = on_limit;
    procs_add(p);

    struct proc_stream *stream = proc_subscribe(p, q);
    stream->owner = !start->detach;
    stream->fed = true;
    proc_feed_add(&stream->feed, &stream->op, p);
    stream->feed.closes = true;

    reaper_add(&q->agent->reaper, &p->child);
    loop_watch(&q->agent->loop, &p->report, start->report_fd, EPOLLIN);
    if (start->timeout_ms > 0)
        loop_timer_set(&q->agent->loop, &p->limit, limit_deadline(start->timeout_ms));
}
