#include "inside/agent/path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "inside/agent/view.h"
#include "lib/base/sys.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#define LINKS_MAX   40 /* the kernel's own limit */
#define TRIES_MAX   64 /* of openat2, when directories are moved meanwhile */
#define PARENT_MODE 0755

int path_absolute(const struct agent_user *as, const char *path, char *ret)
{
    return path_join(ret, path[0] == '/' ? "" : as->home, path);
}

void path_trim(char *path)
{
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/';)
        path[--len] = '\0';
}

int path_join(char *ret, const char *dir, const char *name)
{
    size_t len = strlen(dir);
    bool slash = len > 0 && dir[len - 1] != '/' && name[0] != '\0';
    int n = snprintf(ret, OPS_PATH_MAX, "%s%s%s", dir, slash ? "/" : "", name);

    return n >= 0 && n < OPS_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool in_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Whether fd is in the agent's own directory of /proc: the kernel never refuses a process that
 * looks at itself, whatever ids it has taken on. */
static bool is_own_proc(int fd)
{
    char self[16], link[32], path[64];
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    if (n <= 0)
        return true;
    self[n] = '\0';
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return true;
    path[n] = '\0';
    int len = snprintf(link, sizeof(link), "/proc/%s", self);
    return strncmp(path, link, (size_t)len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static int open_checked(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .mode = mode,
                           .resolve = RESOLVE_NO_MAGICLINKS | resolve};
    int fd = -1;

    if (!(flags & O_PATH)) /* openat2 refuses these flags beside O_PATH */
        how.flags |= O_NOCTTY | O_NONBLOCK;
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        fd = sys_openat2(dirfd, path, &how);
        if (fd >= 0 || errno != EAGAIN)
            break;
        view_yield();
    }
    if (fd < 0)
        return -errno;
    if (in_proc(fd) && is_own_proc(fd)) {
        close(fd);
        return -EACCES;
    }
    return fd;
}

int path_open(int dirfd, const char *path, int flags, mode_t mode)
{
    return open_checked(dirfd, path, flags, mode, 0);
}

int path_open_beneath(int dirfd, const char *path, int flags)
{
    return open_checked(dirfd, path, flags | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* Opens the next directory of the path, and makes it if it is missing. */
static int step(int dirfd, const char *name)
{
    int fd = path_open(dirfd, name, O_PATH | O_DIRECTORY, 0);

    if (fd == -ENOENT) {
        if (mkdirat(dirfd, name, PARENT_MODE) < 0 && errno != EEXIST)
            return -errno;
        fd = path_open(dirfd, name, O_PATH | O_DIRECTORY, 0);
    }
    return fd;
}

static int make_dirs(int dirfd, const char *path, int *ret_fd)
{
    AUTO(close_p)
    int dir = path_open(path[0] == '/' ? AT_FDCWD : dirfd, path[0] == '/' ? "/" : ".",
                        O_PATH | O_DIRECTORY, 0);

    if (dir < 0)
        return dir;
    for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
        size_t len = strcspn(p, "/");
        char name[NAME_MAX + 1];

        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, p, len);
        name[len] = '\0';
        int next = step(dir, name);
        if (next < 0)
            return next;
        close(dir);
        dir = next;
        p += len;
    }
    *ret_fd = steal_fd(&dir);
    return 0;
}

static int open_dir_at(int dirfd, const char *path, bool make, int *ret_fd)
{
    int fd = path_open(dirfd, path, O_PATH | O_DIRECTORY, 0);

    if (fd == -ENOENT && make)
        return make_dirs(dirfd, path, ret_fd);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

int path_open_dir(const char *path, bool make, int *ret_fd)
{
    return open_dir_at(AT_FDCWD, path, make, ret_fd);
}

static int open_parent_at(int dirfd, const char *path, bool make, int *ret_dirfd,
                          char ret_name[NAME_MAX + 1])
{
    char dir[OPS_PATH_MAX];
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t len = end - start;
    if (len == 0 || (len <= 2 && strncmp(path + start, "..", len) == 0))
        return -EINVAL;
    if (len > NAME_MAX || start >= sizeof(dir))
        return -ENAMETOOLONG;

    snprintf(dir, sizeof(dir), "%.*s", (int)start, path);
    int r = open_dir_at(dirfd, start > 0 ? dir : ".", make, ret_dirfd);
    if (r < 0)
        return r;
    memcpy(ret_name, path + start, len);
    ret_name[len] = '\0';
    return 0;
}

int path_open_parent(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1])
{
    return open_parent_at(AT_FDCWD, path, make, ret_dirfd, ret_name);
}

static int check_target(const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return -EISDIR;
    return S_ISREG(st->st_mode) ? 0 : -EINVAL;
}

/* Follows symbolic links by hand, because the place of the file is wanted, not the file. */
int path_open_target(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1],
                     struct stat *ret)
{
    AUTO(close_p) int dir = AT_FDCWD;
    char next[OPS_PATH_MAX], name[NAME_MAX + 1];
    struct stat st = {0};

    snprintf(next, sizeof(next), "%s", path);
    for (unsigned links = 0;; links++) {
        int parent;
        int r = open_parent_at(dir, next, make && links == 0, &parent, name);
        if (r < 0)
            return r;
        close_p(&dir);
        dir = parent;
        if (links > LINKS_MAX || in_proc(dir))
            return links > LINKS_MAX ? -ELOOP : -EACCES;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno != ENOENT)
                return -errno;
            st = (struct stat){0};
            break;
        }
        if (!S_ISLNK(st.st_mode)) {
            r = check_target(&st);
            if (r < 0)
                return r;
            break;
        }
        ssize_t n = readlinkat(dir, name, next, sizeof(next) - 1);
        if (n <= 0)
            return n < 0 ? -errno : -ENOENT;
        next[n] = '\0';
    }
    memcpy(ret_name, name, sizeof(name));
    *ret_dirfd = steal_fd(&dir);
    *ret = st;
    return 0;
}

/* With AT_EACCESS the kernel goes by the current file-system ids, not by the real ones. */
int path_check_writable(int dirfd, const char *name)
{
    long r = syscall(SYS_faccessat2, dirfd, name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW);

    return r < 0 ? -errno : 0;
}

int path_error(struct sg_error *e, int r, const char *verb, const char *path)
{
    const char *why = strerror(-r);

    if (r == -EINVAL)
        why = "not a regular file";
    else if (r == -ENOSPC || r == -EDQUOT)
        why = "the sandbox's disk is full";
    else if (r == -ELOOP)
        why = "too many symbolic links, or a link of /proc";
    else if (r == -ESTALE)
        why = "the file became shorter while it was read";
    else if (r == -EOPNOTSUPP)
        why = "metadata cannot be stored: user attributes on tmpfs need Linux 6.6";
    return err_set(e, err_kind_of(-r), r, "cannot %s '%.300s': %s", verb, path, why);
}
