/* The output of a process: read at the pace at which every subscriber takes it, dropped if there is
 * none. */
#include <sys/ioctl.h>

#include "inside/agent/proc.h"
#include "lib/base/clock.h"

static int index_of(const struct proc_output *out)
{
    return out->sub == CHAN_STDERR;
}

static void output_close(struct proc_output *out)
{
    loop_unwatch(&out->proc->agent->loop, &out->src);
    close_p(&out->fd);
    out->fd = -1;
    out->owed = 0;
}

static void output_pause(struct proc_output *out)
{
    /* out of the loop altogether: epoll would report a hang-up again and again */
    loop_unwatch(&out->proc->agent->loop, &out->src);
    out->paused = true;
}

/* How much the slowest subscriber can take. */
static size_t output_room(const struct proc_output *out)
{
    size_t room = sizeof(agent_scratch);

    LIST_EACH(const struct proc_stream, s, &out->proc->streams, link)
        if (!s->discard[index_of(out)] && chan_credit(s->op.stream) < room)
            room = chan_credit(s->op.stream);
    return room;
}

static void output_take(struct proc_output *out, size_t n)
{
    struct proc *p = out->proc;
    int i = index_of(out);

    LIST_EACH(struct proc_stream, s, &p->streams, link) {
        if (s->discard[i])
            s->dropped[i] += n;
        else
            chan_send(p->agent->chan, s->op.stream, out->sub, agent_scratch, n);
    }
    out->owed -= n < out->owed ? n : out->owed;
    if (p->exited)
        p->last_output_ns = clock_ns();
}

static void on_output(struct loop_source *src, uint32_t events UNUSED)
{
    struct proc_output *out = CONTAINER_OF(src, struct proc_output, src);
    struct proc *p = out->proc;
    size_t room = output_room(out);

    if (room == 0) {
        output_pause(out);
        return;
    }
    ssize_t n = read(out->fd, agent_scratch, room);
    if (n > 0)
        output_take(out, (size_t)n);
    else if (n < 0 && (errno == EAGAIN || errno == EINTR))
        out->owed = 0;
    else
        output_close(out); /* EIO from a terminal means that its last user has gone */
    if (p->exited)
        proc_check_end(p);
}

void proc_output_init(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        p->out[i] = (struct proc_output){.src = {.fd = -1, .fn = on_output},
                                         .proc = p,
                                         .fd = -1,
                                         .sub = i == 0 ? CHAN_STDOUT : CHAN_STDERR};
}

void proc_output_watch(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        if (p->out[i].fd >= 0)
            loop_watch(&p->agent->loop, &p->out[i].src, p->out[i].fd, EPOLLIN);
}

void proc_output_close(struct proc *p)
{
    for (int i = 0; i < 2; i++)
        output_close(&p->out[i]);
}

void proc_output_resume(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        struct proc_output *out = &p->out[i];

        if (!out->paused || out->fd < 0)
            continue;
        out->paused = false;
        loop_watch(&p->agent->loop, &out->src, out->fd, EPOLLIN);
    }
}

void proc_output_exited(struct proc *p)
{
    for (int i = 0; i < 2; i++) {
        int n = 0;

        if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &n) == 0 && n > 0)
            p->out[i].owed = (size_t)n;
    }
}
