/* Turns frames into operations. */
#include "inside/agent/serve.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "inside/agent/accounts.h"
#include "inside/agent/entry.h"
#include "inside/agent/own_ports.h"
#include "inside/agent/path.h"

char agent_scratch[FRAME_PAYLOAD_MAX];

static void free_op(struct loop_trash *trash)
{
    free(CONTAINER_OF(trash, struct op, trash));
}

static void on_turn(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);

    op->ops->turn(op);
}

void *op_new(struct request *q, const struct op_ops *ops, size_t size)
{
    struct op *op = xcalloc(1, size);

    op->ops = ops;
    op->agent = q->agent;
    op->stream = q->stream;
    if (q->as)
        op->user = *q->as;
    op->as = q->as ? &op->user : NULL;
    op->task.fn = on_turn;
    op->trash.fn = free_op;
    list_push(&q->agent->ops, &op->link);
    chan_stream_set_owner(q->stream, op);
    q->goes_on = true;
    return op;
}

static void op_release(struct op *op)
{
    op->stream = NULL;
    list_remove(&op->link);
    loop_task_cancel(&op->task);
    if (op->ops->destroy)
        op->ops->destroy(op);
    loop_throw_away(&op->agent->loop, &op->trash);
}

void op_end(struct op *op, const struct strbuf *result)
{
    chan_end(op->agent->chan, op->stream, 0, NULL, result ? result->buf : NULL,
             result ? result->len : 0);
    op_release(op);
}

void op_fail(struct op *op, const struct sg_error *e)
{
    chan_end(op->agent->chan, op->stream, -e->code, e->message, NULL, 0);
    op_release(op);
}

void op_fail_path(struct op *op, int r, const char *verb, const char *path)
{
    struct sg_error e = {0};

    path_error(&e, r, verb, path);
    op_fail(op, &e);
}

void op_cancelled(struct op *op)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_GONE, -ECANCELED, "cancelled");
    op_fail(op, &e);
}

void op_again(struct op *op)
{
    loop_task_queue(&op->agent->loop, &op->task);
}

bool op_may_send(const struct op *op)
{
    return chan_credit(op->stream) > 0;
}

static int request_user(struct request *q, bool is_file)
{
    const char *name = wire_get_str(q->r, strlen(USER_AS_ROOT) + OPS_NAME_MAX);
    bool as_root = !q->r->bad && strncmp(name, USER_AS_ROOT, strlen(USER_AS_ROOT)) == 0;

    if (q->r->bad || (as_root && !is_file))
        return err_set(q->e, SG_ERR_INVALID, -EINVAL, "the request has no valid user name");
    int r = agent_account_user(as_root ? name + strlen(USER_AS_ROOT) : name, &q->user, q->e);
    q->user.as_root = as_root;
    q->as = r < 0 ? NULL : &q->user;
    return r;
}

int request_path(struct wire_reader *r, const struct agent_user *as, char *ret, struct sg_error *e)
{
    const char *path = wire_get_str(r, OPS_PATH_MAX - 1);

    if (r->bad || path_absolute(as, path, ret) < 0)
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG,
                       "a path is malformed, or longer than %d bytes", OPS_PATH_MAX - 1);
    return 0;
}

/* OP_USER */
static int user_place(struct request *q)
{
    wire_put_str(&q->answer, q->path);
    return request_done(q);
}

int request_done(struct request *q)
{
    return wire_done(q->r) ? 0 : err_set(q->e, SG_ERR_INVALID, -EINVAL, "the request is malformed");
}

static const struct handler {
    int (*fn)(struct request *q);
    enum { NO_TARGET, TARGET, FILE_TARGET } target; /* the request begins with a user and a path */
    bool writes;                                    /* it changes files below that path */
} handlers[OP_MAX_] = {
    [OP_PROCESS_START] = {.fn = process_start, .target = TARGET},
    [OP_PROCESS_LIST] = {.fn = process_list},
    [OP_PROCESS_SIGNAL] = {.fn = process_signal},
    [OP_PROCESS_ATTACH] = {.fn = process_attach},
    [OP_PROCESS_INPUT] = {.fn = process_input},
    [OP_PROCESS_RESIZE] = {.fn = process_resize},
    [OP_FILE_READ] = {.fn = file_read_start, .target = FILE_TARGET},
    [OP_FILE_WRITE] = {.fn = file_write_start, .target = FILE_TARGET, .writes = true},
    [OP_FILE_UNPACK] = {.fn = file_unpack_start, .target = TARGET, .writes = true},
    [OP_FILE_LIST] = {.fn = file_list_start, .target = FILE_TARGET},
    [OP_FILE_STAT] = {.fn = file_stat, .target = FILE_TARGET},
    [OP_FILE_MOVE] = {.fn = file_move_start, .target = FILE_TARGET, .writes = true},
    [OP_FILE_COMPOSE] = {.fn = file_compose_start, .target = FILE_TARGET, .writes = true},
    [OP_FILE_REMOVE] = {.fn = file_remove_start, .target = FILE_TARGET, .writes = true},
    [OP_FILE_MKDIR] = {.fn = file_mkdir, .target = FILE_TARGET, .writes = true},
    [OP_FILE_WATCH] = {.fn = file_watch_start, .target = FILE_TARGET},
    [OP_NET_CONNECT] = {.fn = net_connect_start},
    [OP_KERNEL_EXECUTE] = {.fn = kernel_execute},
    [OP_KERNEL_CREATE] = {.fn = kernel_create},
    [OP_KERNEL_LIST] = {.fn = kernel_list},
    [OP_KERNEL_REMOVE] = {.fn = kernel_remove},
    [OP_KERNEL_RESTART] = {.fn = kernel_restart},
    [OP_KERNEL_INTERRUPT] = {.fn = kernel_stop_cell},
    [OP_KERNEL_WARM] = {.fn = kernel_warm},
    [OP_KERNEL_HOLD] = {.fn = kernel_hold},
    [OP_KERNEL_ADOPT] = {.fn = kernel_adopt},
    [OP_USER] = {.fn = user_place, .target = TARGET},
    [OP_DISK] = {.fn = disk_answer},
    [OP_PING] = {.fn = request_done},
};

/* Negative: *q->e says why. */
static int handle(struct request *q, uint8_t op)
{
    const struct handler *h = op < OP_MAX_ ? &handlers[op] : NULL;
    int r = 0;

    if (!h || !h->fn)
        return err_set(q->e, SG_ERR_UNSUPPORTED, -ENOSYS, "the agent knows no operation %d", op);
    if (h->target)
        r = request_user(q, h->target == FILE_TARGET);
    if (r == 0 && h->target)
        r = request_path(q->r, q->as, q->path, q->e);
    if (r == 0 && h->writes)
        r = root_written(q->as, q->path, q->e);
    return r < 0 ? r : h->fn(q);
}

static void on_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *req, size_t len)
{
    struct wire_reader r = wire_reader_of(req, len);
    struct sg_error e = {0};
    struct request q = {
        .agent = chan_arg(c), .stream = s, .r = &r, .e = &e, .answer = strbuf_upto(ENTRY_MAX)};
    int res = handle(&q, op);

    if (res < 0)
        chan_end(c, s, -res, e.message, NULL, 0);
    else if (!q.goes_on)
        chan_end(c, s, 0, NULL, q.answer.buf, q.answer.len);
    strbuf_done(&q.answer);
}

static void on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    struct op *op = chan_stream_owner(s);

    if (op->ops->data)
        op->ops->data(op, sub, p, len);
    else
        chan_consumed(c, s, len);
}

static void on_eof(struct chan *c UNUSED, struct chan_stream *s)
{
    struct op *op = chan_stream_owner(s);

    if (op->ops->eof)
        op->ops->eof(op);
}

static void on_control(struct chan *c UNUSED, struct chan_stream *s, uint8_t what, const void *p,
                       size_t len)
{
    struct op *op = chan_stream_owner(s);
    struct wire_reader r = wire_reader_of(p, len);

    if (op->ops->control)
        op->ops->control(op, what, &r);
}

static void on_cancel(struct chan *c UNUSED, struct chan_stream *s)
{
    struct op *op = chan_stream_owner(s);

    if (op->ops->cancel)
        op->ops->cancel(op);
    else
        op_cancelled(op);
}

static void on_credit(struct chan *c UNUSED, struct chan_stream *s)
{
    struct op *op = chan_stream_owner(s);

    if (op->ops->resume)
        op->ops->resume(op);
}

/* The channel is only pumped between turns, when nothing else is being dispatched. */
static void on_channel_ready(struct loop_source *src, uint32_t events UNUSED)
{
    CONTAINER_OF(src, struct agent, chan_src)->chan_ready = true;
}

/* Opens /dev/null as 0, 1 and 2. So nothing stays open that the agent was started with, and a
 * program without input reads from this /dev/null, whatever root inside later does to /dev. */
static int settle_standard_fds(void)
{
    int fd = open("/dev/null", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : S_ISCHR(st.st_mode) ? 0 : -ENODEV;
    for (int i = 0; r == 0 && i < 3; i++)
        if (dup2(fd, i) < 0)
            r = -errno;
    if (fd > 2)
        close(fd);
    return r;
}

static void channel_begin(struct agent *a, int fd)
{
    static const struct chan_handlers h = {.on_open = on_open,
                                           .on_eof = on_eof,
                                           .on_control = on_control,
                                           .on_cancel = on_cancel,
                                           .on_data = on_data,
                                           .on_credit = on_credit};

    a->chan = chan_new(fd, CHAN_AGENT, &h, a);
    a->chan_ready = true; /* requests may have come already */
}

/* Processes with PROC_DETACH go on; every other operation of the channel ends. */
static void channel_end(struct agent *a)
{
    while (!list_empty(&a->ops))
        op_release(LIST_FIRST(struct op, &a->ops, link));
    loop_unwatch(&a->loop, &a->chan_src);
    a->chan_events = 0;
    chan_free(a->chan);
    a->chan = NULL;
}

static void channel_watch(struct agent *a)
{
    uint32_t events = (chan_wants_read(a->chan) ? (uint32_t)EPOLLIN : 0) |
                      (chan_wants_write(a->chan) ? (uint32_t)EPOLLOUT : 0);

    if (events != a->chan_events)
        loop_watch(&a->loop, &a->chan_src, chan_fd(a->chan), events);
    a->chan_events = events;
}

static int channel_serve(struct agent *a)
{
    int r = a->chan_ready ? chan_pump(a->chan) : chan_flush(a->chan);

    a->chan_ready = false;
    if (r == 0)
        channel_watch(a);
    if (r < 0 && a->config->line) {
        channel_end(a);
        r = 0;
    }
    return r;
}

static int agent_init(struct agent *a, int fd)
{
    int r = settle_standard_fds();

    umask(0); /* requests say which mode they want */
    a->chan_src = (struct loop_source){.fd = -1, .fn = on_channel_ready};
    if (r == 0)
        r = loop_init(&a->loop, LOOP_BATCH_MAX);
    if (r == 0)
        r = reaper_init(&a->reaper, &a->loop);
    if (r == 0)
        r = view_init(&a->view, &a->loop, a->config);
    procs_init(&a->procs, &a->loop);
    door_init(&a->door, a);
    if (r == 0)
        door_open(&a->door);
    line_init(&a->line, a);
    kernels_init(a);
    if (r == 0 && a->config->line)
        r = line_open(&a->line, fd);
    else if (r == 0)
        channel_begin(a, fd);
    return r;
}

int agent_serve(int fd, const struct agent_config *config)
{
    struct agent a = {.config = config, .loop = {.epoll_fd = -1}};
    int r = agent_init(&a, fd);

    while (r == 0) {
        if (a.line.channel >= 0) {
            channel_end(&a);
            channel_begin(&a, steal_fd(&a.line.channel));
        }
        if (a.chan)
            r = channel_serve(&a);
        if (r == 0)
            r = loop_turn(&a.loop);
        if (r == 0 && a.line.over)
            r = -EPIPE;
    }
    channel_end(&a);
    kernels_done(&a);
    procs_done(&a.procs);
    own_ports_done(&a);
    line_done(&a.line);
    door_done(&a.door);
    view_done(&a.view);
    reaper_done(&a.reaper);
    loop_done(&a.loop);
    return r == -EPIPE ? 0 : r;
}
