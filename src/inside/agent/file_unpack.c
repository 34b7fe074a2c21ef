/* OP_FILE_UNPACK: the entries of an archive become files below a directory.
 *
 * The work is done with the rights of root, and what is made belongs to the user that the request
 * names. Leading components of each name are dropped, as many as the request says: those that name
 * the source. A name that is absolute or has ".." in it ends the operation. What is there already
 * is replaced, not followed, with one exception: a directory stays, and so does a link that leads
 * to one, as /lib does. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inside/agent/accounts.h"
#include "inside/agent/path.h"
#include "inside/agent/serve.h"
#include "lib/tar/tar_in.h"
#include "inside/stage/confine.h"
#include "lib/base/fault.h"
#include "lib/base/fd.h"

#define DIR_MODE 0755
#define BITS     0777 /* set-id bits would hand out the rights of the owner */

struct unpacker {
    struct op op;
    struct tar_reader tar;
    char dest[OPS_PATH_MAX]; /* absolute, without a slash at the end */
    bool into;               /* dest is a directory: a single file goes into it */
    uint32_t gid, mode, strip;
    uint64_t files;
    int fd; /* of the file that is being written; -1 */
    uint32_t fd_mode;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* The next component of a path, or false. Leaves out "." and empty ones. */
static bool next_part(const char **path, const char **ret, size_t *ret_len)
{
    for (const char *p = *path; *p;) {
        size_t len = strcspn(p, "/");
        const char *after = p + len + (p[len] == '/');

        if (len > 0 && !(len == 1 && p[0] == '.')) {
            *path = after;
            *ret = p;
            *ret_len = len;
            return true;
        }
        p = after;
    }
    return false;
}

/* Writes the part of an entry's name that remains to ret. Returns how many components all of it
 * has, or -errno. */
static int strip_name(const struct unpacker *u, const char *path, char ret[OPS_PATH_MAX],
                      struct sg_error *e)
{
    const char *whole = path, *part;
    size_t len, n = 0, at = 0;

    ret[0] = '\0';
    if (path[0] == '/')
        return err_invalid(e, "'%.200s' in the archive is an absolute path", whole);
    while (next_part(&path, &part, &len)) {
        if (len == 2 && memcmp(part, "..", 2) == 0)
            return err_invalid(e, "'%.200s' in the archive leads out of it", whole);
        if (len > NAME_MAX || at + len + 2 > OPS_PATH_MAX)
            return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "'%.200s' in the archive is too long",
                           whole);
        if (n++ < u->strip)
            continue;
        if (at > 0)
            ret[at++] = '/';
        memcpy(ret + at, part, len);
        at += len;
        ret[at] = '\0';
    }
    return (int)n;
}

/* The last component of a name. */
static const char *base_of(const char *path, char ret[NAME_MAX + 1])
{
    const char *part = "";
    size_t len = 0;

    while (next_part(&path, &part, &len))
        ;
    snprintf(ret, NAME_MAX + 1, "%.*s", (int)len, part);
    return ret;
}

/* Where the entry goes. 1: nowhere, it is a directory above the source. */
static int place_of(const struct unpacker *u, const char *path, bool dir, char ret[OPS_PATH_MAX],
                    struct sg_error *e)
{
    char rest[OPS_PATH_MAX], name[NAME_MAX + 1];
    int n = strip_name(u, path, rest, e), r;

    if (n < 0)
        return n;
    if ((uint32_t)n < u->strip)
        return dir ? 1 : err_invalid(e, "'%.200s' in the archive is not below the source", path);
    if (rest[0] == '\0' && !dir && u->into)
        r = path_join(ret, u->dest, base_of(path, name));
    else
        r = path_join(ret, u->dest, rest);
    return r < 0 ? err_set(e, SG_ERR_INVALID, r, "'%.200s' in the archive is too long", path) : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int own(const struct unpacker *u, int dirfd, const char *name)
{
    return fchownat(dirfd, name, u->op.as->uid, u->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Opens a directory and makes what is missing of its path, for the owner. */
static int open_dir(const struct unpacker *u, const char *path, size_t path_len)
{
    AUTO(close_p) int dir = path_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
    char text[OPS_PATH_MAX], name[NAME_MAX + 1];
    const char *at = text, *part;
    size_t len;

    snprintf(text, sizeof(text), "%.*s", (int)path_len, path);
    while (dir >= 0 && next_part(&at, &part, &len)) {
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        snprintf(name, sizeof(name), "%.*s", (int)len, part);
        int next = path_open(dir, name, O_PATH | O_DIRECTORY, 0);
        if (next == -ENOENT) {
            if (mkdirat(dir, name, DIR_MODE) < 0)
                return -errno;
            int r = own(u, dir, name);
            next = r < 0 ? r : path_open(dir, name, O_PATH | O_DIRECTORY, 0);
        }
        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    return steal_fd(&dir);
}

/* Opens the directory that holds a path, and makes it if need be. */
static int open_parent(const struct unpacker *u, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    *ret_name = slash + 1;
    return slash[1] == '\0' ? -EISDIR : open_dir(u, path, (size_t)(slash - path));
}

/* Makes room for a file or a link. */
static int clear_place(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR || errno == EPERM ? -EISDIR : -errno;
}

static uint32_t mode_for(const struct unpacker *u, uint32_t mode)
{
    return (u->mode != UNPACK_OWN_MODE ? u->mode : mode) & BITS;
}

/* A directory that is there keeps its owner and its mode. */
static int put_dir(const struct unpacker *u, const char *path, uint32_t mode)
{
    AUTO(close_p) int dir = path_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);

    if (dir != -ENOENT)
        return dir < 0 ? dir : 0;
    dir = open_dir(u, path, strlen(path));
    if (dir < 0)
        return dir;
    return fchmodat(dir, ".", mode_for(u, mode), 0) < 0 ? -errno : 0;
}

static int put_file(struct unpacker *u, const char *path, uint32_t mode)
{
    const char *name;
    AUTO(close_p) int dir = open_parent(u, path, &name);
    int r = dir < 0 ? dir : clear_place(dir, name);

    if (r < 0)
        return r;
    u->fd = path_open(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (u->fd < 0)
        return steal_fd(&u->fd);
    u->fd_mode = mode_for(u, mode);
    return fchown(u->fd, u->op.as->uid, u->gid) < 0 ? -errno : 0;
}

static int put_symlink(const struct unpacker *u, const char *path, const char *target)
{
    const char *name;
    AUTO(close_p) int dir = open_parent(u, path, &name);
    int r = dir < 0 ? dir : clear_place(dir, name);

    if (r == 0 && symlinkat(target, dir, name) < 0)
        r = -errno;
    return r < 0 ? r : own(u, dir, name);
}

static int put_hardlink(const struct unpacker *u, const char *path, const char *target)
{
    const char *name, *old_name;
    AUTO(close_p) int dir = open_parent(u, path, &name);
    AUTO(close_p) int old_dir = open_parent(u, target, &old_name);
    int r = dir < 0 ? dir : old_dir < 0 ? old_dir : 0;

    if (r == 0 && strcmp(path, target) != 0)
        r = clear_place(dir, name);
    if (r == 0 && linkat(old_dir, old_name, dir, name, 0) < 0)
        r = -errno;
    return r;
}

static int put(struct unpacker *u, const struct tar_entry *entry, const char *path,
               const char *target)
{
    switch (entry->type) {
    case TAR_DIR:
        return put_dir(u, path, entry->mode);
    case TAR_FILE:
        return put_file(u, path, entry->mode);
    case TAR_SYMLINK:
        return put_symlink(u, path, entry->link);
    case TAR_HARDLINK:
        return put_hardlink(u, path, target);
    }
    return -EINVAL;
}

static int on_entry(void *arg, const struct tar_entry *entry, struct sg_error *e)
{
    struct unpacker *u = arg;
    char path[OPS_PATH_MAX], target[OPS_PATH_MAX];
    int r = place_of(u, entry->path, entry->type == TAR_DIR, path, e);

    if (r == 0 && entry->type == TAR_HARDLINK)
        r = place_of(u, entry->link, false, target, e);
    if (r != 0)
        return r < 0 ? r : 0;
    r = put(u, entry, path, target);
    if (r < 0)
        return path_error(e, r, "make", path);
    u->files += entry->type != TAR_DIR;
    return 0;
}

static int on_data(void *arg, const void *p, size_t len, struct sg_error *e)
{
    struct unpacker *u = arg;
    int r = u->fd < 0 ? 0 : fd_write_all(u->fd, p, len);

    return r < 0 ? path_error(e, r, "write below", u->dest) : 0;
}

static int on_entry_end(void *arg, struct sg_error *e)
{
    struct unpacker *u = arg;
    int r = u->fd >= 0 && fchmod(u->fd, u->fd_mode) < 0 ? -errno : 0;

    close_p(&u->fd);
    return r < 0 ? path_error(e, r, "set the mode of a file below", u->dest) : 0;
}

/* ---- the operation --------------------------------------------------------------------------- */

static int feed(struct unpacker *u, const void *p, size_t len, struct sg_error *e)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(agent_user_find("root"));

    return entered < 0 ? err_internal(e, entered, "work as root") : tar_feed(&u->tar, p, len, e);
}

static void unpack_data(struct op *op, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct unpacker *u = CONTAINER_OF(op, struct unpacker, op);
    struct sg_error e = {0};

    if (feed(u, p, len, &e) < 0)
        op_fail(op, &e);
    else
        chan_consumed(op->agent->chan, op->stream, len);
}

static void unpack_eof(struct op *op)
{
    AUTO(strbuf_done) struct strbuf answer = strbuf_upto(16);
    struct unpacker *u = CONTAINER_OF(op, struct unpacker, op);
    struct sg_error e = {0};

    if (feed(u, NULL, 0, &e) < 0 || tar_end(&u->tar, &e) < 0) {
        op_fail(op, &e);
        return;
    }
    wire_put_u64(&answer, u->files);
    op_end(op, &answer);
}

static void unpack_destroy(struct op *op)
{
    struct unpacker *u = CONTAINER_OF(op, struct unpacker, op);

    close_p(&u->fd);
    tar_done(&u->tar);
}

static const struct op_ops unpack_ops = {
    .data = unpack_data, .eof = unpack_eof, .destroy = unpack_destroy, .writes = true};

/* Makes the directory if files go into it; finds out whether it is one already. */
static int begin(struct unpacker *u)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(agent_user_find("root"));
    AUTO(close_p) int dir = -1;

    if (entered < 0)
        return entered;
    if (u->into)
        dir = open_dir(u, u->dest, strlen(u->dest));
    else
        dir = path_open(AT_FDCWD, u->dest, O_PATH | O_DIRECTORY, 0);
    if (dir < 0 && u->into)
        return dir;
    u->into |= dir >= 0;
    return 0;
}

int file_unpack_start(struct request *q)
{
    static const struct tar_handlers handlers = {
        .on_entry = on_entry, .on_data = on_data, .on_entry_end = on_entry_end};
    const char *group = wire_get_str(q->r, OPS_NAME_MAX);
    uint32_t mode = wire_get_u32(q->r), strip = wire_get_u32(q->r), gid = q->as->gid;
    int res = request_done(q);

    if (res == 0 && group[0] != '\0')
        res = agent_account_group(group, &gid, q->e);
    if (res < 0)
        return res;
    struct unpacker *u = op_new(q, &unpack_ops, sizeof(*u));
    u->fd = -1;
    u->gid = gid;
    u->mode = mode;
    u->strip = strip;
    u->into = q->path[strlen(q->path) - 1] == '/';
    path_trim(q->path);
    memcpy(u->dest, q->path, sizeof(u->dest));
    tar_init(&u->tar, &handlers, u);
    res = begin(u);
    if (res < 0)
        op_fail_path(&u->op, res, "make", u->dest);
    return 0;
}
