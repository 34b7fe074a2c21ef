#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/volume/volume.h"
#include "lib/base/sys.h"

int volume_open(int root, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = sys_openat2(root, path, &how);

    return fd < 0 ? -errno : fd;
}

int volume_give(const struct volume_serving *s, int fd, mode_t mode)
{
    const struct volume_request *q = &s->q;
    uid_t uid = q->flags & VOLUME_HAS_UID ? q->uid : (uid_t)-1;
    gid_t gid = q->flags & VOLUME_HAS_GID ? q->gid : (gid_t)-1;

    return fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

/* The first len bytes of a path; "/" for none. */
static void head_of(const char *path, size_t len, char ret[VOLUME_PATH_MAX])
{
    len = len > 0 ? len : 1;
    memcpy(ret, path, len);
    ret[len] = '\0';
}

/* Makes one missing directory; who made it meanwhile is welcome. */
static int make_dir(const struct volume_serving *s, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char up[VOLUME_PATH_MAX];

    head_of(path, (size_t)(name - path) - 1, up);
    AUTO(close_p) int dir = volume_open(s->root, up, O_PATH | O_DIRECTORY), fd = -1;
    if (dir < 0)
        return dir;
    if (mkdirat(dir, name, 0755) < 0)
        return errno == EEXIST ? 0 : -errno;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : volume_give(s, fd, 0755);
}

/* Makes the directories that are missing, from the top. */
static int make_dirs(const struct volume_serving *s, const char *path)
{
    char part[VOLUME_PATH_MAX];
    const char *end = path;
    int r = 0;

    while (r == 0 && *end) {
        end += 1 + strcspn(end + 1, "/");
        head_of(path, (size_t)(end - path), part);
        int fd = volume_open(s->root, part, O_PATH | O_DIRECTORY);
        if (fd == -ENOENT)
            r = make_dir(s, part);
        else if (fd < 0)
            r = fd;
        else
            close(fd);
    }
    return r;
}

int volume_open_parent(const struct volume_serving *s, int *ret_dir, const char **ret_name)
{
    char up[VOLUME_PATH_MAX];
    const char *slash = strrchr(s->path, '/');
    size_t len = (size_t)(slash - s->path);
    int fd;

    if (slash[1] == '\0')
        return -EBUSY; /* the volume itself */
    head_of(s->path, len, up);
    fd = volume_open(s->root, up, O_PATH | O_DIRECTORY);
    if (fd == -ENOENT && (s->q.flags & VOLUME_FORCE) && s->q.op != VOLUME_REMOVE) {
        fd = make_dirs(s, up);
        if (fd == 0)
            fd = volume_open(s->root, up, O_PATH | O_DIRECTORY);
    }
    if (fd < 0)
        return fd;
    *ret_dir = fd;
    *ret_name = slash + 1;
    return 0;
}
