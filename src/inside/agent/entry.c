/* Entries, OP_FILE_STAT and OP_FILE_MKDIR. */
#include "inside/agent/entry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/accounts.h"
#include "inside/agent/meta.h"
#include "inside/agent/serve.h"
#include "inside/stage/confine.h"

static uint32_t entry_type(mode_t mode)
{
    if (S_ISREG(mode))
        return ENTRY_FILE;
    if (S_ISDIR(mode))
        return ENTRY_DIR;
    return S_ISLNK(mode) ? ENTRY_SYMLINK : ENTRY_OTHER;
}

static void put_owners(struct strbuf *out, const struct stat *st)
{
    char name[OPS_NAME_MAX + 1];

    account_user_name(st->st_uid, name);
    wire_put_str(out, name);
    account_group_name(st->st_gid, name);
    wire_put_str(out, name);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static uint64_t nanoseconds(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_status(struct strbuf *out, const struct stat *st, const char *path)
{
    wire_put_str(out, last_component(path));
    wire_put_str(out, path);
    wire_put_u32(out, entry_type(st->st_mode));
    wire_put_u32(out, st->st_mode & 07777);
    wire_put_u32(out, st->st_uid);
    wire_put_u32(out, st->st_gid);
    put_owners(out, st);
    wire_put_u64(out, (uint64_t)st->st_size);
    wire_put_u64(out, nanoseconds(st->st_mtim));
}

static void put_target(struct strbuf *out, const char *path, const struct stat *st)
{
    wire_put_str(out, path);
    wire_put_u32(out, entry_type(st->st_mode));
    wire_put_u32(out, st->st_mode & 07777);
    wire_put_u64(out, (uint64_t)st->st_size);
}

int entry_put_file(struct strbuf *out, int fd, const struct stat *st, const char *path)
{
    static const struct stat none;

    put_status(out, st, path);
    wire_put_str(out, "");
    put_target(out, "", &none);
    meta_put(out, fd);
    return out->truncated ? -ENOMEM : 0;
}

/* The path that the kernel now gives for an open file. */
static int resolved(int fd, char ret[OPS_PATH_MAX])
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret, OPS_PATH_MAX - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return ret[0] == '/' ? 0 : -ENOENT;
}

/* A link that cannot be followed, for whatever reason, counts as a link that leads nowhere. */
static void put_link_target(struct strbuf *out, int dirfd, const char *name)
{
    AUTO(close_p) int fd = path_open(dirfd, name, O_PATH, 0);
    char path[OPS_PATH_MAX] = "";
    struct stat st = {0};

    if (fd < 0 || fstat(fd, &st) < 0 || resolved(fd, path) < 0) {
        st = (struct stat){0};
        put_target(out, "", &st);
        wire_put_u32(out, 0);
        return;
    }
    put_target(out, path, &st);
    meta_put(out, fd);
}

static int put_link(struct strbuf *out, int dirfd, const char *name, const struct stat *st,
                    const char *path)
{
    char target[OPS_PATH_MAX];
    ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    put_status(out, st, path);
    wire_put_str(out, target);
    put_link_target(out, dirfd, name);
    return out->truncated ? -ENOMEM : 0;
}

int entry_put(struct strbuf *out, int dirfd, const char *name, const char *path)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return put_link(out, dirfd, name, &st, path);
    if (name[0] == '\0')
        return entry_put_file(out, dirfd, &st, path);
    AUTO(close_p) int fd = path_open(dirfd, name, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    return fstat(fd, &st) < 0 ? -errno : entry_put_file(out, fd, &st, path);
}

/* Goes through the parent: the descriptor of a link describes the link, but cannot be followed. */
int entry_put_path(struct strbuf *out, const char *path)
{
    AUTO(close_p) int dir = -1;
    char name[NAME_MAX + 1];
    int r = path_open_parent(path, false, &dir, name);

    if (r == 0)
        return entry_put(out, dir, name, path);
    if (r != -EINVAL)
        return r;
    /* "/" and the like have no parent, and are no links */
    AUTO(close_p) int fd = path_open(AT_FDCWD, path, O_PATH, 0);
    return fd < 0 ? fd : entry_put(out, fd, "", path);
}

int entry_put_as(struct strbuf *out, const struct agent_user *as, const char *path)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(as);

    return entered < 0 ? entered : entry_put_path(out, path);
}

int file_stat(struct request *q)
{
    int res = request_done(q);

    if (res < 0)
        return res;
    path_trim(q->path);
    res = entry_put_as(&q->answer, q->as, q->path);
    return res < 0 ? path_error(q->e, res, "stat", q->path) : 0;
}

/* The error for a new directory whose name is taken: -EEXIST if by a directory. */
static int already_there(int dirfd, const char *name)
{
    AUTO(close_p) int fd = path_open(dirfd, name, O_PATH | O_DIRECTORY, 0);

    return fd >= 0 ? -EEXIST : -ENOTDIR;
}

static int make_dir(struct request *q, mode_t mode, bool parents)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(q->as);
    AUTO(close_p) int dir = -1;
    char name[NAME_MAX + 1];
    int r = entered < 0 ? entered : path_open_parent(q->path, parents, &dir, name);

    if (entered == 0 && r == -EINVAL) /* "/" and the like always exist */
        return -EEXIST;
    if (r < 0)
        return r;
    if (mkdirat(dir, name, mode & 01777) < 0)
        return errno == EEXIST ? already_there(dir, name) : -errno;
    return entry_put(&q->answer, dir, name, q->path);
}

int file_mkdir(struct request *q)
{
    uint32_t mode = wire_get_u32(q->r), flags = wire_get_u32(q->r);
    int res = request_done(q);

    if (res < 0)
        return res;
    path_trim(q->path);
    res = make_dir(q, mode, (flags & FILE_PARENTS) != 0);
    return res < 0 ? path_error(q->e, res, "make the directory", q->path) : 0;
}
