#include "inside/stage/places.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"

#define ASIDE_MAX    100
#define RENAME_FRESH 1u /* RENAME_NOREPLACE */

static const struct open_how in_root = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                                   RESOLVE_NO_XDEV};

static int open_place(int root, const char *path, int *ret, struct sg_error *e)
{
    struct open_how how = in_root;

    *ret = sys_openat2(root, path, &how);
    return *ret < 0 ? err_errno(e, "/%s is no longer a directory: make it one", path) : 0;
}

int places_open(int root, struct places *ret, struct sg_error *e)
{
    int r = open_place(root, "dev", &ret->dev, e);

    if (r == 0)
        r = open_place(root, "proc", &ret->proc, e);
    if (r == 0)
        r = open_place(root, "usr", &ret->usr, e);
    if (r == 0)
        r = open_place(root, "usr/local", &ret->local, e);
    return r < 0 ? r : open_place(root, "run/shm", &ret->shm, e);
}

void places_done(struct places *p)
{
    close_p(&p->dev);
    close_p(&p->proc);
    close_p(&p->usr);
    close_p(&p->local);
    close_p(&p->shm);
}

static int put_aside(int dir, const char *name)
{
    char aside[NAME_MAX + 1];

    for (int i = 1; i < ASIDE_MAX; i++) {
        snprintf(aside, sizeof(aside), "%s.%d", name, i);
        if (syscall(SYS_renameat2, dir, name, dir, aside, RENAME_FRESH) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static int mend(int dir, const char *name, mode_t mode, struct sg_error *e)
{
    struct stat st;
    int r = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);

    if (r == 0 && S_ISDIR(st.st_mode))
        return 0;
    if (r == 0)
        r = put_aside(dir, name);
    else if (errno == ENOENT)
        r = 0;
    if (r < 0 || mkdirat(dir, name, 0700) < 0 || fchmodat(dir, name, mode, 0) < 0)
        return err_errno(e, "make '%s' a directory again", name);
    return 0;
}

int places_mend(int root, struct sg_error *e)
{
    AUTO(close_p) int run = -1;
    int r = mend(root, "run", 0755, e);

    if (r == 0)
        r = open_place(root, "run", &run, e);
    return r < 0 ? r : mend(run, "shm", 01777, e);
}
