/* OP_FILE_WRITE. */
#include <string.h>

#include "inside/agent/entry.h"
#include "inside/agent/meta.h"
#include "inside/agent/serve.h"
#include "inside/agent/staged.h"
#include "lib/base/fd.h"
#include "inside/stage/confine.h"

struct file_writer {
    struct op op;
    struct staged staged;
    char path[OPS_PATH_MAX];
};

static void write_data(struct op *op, uint8_t sub UNUSED, const void *data, size_t len)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);
    int r = fd_write_all(f->staged.fd, data, len);

    if (r < 0)
        op_fail_path(op, r, "write", f->path);
    else
        chan_consumed(op->agent->chan, op->stream, len);
}

static int commit(struct file_writer *f, struct strbuf *entry)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(f->op.as);
    AUTO(close_p) int fd = -1;
    struct stat st;
    int r = entered < 0 ? entered : staged_commit(&f->staged, &fd);

    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    return r < 0 ? r : entry_put_file(entry, fd, &st, f->path);
}

static void write_eof(struct op *op)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);
    AUTO(strbuf_done) struct strbuf entry = strbuf_upto(ENTRY_MAX);
    int r = commit(f, &entry);

    if (r < 0)
        op_fail_path(op, r, "write", f->path);
    else
        op_end(op, &entry);
}

static void write_destroy(struct op *op)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);

    staged_abort_as(&f->staged, op->as);
}

static const struct op_ops write_ops = {
    .data = write_data, .eof = write_eof, .destroy = write_destroy, .writes = true};

static int begin(const struct request *q, mode_t mode, uint32_t flags, const struct meta *meta,
                 struct staged *ret)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(q->as);
    int r = q->path[strlen(q->path) - 1] == '/' ? -EISDIR : entered;

    if (r < 0)
        return r;
    r = flags & FILE_IN_PLACE
            ? staged_open_in_place(ret, q->path, mode, (flags & FILE_PARENTS) != 0, q->as)
            : staged_open(ret, q->path, mode, (flags & FILE_PARENTS) != 0);
    if (r < 0)
        return r;
    meta_clear(ret->fd);
    r = meta_set(ret->fd, meta);
    if (r < 0)
        staged_abort(ret);
    return r;
}

int file_write_start(struct request *q)
{
    uint32_t mode = wire_get_u32(q->r), flags = wire_get_u32(q->r);
    struct staged staged;
    struct meta meta;
    int res = meta_read(q->r, &meta, q->e);

    if (res == 0)
        res = request_done(q);
    if (res < 0)
        return res;
    res = begin(q, mode, flags, &meta, &staged);
    if (res < 0)
        return path_error(q->e, res, "write", q->path);
    struct file_writer *f = op_new(q, &write_ops, sizeof(*f));
    f->staged = staged;
    memcpy(f->path, q->path, sizeof(f->path));
    return 0;
}
