/* Requests about a process, by its pid or tag: OP_PROCESS_SIGNAL, _RESIZE, _INPUT; and
 * OP_PROCESS_LIST. OP_PROCESS_ATTACH is in proc_stream.c. */
#include <signal.h>
#include <string.h>

#include "inside/agent/proc.h"

int request_process(struct request *q, struct proc **ret)
{
    uint32_t pid = wire_get_u32(q->r);
    const char *tag = wire_get_str(q->r, OPS_TAG_MAX);

    if (q->r->bad)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL, "the request names no process");
    *ret = procs_find(q->agent, pid, tag);
    if (*ret)
        return 0;
    return pid > 0 ? err_set(q->e, SG_ERR_NOT_FOUND, -ESRCH, "process with pid %u not found", pid)
                   : err_set(q->e, SG_ERR_NOT_FOUND, -ESRCH, "process with tag '%.100s' not found",
                             tag);
}

/* Finds a process that still runs. */
static int request_running(struct request *q, struct proc **ret)
{
    int res = request_process(q, ret);

    if (res == 0 && (*ret)->exited)
        res = err_set(q->e, SG_ERR_NOT_FOUND, -ESRCH,
                      "process with pid %u not found: it has exited", (unsigned)(*ret)->child.pid);
    return res;
}

int process_signal(struct request *q)
{
    struct proc *p;
    int res = request_running(q, &p);
    uint32_t sig = wire_get_u32(q->r);

    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    if (sig == 0 || sig > SIGNAL_MAX)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL, "there is no signal %u: use 1 to %d", sig,
                       SIGNAL_MAX);
    p->killed |= sig == SIGKILL;
    if (sig == SIGKILL)
        session_kill(p->child.pid);
    else
        proc_signal(p, sig);
    return 0;
}

int process_resize(struct request *q)
{
    struct proc *p;
    int res = request_running(q, &p);
    uint32_t rows = wire_get_u32(q->r), cols = wire_get_u32(q->r);

    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    if (!p->tty || p->out[0].fd < 0)
        return err_set(q->e, SG_ERR_INVALID, -ENOTTY, "process %d has no terminal",
                       (int)p->child.pid);
    pty_resize(p->out[0].fd, rows, cols);
    return 0;
}

struct input {
    struct op op;
    struct proc_feed feed;
};

static void input_data(struct op *op, uint8_t sub UNUSED, const void *data, size_t len)
{
    proc_feed_data(&CONTAINER_OF(op, struct input, op)->feed, data, len);
}

static void input_eof(struct op *op)
{
    proc_feed_eof(&CONTAINER_OF(op, struct input, op)->feed);
}

static void input_destroy(struct op *op)
{
    proc_feed_remove(&CONTAINER_OF(op, struct input, op)->feed);
}

static const struct op_ops input_ops = {
    .data = input_data, .eof = input_eof, .destroy = input_destroy};

static int check_input(const struct proc *p, uint32_t flags, struct sg_error *e)
{
    int pid = (int)p->child.pid;

    if (!(flags & INPUT_PTY) && p->tty)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "process %d has a terminal: send its input as terminal input", pid);
    if ((flags & INPUT_PTY) && !p->tty)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "process %d has no terminal", pid);
    if (!p->in.wired)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "process %d was started without a standard input", pid);
    if (p->in.fd < 0)
        return err_set(e, SG_ERR_GONE, -EPIPE, "the standard input of process %d is closed", pid);
    return 0;
}

int process_input(struct request *q)
{
    struct proc *p;
    int res = request_running(q, &p);
    uint32_t flags = wire_get_u32(q->r);

    if (res == 0)
        res = request_done(q);
    if (res == 0)
        res = check_input(p, flags, q->e);
    if (res < 0)
        return res;
    struct input *in = op_new(q, &input_ops, sizeof(*in));
    proc_feed_add(&in->feed, &in->op, p);
    in->feed.is_input = true;
    in->feed.closes = (flags & INPUT_CLOSE) != 0;
    return 0;
}

/* Sends one process at a time: its note may be long, and the host slow. */
struct lister {
    struct op op;
    uint64_t last; /* serial of the process in `record` */
    uint32_t n;
    struct strbuf record;
    size_t sent;
};

/* Makes the record of the next process. False: there is none left. */
static bool next_record(struct lister *l)
{
    struct proc *p = LIST_FIND(struct proc, at, &l->op.agent->procs.living.all, link,
                               at->serial > l->last && !at->exited && at->report_fd < 0);

    if (!p)
        return false;
    strbuf_reset(&l->record);
    wire_put_u32(&l->record, (uint32_t)p->child.pid);
    wire_put_str(&l->record, p->user);
    wire_put_str(&l->record, p->tag);
    wire_put_str(&l->record, p->note);
    wire_put_str(&l->record, p->command);
    l->last = p->serial;
    l->sent = 0;
    l->n++;
    return true;
}

static void list_finish(struct lister *l)
{
    AUTO(strbuf_done) struct strbuf count = strbuf_upto(16);
    struct sg_error e = {0};

    if (l->record.truncated) {
        err_set(&e, SG_ERR_LIMIT, -ENOMEM, "out of memory: raise the memory limit");
        op_fail(&l->op, &e);
        return;
    }
    wire_put_u32(&count, l->n);
    op_end(&l->op, &count);
}

static void list_more(struct op *op)
{
    struct lister *l = CONTAINER_OF(op, struct lister, op);

    while (!l->record.truncated && (l->sent < l->record.len || next_record(l))) {
        size_t left = l->record.len - l->sent, n = chan_credit(op->stream);

        if (n == 0)
            return;
        n = n < left ? n : left;
        chan_send(op->agent->chan, op->stream, 0, l->record.buf + l->sent, n);
        l->sent += n;
    }
    list_finish(l);
}

static void list_destroy(struct op *op)
{
    strbuf_done(&CONTAINER_OF(op, struct lister, op)->record);
}

static const struct op_ops list_ops = {.resume = list_more, .destroy = list_destroy};

int process_list(struct request *q)
{
    int res = request_done(q);

    if (res < 0)
        return res;
    struct lister *l = op_new(q, &list_ops, sizeof(*l));
    strbuf_init(&l->record, OPS_NOTE_MAX + 4096);
    list_more(&l->op);
    return 0;
}
