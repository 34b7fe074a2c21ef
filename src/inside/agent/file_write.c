/* OP_FILE_WRITE. */
#include <string.h>

#include "inside/agent/entry.h"
#include "inside/agent/meta.h"
#include "inside/agent/serve.h"
#include "inside/agent/staged.h"
#include "inside/stage/confine.h"

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

static int commit(struct file_writer *f, struct strbuf *entry)
{
    AUTO(close_p) int fd = -1;
    struct stat st;
    int r = staged_commit(&f->staged, &fd);

    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    return r < 0 ? r : entry_put_file(entry, fd, &st, f->path);
}

static void write_eof(struct op *op)
{
    struct file_writer *f = CONTAINER_OF(op, struct file_writer, op);
    struct strbuf entry;
    int r = confine_fs_begin(f->as);

    strbuf_init(&entry, ENTRY_MAX);
    if (r == 0) {
        r = commit(f, &entry);
        confine_fs_end();
    }
    if (r < 0)
        write_failed(f, r);
    else
        op_end(op, &entry);
    strbuf_done(&entry);
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
    .data = write_data, .eof = write_eof, .destroy = write_destroy, .writes = true};

struct write_request {
    const struct agent_user *as;
    char path[OPS_PATH_MAX];
    uint32_t mode, flags;
    struct meta meta;
};

static int read_request(struct wire_reader *r, struct write_request *q, struct sg_error *e)
{
    int res = request_target(r, &q->as, q->path, e);

    if (res < 0)
        return res;
    q->mode = wire_get_u32(r);
    q->flags = wire_get_u32(r);
    res = meta_read(r, &q->meta, e);
    return res < 0 ? res : request_done(r, e);
}

static int begin(const struct write_request *q, struct staged *ret)
{
    size_t len = strlen(q->path);
    int r;

    if (q->path[len - 1] == '/')
        return -EISDIR;
    r = confine_fs_begin(q->as);
    if (r < 0)
        return r;
    r = staged_open(ret, q->path, q->mode, (q->flags & FILE_PARENTS) != 0);
    if (r == 0) {
        r = meta_set(ret->fd, &q->meta);
        if (r < 0)
            staged_abort(ret);
    }
    confine_fs_end();
    return r;
}

int file_write_start(struct agent *a, struct chan_stream *s, struct wire_reader *r,
                     struct sg_error *e)
{
    struct write_request q;
    struct staged staged;
    int res = read_request(r, &q, e);

    if (res < 0)
        return res;
    res = begin(&q, &staged);
    if (res < 0)
        return path_error(e, res, "write", q.path);
    struct file_writer *f = op_new(a, s, &write_ops, sizeof(*f));
    f->as = q.as;
    f->staged = staged;
    memcpy(f->path, q.path, sizeof(q.path));
    return 0;
}
