/* OP_FILE_READ. */
#include <fcntl.h>
#include <string.h>

#include "inside/agent/entry.h"
#include "inside/agent/serve.h"
#include "lib/base/fd.h"
#include "inside/stage/confine.h"

#define PIECES_A_TURN 16 /* then other operations have their turn */
/* A file of /proc claims to be empty. Its contents are read at once, up to this size, because the
 * host is told the size first. */
#define UNSIZED_MAX (16u * 1024 * 1024)

struct source {
    int fd;
    struct stat st;
    char *whole; /* the contents of a file that claims to be empty; or NULL */
};

static void source_done(struct source *s)
{
    close_p(&s->fd);
    free(s->whole);
}

struct file_reader {
    struct op op;
    struct loop_task task;
    struct source source;
    uint64_t at, end;
    char path[OPS_PATH_MAX];
};

static void read_failed(struct file_reader *f, int r)
{
    struct sg_error e = {0};

    path_error(&e, r, "read", f->path);
    op_fail(&f->op, &e);
}

/* Points *ret at the next bytes, and returns how many there are: 0 if the file has become
 * shorter. */
static ssize_t take(struct file_reader *f, size_t room, const char **ret)
{
    if (f->source.whole) {
        *ret = f->source.whole + f->at;
        return (ssize_t)room;
    }
    *ret = agent_scratch;
    room = room < sizeof(agent_scratch) ? room : sizeof(agent_scratch);
    return pread(f->source.fd, agent_scratch, room, (off_t)f->at);
}

/* False: the operation has ended, or waits for the host. */
static bool read_piece(struct file_reader *f)
{
    uint64_t left = f->end - f->at;
    size_t room = chan_credit(f->op.stream);
    const char *data;

    if (left == 0) {
        op_end(&f->op, NULL);
        return false;
    }
    if (room == 0)
        return false;
    ssize_t n = take(f, left < room ? (size_t)left : room, &data);
    if (n <= 0) {
        read_failed(f, n < 0 ? -errno : -ESTALE);
        return false;
    }
    f->at += (uint64_t)n;
    chan_send(f->op.agent->chan, f->op.stream, 0, data, (size_t)n);
    return true;
}

static void read_turn(struct loop_task *task)
{
    struct file_reader *f = CONTAINER_OF(task, struct file_reader, task);

    for (unsigned i = 0; i < PIECES_A_TURN; i++)
        if (!read_piece(f))
            return;
    loop_task_queue(&f->op.agent->loop, task);
}

static void read_resume(struct op *op)
{
    loop_task_queue(&op->agent->loop, &CONTAINER_OF(op, struct file_reader, op)->task);
}

static void read_destroy(struct op *op)
{
    struct file_reader *f = CONTAINER_OF(op, struct file_reader, op);

    loop_task_cancel(&f->task);
    source_done(&f->source);
}

static const struct op_ops read_ops = {.resume = read_resume, .destroy = read_destroy};

static int read_unsized(struct source *s)
{
    size_t len = 0, cap = 4096;
    ssize_t n = 1;

    while (n > 0 && len < UNSIZED_MAX) {
        if (len == 0 || len == cap) {
            cap = len == 0 ? cap : 2 * cap;
            char *more = realloc(s->whole, cap);
            if (!more)
                return -ENOMEM;
            s->whole = more;
        }
        n = read(s->fd, s->whole + len, cap - len);
        if (n < 0)
            return -errno;
        len += (size_t)n;
    }
    s->st.st_size = (off_t)len;
    return 0;
}

static int source_open(struct source *s, const char *path)
{
    s->fd = path_open(AT_FDCWD, path, O_RDONLY, 0);
    if (s->fd < 0)
        return s->fd == -ENXIO ? -EINVAL : s->fd; /* -ENXIO is what opening a socket returns */
    if (fstat(s->fd, &s->st) < 0)
        return -errno;
    if (!S_ISREG(s->st.st_mode))
        return S_ISDIR(s->st.st_mode) ? -EISDIR : -EINVAL;
    return s->st.st_size > 0 ? 0 : read_unsized(s);
}

/* Opens the file with the permissions of the user, and describes it. */
static int look(struct source *s, const struct agent_user *as, const char *path, struct strbuf *out)
{
    int r = confine_fs_begin(as);

    if (r < 0)
        return r;
    r = source_open(s, path);
    if (r == 0)
        r = entry_put_file(out, s->fd, &s->st, path);
    confine_fs_end();
    return r;
}

int file_read_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    int res = request_target(r, &as, path, e);

    if (res < 0)
        return res;
    uint64_t offset = wire_get_u64(r), max = wire_get_u64(r);
    res = request_done(r, e);
    if (res < 0)
        return res;

    struct source source = {.fd = -1};
    struct strbuf entry;
    strbuf_init(&entry, ENTRY_MAX);
    res = look(&source, as, path, &entry);
    if (res < 0) {
        source_done(&source);
        strbuf_done(&entry);
        return path_error(e, res, "read", path);
    }

    /* If a file grows while it is read, reading ends where the file ended at the beginning. */
    struct file_reader *f = op_new(a, s, &read_ops, sizeof(*f));
    f->task.fn = read_turn;
    f->source = source;
    f->end = (uint64_t)source.st.st_size;
    f->at = offset < f->end ? offset : f->end;
    if (max > 0 && max < f->end - f->at)
        f->end = f->at + max;
    memcpy(f->path, path, sizeof(path));
    chan_event(a->chan, s, EVENT_ENTRY, entry.buf, entry.len);
    strbuf_done(&entry);
    read_turn(&f->task);
    return 0;
}
