/* Makes directories, changes owners and modes, removes. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/files/layer_stack_merge.h"
#include "inside/volume/volume.h"

#define DEFAULT_MODE 0755

int volume_do_mkdir(struct volume_serving *s)
{
    AUTO(close_p) int dir = -1, fd = -1;
    bool force = (s->q.flags & VOLUME_FORCE) != 0;
    const char *name;
    int r = volume_open_parent(s, &dir, &name);

    if (r == -EBUSY)
        return force ? volume_put_entry(s, s->root, "/") : -EEXIST;
    if (r == 0)
        r = volume_take_room(s, 0);
    if (r < 0)
        return r;
    bool made = mkdirat(dir, name, 0700) == 0;
    if (!made && (errno != EEXIST || !force))
        return -errno;
    /* One that is there may be reached by a link. */
    fd = volume_open(s->root, s->path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd == -ENOTDIR ? -EEXIST : fd;
    if (made)
        r = volume_give(s, fd, s->q.flags & VOLUME_HAS_MODE ? s->q.mode : DEFAULT_MODE);
    return r < 0 ? r : volume_put_entry(s, fd, s->path);
}

/* A link has an owner of its own, and no mode. A file or directory is opened to set its mode: one
 * that only has a name cannot be changed. */
int volume_do_change(struct volume_serving *s)
{
    AUTO(close_p) int fd = volume_open(s->root, s->path, O_PATH | O_NOFOLLOW), open_fd = -1;
    const struct volume_request *q = &s->q;
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    mode_t mode = q->flags & VOLUME_HAS_MODE ? q->mode : st.st_mode & 07777;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        if ((q->flags & VOLUME_HAS_MODE) ||
            fchownat(fd, "", q->flags & VOLUME_HAS_UID ? q->uid : (uid_t)-1,
                     q->flags & VOLUME_HAS_GID ? q->gid : (gid_t)-1, AT_EMPTY_PATH) < 0)
            return -EINVAL;
        return volume_put_entry(s, fd, s->path);
    }
    open_fd = volume_open(s->root, s->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (open_fd < 0)
        return open_fd;
    int r = volume_give(s, open_fd, mode);
    return r < 0 ? r : volume_put_entry(s, open_fd, s->path);
}

int volume_do_remove(struct volume_serving *s)
{
    AUTO(close_p) int dir = -1;
    const char *name;
    struct stat st;
    int r = volume_open_parent(s, &dir, &name);

    if (r < 0)
        return r;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode)) {
        volume_size_unknown(s);
        return layer_remove_tree(dir, name, NULL);
    }
    if (unlinkat(dir, name, 0) < 0)
        return -errno;
    volume_give_back(s, &st);
    return 0;
}
