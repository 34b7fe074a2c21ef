/* Writes a file. It has no name until all of it is there, so that an upload that ends early, or a
 * helper that is killed, leaves nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/volume/volume.h"
#include "lib/base/fd.h"

#define DEFAULT_MODE 0644

struct writing {
    struct volume_serving *serving;
    int fd;
};

static int take_data(void *arg, const char *data, size_t len)
{
    const struct writing *w = arg;
    int r = volume_take_room(w->serving, len);

    return r < 0 ? r : fd_write_all(w->fd, data, len);
}

/* The file keeps the looks of the one whose place it takes, unless others are asked for. */
static int set_looks(const struct volume_serving *s, int fd, int dir, const char *name)
{
    mode_t mode = s->q.flags & VOLUME_HAS_MODE ? s->q.mode : DEFAULT_MODE;
    struct stat old;

    if (fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return volume_give(s, fd, mode);
    if (S_ISDIR(old.st_mode))
        return -EISDIR;
    if (!S_ISREG(old.st_mode))
        return volume_give(s, fd, mode);
    if (!(s->q.flags & VOLUME_HAS_MODE))
        mode = old.st_mode & 07777;
    if (!(s->q.flags & VOLUME_KEEP))
        return volume_give(s, fd, mode);
    return fchown(fd, old.st_uid, old.st_gid) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

static int put_in_place(int fd, int dir, const char *name)
{
    uint64_t number = 0;
    char aside[40];

    getrandom(&number, sizeof(number), 0);
    snprintf(aside, sizeof(aside), ".upload-%016llx", (unsigned long long)number);
    if (linkat(fd, "", dir, aside, AT_EMPTY_PATH) < 0)
        return -errno;
    if (renameat(dir, aside, dir, name) == 0)
        return 0;
    int r = -errno;
    unlinkat(dir, aside, 0);
    return r;
}

int volume_do_write(struct volume_serving *s)
{
    AUTO(free_p) char *data = xcalloc(1, VOLUME_RECORD_MAX);
    AUTO(close_p) int dir = -1, fd = -1;
    const char *name;
    int r = volume_open_parent(s, &dir, &name);

    if (r < 0)
        return r == -EBUSY ? -EISDIR : r;
    r = volume_take_room(s, 0);
    if (r < 0)
        return r;
    fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = volume_take_body(s, data, take_data, &(struct writing){.serving = s, .fd = fd});
    if (r == 0)
        r = set_looks(s, fd, dir, name);
    if (r == 0)
        r = put_in_place(fd, dir, name);
    if (r < 0)
        volume_size_unknown(s);
    return r < 0 ? r : volume_put_entry(s, fd, s->path);
}
