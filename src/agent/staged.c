#include "agent/staged.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/path.h"
#include "base/fd.h"
#include "base/ids.h"

static int take_over(int fd, const struct agent_user *as, const struct stat *old)
{
    if (as->uid == 0 && fchown(fd, old->st_uid, old->st_gid) < 0)
        return -errno;
    return fchmod(fd, old->st_mode & 07777) < 0 ? -errno : 0;
}

int staged_open(struct staged *s, const struct agent_user *as, const char *path, mode_t mode,
                bool make_parents)
{
    char random[ID_LEN + 1];
    struct stat old;

    s->dirfd = s->fd = -1;
    int r = path_open_target(path, make_parents, &s->dirfd, s->name, &old);
    if (r < 0)
        return r;
    if (old.st_nlink > 0)
        r = path_check_writable(s->dirfd, s->name);
    if (r == 0) {
        id_random(random);
        snprintf(s->temp, sizeof(s->temp), ".%s.part", random);
        s->fd = openat(s->dirfd, s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       mode & 0777);
        r = s->fd < 0 ? -errno : 0;
    }
    if (r == 0 && old.st_nlink > 0)
        r = take_over(s->fd, as, &old);
    if (r < 0)
        staged_abort(s);
    return r;
}

int staged_write(struct staged *s, const void *data, size_t len)
{
    return fd_write_all(s->fd, data, len);
}

static void forget(struct staged *s)
{
    close_p(&s->fd);
    close_p(&s->dirfd);
    s->fd = s->dirfd = -1;
}

int staged_commit(struct staged *s)
{
    if (renameat(s->dirfd, s->temp, s->dirfd, s->name) < 0)
        return -errno;
    forget(s);
    return 0;
}

void staged_abort(struct staged *s)
{
    if (s->fd >= 0)
        unlinkat(s->dirfd, s->temp, 0);
    forget(s);
}
