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

int places_open(int root, bool with_usr, struct places *ret, struct sg_error *e)
{
    static const char *const paths[PLACE_MAX_] = {"dev", "proc",      "sys",
                                                  "usr", "usr/local", "run/shm"};
    int r = 0;

    for (int i = 0; i < PLACE_MAX_ && r == 0; i++)
        if (with_usr || (i != PLACE_USR && i != PLACE_LOCAL))
            r = open_place(root, paths[i], &ret->fd[i], e);
    return r;
}

void places_done(struct places *p)
{
    for (int i = 0; i < PLACE_MAX_; i++)
        close_p(&p->fd[i]);
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

    /* Layers of earlier versions have a /sys that could be changed. */
    if (r == 0)
        r = mend(root, "sys", 0555, e);
    if (r == 0)
        r = open_place(root, "run", &run, e);
    return r < 0 ? r : mend(run, "shm", 01777, e);
}
