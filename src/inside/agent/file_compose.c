/* OP_FILE_COMPOSE: several files become one, as the parts of a large upload do. */
#include <fcntl.h>
#include <string.h>

#include "inside/agent/entry.h"
#include "inside/agent/serve.h"
#include "inside/agent/staged.h"
#include "inside/stage/confine.h"
#include "lib/base/fd.h"

#define PIECES_A_TURN 16

struct composer {
    struct op op;
    struct staged staged;
    char **sources;
    size_t n, at;
    int from; /* the source that is copied; -1: the next one is not open yet */
    char path[OPS_PATH_MAX];
};

static int open_source(struct composer *c)
{
    struct stat st;

    c->from = path_open(AT_FDCWD, c->sources[c->at], O_RDONLY, 0);
    if (c->from < 0)
        return c->from;
    if (fstat(c->from, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

/* *ret_culprit: the file that an error is about. 1: more to do, 0: all is copied. */
static int copy_some(struct composer *c, const char **ret_culprit)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(c->op.as);
    int r = entered;

    for (unsigned i = 0; r == 0 && i < PIECES_A_TURN; i++) {
        *ret_culprit = c->path;
        if (c->at == c->n)
            return 0;
        *ret_culprit = c->sources[c->at];
        r = c->from < 0 ? open_source(c) : 0;
        ssize_t n = r == 0 ? read(c->from, agent_scratch, sizeof(agent_scratch)) : r;
        if (n < 0)
            return r < 0 ? r : -errno;
        if (n == 0) {
            close_p(&c->from);
            c->from = -1;
            c->at++;
            continue;
        }
        *ret_culprit = c->path;
        r = fd_write_all(c->staged.fd, agent_scratch, (size_t)n);
    }
    return r < 0 ? r : 1;
}

/* A source that cannot be removed stays: the file is there all the same. One can be the file itself. */
static void remove_source(const char *path, const struct stat *composed)
{
    AUTO(close_p) int dir = -1;
    char name[NAME_MAX + 1];
    struct stat st;

    if (path_open_parent(path, false, &dir, name) == 0 &&
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (st.st_ino != composed->st_ino || st.st_dev != composed->st_dev))
        unlinkat(dir, name, 0);
}

static int commit(struct composer *c, struct strbuf *entry)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(c->op.as);
    AUTO(close_p) int fd = -1;
    struct stat st;
    int r = entered < 0 ? entered : staged_commit(&c->staged, &fd);

    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    for (size_t i = 0; r == 0 && i < c->n; i++)
        remove_source(c->sources[i], &st);
    return r < 0 ? r : entry_put_file(entry, fd, &st, c->path);
}

static void compose_turn(struct op *op)
{
    struct composer *c = CONTAINER_OF(op, struct composer, op);
    AUTO(strbuf_done) struct strbuf entry = strbuf_upto(ENTRY_MAX);
    const char *culprit = c->path;
    int r = copy_some(c, &culprit);

    if (r == 0)
        r = commit(c, &entry);
    if (r < 0)
        op_fail_path(op, r, culprit == c->path ? "write" : "read", culprit);
    else if (entry.len > 0)
        op_end(op, &entry);
    else
        op_again(op);
}

static void compose_destroy(struct op *op)
{
    struct composer *c = CONTAINER_OF(op, struct composer, op);

    close_p(&c->from);
    staged_abort_as(&c->staged, op->as);
    for (size_t i = 0; i < c->n; i++)
        free(c->sources[i]);
    free(c->sources);
}

static const struct op_ops compose_ops = {
    .turn = compose_turn, .destroy = compose_destroy, .writes = true};

static int read_sources(struct composer *c, struct request *q, size_t n)
{
    char path[OPS_PATH_MAX];
    int r = 0;

    c->sources = xcalloc(n, sizeof(*c->sources));
    while (r == 0 && c->n < n) {
        r = request_path(q->r, q->as, path, q->e);
        if (r == 0)
            r = root_written(q->as, path, q->e);
        if (r == 0)
            c->sources[c->n++] = xstrdup(path);
    }
    return r < 0 ? r : request_done(q);
}

static int open_staged(struct composer *c, mode_t mode, uint32_t flags)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(c->op.as);

    if (entered < 0)
        return entered;
    if (c->path[strlen(c->path) - 1] == '/')
        return -EISDIR;
    return staged_open(&c->staged, c->path, mode, (flags & FILE_PARENTS) != 0);
}

int file_compose_start(struct request *q)
{
    uint32_t mode = wire_get_u32(q->r), flags = wire_get_u32(q->r), n = wire_get_u32(q->r);

    if (q->r->bad || n == 0 || n > FILE_SOURCES_MAX)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL, "a file is composed of 1 to %d files",
                       FILE_SOURCES_MAX);
    struct composer *c = op_new(q, &compose_ops, sizeof(*c));
    struct sg_error e = {0};
    c->from = c->staged.fd = c->staged.dirfd = -1;
    memcpy(c->path, q->path, sizeof(c->path));
    q->e = &e;
    int r = read_sources(c, q, n);
    if (r < 0) {
        op_fail(&c->op, &e);
        return 0;
    }
    r = open_staged(c, mode, flags);
    if (r < 0)
        op_fail_path(&c->op, r, "write", c->path);
    else
        op_again(&c->op);
    return 0;
}
