#include "inside/agent/staged.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inside/agent/path.h"
#include "inside/stage/confine.h"
#include "lib/base/ids.h"

#define NEW_SUFFIX      ".part"
#define REPLACES_SUFFIX ".over"

int staged_open(struct staged *s, const char *path, mode_t mode, bool make_parents)
{
    char random[ID_LEN + 1];
    struct stat old;

    *s = (struct staged){.dirfd = -1, .fd = -1};
    int r = path_open_target(path, make_parents, &s->dirfd, s->name, &old);
    if (r < 0)
        return r;
    bool replaces = old.st_nlink > 0;
    if (replaces)
        r = path_check_writable(s->dirfd, s->name);
    if (r == 0) {
        id_random(random);
        snprintf(s->temp, sizeof(s->temp), ".%s%s", random,
                 replaces ? REPLACES_SUFFIX : NEW_SUFFIX);
        s->fd = openat(s->dirfd, s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       mode & 0777);
        r = s->fd < 0 ? -errno : 0;
    }
    /* without set-id bits, which would hand out the rights of the new owner */
    if (r == 0 && replaces && fchmod(s->fd, old.st_mode & 0777) < 0)
        r = -errno;
    if (r < 0)
        staged_abort(s);
    return r;
}

/* The kind is known before the file is opened, because that can have effects; and looked at again,
 * because another file can have come there. */
static int open_itself(struct staged *s, const struct stat *old, mode_t mode)
{
    struct stat st;

    s->made = old->st_nlink == 0;
    s->fd = path_open(s->dirfd, s->name, O_WRONLY | O_NOFOLLOW | (s->made ? O_CREAT | O_EXCL : 0),
                      s->made ? mode & 0777 : 0);
    if (s->fd < 0)
        return s->fd;
    if (fstat(s->fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

int staged_open_in_place(struct staged *s, const char *path, mode_t mode, bool make_parents,
                         const struct agent_user *as)
{
    struct stat old;

    *s = (struct staged){.dirfd = -1, .fd = -1, .in_place = true};
    int r = path_open_target(path, make_parents, &s->dirfd, s->name, &old);
    if (r == 0)
        r = open_itself(s, &old, mode);
    if (r == 0 &&
        ((old.st_size > 0 && ftruncate(s->fd, 0) < 0) || fchown(s->fd, as->uid, as->gid) < 0))
        r = -errno;
    if (r < 0)
        staged_abort(s);
    return r;
}

static void forget(struct staged *s)
{
    close_p(&s->fd);
    close_p(&s->dirfd);
    s->fd = s->dirfd = -1;
}

/* Sets the file's size to what it is. The only effect is a change that watches report, under the
 * name that the file has now. */
static void announce(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && ftruncate(fd, st.st_size) < 0)
        return; /* only the event is missing then */
}

int staged_commit(struct staged *s, int *ret_fd)
{
    if (!s->in_place) {
        if (renameat(s->dirfd, s->temp, s->dirfd, s->name) < 0)
            return -errno;
        announce(s->fd);
    }
    *ret_fd = steal_fd(&s->fd);
    forget(s);
    return 0;
}

/* Whether the name still leads to the file that was made under it. */
static bool is_ours(const struct staged *s)
{
    struct stat ours, there;

    return fstat(s->fd, &ours) == 0 &&
           fstatat(s->dirfd, s->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

void staged_abort(struct staged *s)
{
    if (s->fd >= 0 && !s->in_place)
        unlinkat(s->dirfd, s->temp, 0);
    else if (s->fd >= 0 && s->made && is_ours(s))
        unlinkat(s->dirfd, s->name, 0);
    forget(s);
}

void staged_abort_as(struct staged *s, const struct agent_user *as)
{
    AUTO(confine_fs_leave) int entered = confine_fs_begin(as);

    if (entered == 0)
        staged_abort(s);
}

enum staged_kind staged_kind_of(const char *name)
{
    char id[ID_LEN + 1];

    if (name[0] != '.' || strlen(name) != 1 + ID_LEN + strlen(NEW_SUFFIX))
        return STAGED_NOT;
    memcpy(id, name + 1, ID_LEN);
    id[ID_LEN] = '\0';
    if (!id_valid(id))
        return STAGED_NOT;
    if (strcmp(name + 1 + ID_LEN, NEW_SUFFIX) == 0)
        return STAGED_NEW;
    return strcmp(name + 1 + ID_LEN, REPLACES_SUFFIX) == 0 ? STAGED_REPLACES : STAGED_NOT;
}
