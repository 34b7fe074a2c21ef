/* OP_FILE_READ and OP_FILE_WRITE. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/path.h"
#include "agent/serve.h"
#include "agent/staged.h"
#include "base/fd.h"
#include "warden/stage/confine.h"

#define PIECES_A_TURN 16 /* 1 MiB, then others have their turn */
#define UNSIZED_MAX \
    (16u * 1024 * 1024) /* of a file that claims to be empty, as those of /proc do */

struct file_reader {
    struct op op;
    struct loop_task task;
    int fd;
    uint64_t left;
    char path[OPS_PATH_MAX];
};

static void read_failed(struct file_reader *f, int r)
{
    struct sg_error e = {0};

    path_error(&e, r, "read", f->path);
    op_fail(&f->op, &e);
}

/* False: the operation has ended, or waits for the host. */
static bool read_piece(struct file_reader *f)
{
    size_t room = chan_credit(f->op.stream);
    ssize_t n;

    if (f->left == 0) {
        op_end(&f->op, NULL);
        return false;
    }
    if (room == 0)
        return false;
    room = room < sizeof(agent_scratch) ? room : sizeof(agent_scratch);
    n = read(f->fd, agent_scratch, f->left < room ? f->left : room);
    if (n < 0) {
        read_failed(f, -errno);
        return false;
    }
    f->left = n == 0 ? 0 : f->left - (uint64_t)n;
    if (n > 0)
        chan_send(f->op.agent->chan, f->op.stream, 0, agent_scratch, (size_t)n);
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
    close_p(&f->fd);
}

static const struct op_ops read_ops = {.resume = read_resume, .destroy = read_destroy};

static int open_regular(const char *path, uint64_t offset, int *ret_fd, struct stat *ret)
{
    int r = 0, fd = path_open(AT_FDCWD, path, O_RDONLY, 0);

    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd; /* what a socket answers */
    if (fstat(fd, ret) < 0)
        r = -errno;
    else if (!S_ISREG(ret->st_mode))
        r = S_ISDIR(ret->st_mode) ? -EISDIR : -EINVAL;
    else if (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)
        r = -EOVERFLOW;
    if (r < 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}

/* A file that grows while it is read is read up to where it ended at the beginning. */
static uint64_t how_much(const struct stat *st, uint64_t offset, uint64_t max)
{
    uint64_t size = st->st_size > 0 ? (uint64_t)st->st_size : UNSIZED_MAX;
    uint64_t left = size > offset ? size - offset : 0;

    return max > 0 && max < left ? max : left;
}

int file_read_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                    struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    struct stat st;
    int fd = -1, res = request_target(r, &as, path, e);

    if (res < 0)
        return res;
    uint64_t offset = wire_get_u64(r), max = wire_get_u64(r);
    res = request_done(r, e);
    if (res < 0)
        return res;

    res = confine_fs_begin(as);
    if (res == 0) {
        res = open_regular(path, offset, &fd, &st);
        confine_fs_end();
    }
    if (res < 0)
        return path_error(e, res, "read", path);

    struct file_reader *f = op_new(a, s, &read_ops, sizeof(*f));
    f->task.fn = read_turn;
    f->fd = fd;
    f->left = how_much(&st, offset, max);
    memcpy(f->path, path, sizeof(path));
    read_turn(&f->task);
    return 0;
}

struct file_writer {
    struct op op;
    const struct agent_user *as;
    struct staged staged;
    char path[OPS_PATH_MAX];
};

static void write_failed(struct file_writer *f, int r)
{
    struct sg_error e = {0};

    path_error(&e, r, "write", f->path);
    op_fail(&f->op, &e);
}

static void write_data(struct op *op, uint8_t sub, const void *data, size_t len)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);
    int r = staged_write(&f->staged, data, len);

    (void)sub;
    if (r < 0)
        write_failed(f, r);
    else
        chan_consumed(op->agent->chan, op->stream, len);
}

static void write_eof(struct op *op)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);
    int r = confine_fs_begin(f->as);

    if (r == 0) {
        r = staged_commit(&f->staged);
        confine_fs_end();
    }
    if (r < 0)
        write_failed(f, r);
    else
        op_end(op, NULL);
}

static void write_destroy(struct op *op)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);

    if (confine_fs_begin(f->as) == 0) {
        staged_abort(&f->staged);
        confine_fs_end();
    }
}

static const struct op_ops write_ops = {
    .data = write_data, .eof = write_eof, .destroy = write_destroy};

int file_write_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e)
{
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    struct staged staged;
    int res = request_target(r, &as, path, e);

    if (res < 0)
        return res;
    uint32_t mode = wire_get_u32(r), flags = wire_get_u32(r);
    res = request_done(r, e);
    if (res < 0)
        return res;

    size_t len = strlen(path);
    if (path[len - 1] == '/')
        return path_error(e, -EISDIR, "write", path);
    res = confine_fs_begin(as);
    if (res == 0) {
        res = staged_open(&staged, as, path, mode, (flags & FILE_PARENTS) != 0);
        confine_fs_end();
    }
    if (res < 0)
        return path_error(e, res, "write", path);

    struct file_writer *f = op_new(a, s, &write_ops, sizeof(*f));
    f->as = as;
    f->staged = staged;
    memcpy(f->path, path, sizeof(path));
    return 0;
}
