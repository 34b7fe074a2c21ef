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
    struct strbuf whole; /* the contents of a file that claims to be empty */
};

static void source_done(struct source *s)
{
    close_p(&s->fd);
    strbuf_done(&s->whole);
}

struct file_reader {
    struct op op;
    struct source source;
    uint64_t at, end;
    char path[OPS_PATH_MAX];
};

/* Points *ret at the next bytes, and returns how many there are: 0 if the file has become
 * shorter. */
static ssize_t take(struct file_reader *f, size_t room, const char **ret)
{
    if (f->source.whole.len > 0) {
        *ret = f->source.whole.buf + f->at;
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
        op_fail_path(&f->op, n < 0 ? -errno : -ESTALE, "read", f->path);
        return false;
    }
    f->at += (uint64_t)n;
    chan_send(f->op.agent->chan, f->op.stream, 0, data, (size_t)n);
    return true;
}

static void read_turn(struct op *op)
{
    struct file_reader *f = CONTAINER_OF(op, struct file_reader, op);

    for (unsigned i = 0; i < PIECES_A_TURN; i++)
        if (!read_piece(f))
            return;
    op_again(op);
}

static void read_destroy(struct op *op)
{
    source_done(&CONTAINER_OF(op, struct file_reader, op)->source);
}

static const struct op_ops read_ops = {
    .resume = op_again, .turn = read_turn, .destroy = read_destroy};

static int read_unsized(struct source *s)
{
    struct strbuf *whole = &s->whole;
    ssize_t n = 1;

    while (n > 0 && whole->len < UNSIZED_MAX) {
        size_t room = UNSIZED_MAX - whole->len;
        n = read(s->fd, agent_scratch, room < sizeof(agent_scratch) ? room : sizeof(agent_scratch));
        if (n < 0)
            return -errno;
        strbuf_add(whole, agent_scratch, (size_t)n);
        if (whole->truncated)
            return -ENOMEM;
    }
    s->st.st_size = (off_t)whole->len;
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
    AUTO(confine_fs_leave) int entered = confine_fs_begin(as);
    int r = entered < 0 ? entered : source_open(s, path);

    return r < 0 ? r : entry_put_file(out, s->fd, &s->st, path);
}

int file_read_start(struct request *q)
{
    uint64_t offset = wire_get_u64(q->r), max = wire_get_u64(q->r);
    struct source source = {.fd = -1, .whole = strbuf_upto(UNSIZED_MAX)};
    int res = request_done(q);

    if (res < 0)
        return res;
    res = look(&source, q->as, q->path, &q->answer);
    if (res < 0) {
        source_done(&source);
        return path_error(q->e, res, "read", q->path);
    }

    /* If a file grows while it is read, reading ends where the file ended at the beginning. */
    struct file_reader *f = op_new(q, &read_ops, sizeof(*f));
    f->source = source;
    f->end = (uint64_t)source.st.st_size;
    f->at = offset < f->end ? offset : f->end;
    if (max > 0 && max < f->end - f->at)
        f->end = f->at + max;
    memcpy(f->path, q->path, sizeof(f->path));
    chan_event(q->agent->chan, q->stream, EVENT_ENTRY, q->answer.buf, q->answer.len);
    read_turn(&f->op);
    return 0;
}
