/* OP_FILE_REMOVE.
 *
 * A tree is removed from its leaves, with a stack of at most LEVELS_MAX open directories. A
 * directory that lies deeper is first moved up to the top of the tree, so depth costs neither
 * descriptors nor repeated walks down. Every step is relative to a directory that was opened below
 * the top, and follows no link. So somebody who moves directories about meanwhile can keep us from
 * finishing, but cannot lead us elsewhere. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/dirents.h"
#include "inside/agent/path.h"
#include "inside/agent/serve.h"
#include "lib/base/ids.h"
#include "inside/stage/confine.h"

#define LEVELS_MAX   48
#define STEPS_A_TURN 512
#define RESCANS_MAX  16 /* of one directory that others keep filling */

struct level {
    int fd;
    unsigned rescans;
    struct dirents names;
    char name[NAME_MAX + 1]; /* its name in the level above */
};

struct remover {
    struct op op;
    int parent; /* the directory that holds the top */
    size_t n;
    struct level levels[LEVELS_MAX];
    char path[OPS_PATH_MAX];
};

static int push(struct remover *m, int dirfd, const char *name)
{
    struct level *l = &m->levels[m->n];
    int fd = path_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return fd;
    *l = (struct level){.fd = fd};
    snprintf(l->name, sizeof(l->name), "%s", name);
    m->n++;
    return dirents_init(&l->names);
}

static void pop(struct remover *m)
{
    struct level *l = &m->levels[--m->n];

    close(l->fd);
    dirents_done(&l->names);
}

/* The directory is too deep: makes it a child of the top, where it is found later. */
static int move_up(struct remover *m, const struct level *l, const char *name)
{
    char random[ID_LEN + 1];

    id_random(random);
    m->levels[0].rescans = 0;
    return renameat(l->fd, name, m->levels[0].fd, random) < 0 ? -errno : 0;
}

static int remove_entry(struct remover *m, struct level *l, const struct dirent_name *d)
{
    int r;

    if (d->type != DT_DIR) {
        r = unlinkat(l->fd, d->name, 0) < 0 ? -errno : 0;
        if (r != -EISDIR)
            return r == -ENOENT ? 0 : r;
    }
    if (unlinkat(l->fd, d->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR)
        return unlinkat(l->fd, d->name, 0) < 0 && errno != ENOENT ? -errno : 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    r = m->n < LEVELS_MAX ? push(m, l->fd, d->name) : move_up(m, l, d->name);
    return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r; /* replaced meanwhile: the next
                                                                  * scan sees it again */
}

/* The current directory is empty as far as we saw: removes it, or scans it again. */
static int finish_level(struct remover *m)
{
    struct level *l = &m->levels[m->n - 1];
    int above = m->n > 1 ? m->levels[m->n - 2].fd : m->parent;

    if (unlinkat(above, l->name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR) {
        pop(m);
        return 0;
    }
    if ((errno != ENOTEMPTY && errno != EEXIST) || ++l->rescans > RESCANS_MAX)
        return -errno;
    dirents_reset(&l->names);
    return lseek(l->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int remove_step(struct remover *m)
{
    struct level *l = &m->levels[m->n - 1];
    struct dirent_name d;
    int r = dirents_next(&l->names, l->fd, &d);

    if (r < 0)
        return r;
    return r == 0 ? finish_level(m) : remove_entry(m, l, &d);
}

static int remove_some(struct remover *m)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(m->op.as);
    int r = entered;

    for (unsigned i = 0; r == 0 && m->n > 0 && i < STEPS_A_TURN; i++)
        r = remove_step(m);
    return r;
}

static void remove_turn(struct op *op)
{
    struct remover *m = CONTAINER_OF(op, struct remover, op);
    int r = remove_some(m);

    if (r < 0)
        op_fail_path(op, r, "remove", m->path);
    else if (m->n == 0)
        op_end(op, NULL);
    else
        op_again(op);
}

static void remove_destroy(struct op *op)
{
    struct remover *m = CONTAINER_OF(op, struct remover, op);

    while (m->n > 0)
        pop(m);
    close_p(&m->parent);
}

static const struct op_ops remove_ops = {
    .turn = remove_turn, .destroy = remove_destroy, .writes = true};

/* Removes one file, or one empty directory. -ENOTEMPTY: it is a tree. */
static int remove_one(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0)
        return 0;
    if (errno != EISDIR)
        return -errno;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
        return 0;
    return errno == EEXIST ? -ENOTEMPTY : -errno;
}

static int remove_open(struct remover *m, bool recursive)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(m->op.as);
    char name[NAME_MAX + 1];
    int r;

    if (entered < 0)
        return entered;
    r = path_open_parent(m->path, false, &m->parent, name);
    if (r == 0)
        r = remove_one(m->parent, name);
    else if (r == -EINVAL)
        r = -EBUSY;
    if (r == -ENOTEMPTY && recursive)
        r = push(m, m->parent, name);
    return r;
}

int file_remove_start(struct request *q)
{
    uint32_t flags = wire_get_u32(q->r);
    int res = request_done(q);

    if (res < 0)
        return res;
    struct remover *m = op_new(q, &remove_ops, sizeof(*m));
    m->parent = -1;
    memcpy(m->path, q->path, sizeof(m->path));
    res = remove_open(m, (flags & FILE_RECURSIVE) != 0);
    if (res < 0)
        op_fail_path(&m->op, res, "remove", m->path);
    else
        remove_turn(&m->op);
    return 0;
}
