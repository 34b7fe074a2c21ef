/* From one root directory to another, while programs run.
 *
 * The new one is attached on top of the root itself: no name in the sandbox leads there, and none
 * decides where it goes. What it needs is put into it there, then the two change places, and
 * whoever was in the old root is in the new one.
 *
 * What is in the new root was written by programs inside: nothing in it is followed. Mounts are
 * attached to directories that were opened first, without going through a link or another mount.
 * By mount(2): open_tree would want a mount namespace for each copy, and those are forbidden here
 * (root.c). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/places.h"
#include "inside/stage/stage.h"

static const char *name_of(int fd, char ret[32])
{
    snprintf(ret, 32, "/proc/self/fd/%d", fd);
    return ret;
}

static int bind_to(const char *from, int place, unsigned long flags)
{
    char name[32];

    return mount(from, name_of(place, name), NULL, MS_BIND | flags, NULL);
}

static int bind_place(int place, const char *to)
{
    char name[32];

    return mount(name_of(place, name), to, NULL, MS_BIND, NULL);
}

/* In the new root. The order in which mounts are made is that in which they are listed: as in a new
 * sandbox. With /usr comes the old root's local. */
static int attach_parts(const struct places *p, struct sg_error *e)
{
    if (bind_to("/dev", p->dev, 0) < 0 || mount("/dev/pts", "dev/pts", NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "attach /dev");
    if (bind_to("/proc", p->proc, MS_REC) < 0)
        return err_errno(e, "attach /proc");
    if (bind_to("/usr", p->usr, MS_REC) < 0 ||
        umount2("usr/local", MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
        bind_place(p->local, "usr/local") < 0)
        return err_errno(e, "attach /usr and /usr/local");
    if (bind_place(p->shm, "dev/shm") < 0)
        return err_errno(e, "attach /dev/shm");
    return 0;
}

int root_move(int new_root, struct sg_error *e)
{
    AUTO(places_done) struct places p = PLACES_NONE;
    int r;

    if (sys_move_mount(new_root, AT_FDCWD, "/") < 0)
        return err_errno(e, "attach the new root");
    if (fchdir(new_root) < 0)
        abort(); /* it lies on a directory, so it is one */
    r = places_open(new_root, &p, e);
    if (r == 0)
        r = attach_parts(&p, e);
    if (r == 0 && sys_pivot_root(".", ".") < 0)
        r = err_errno(e, "pivot_root");
    /* Either way what lies on "." is the one of the two that is to go. Two roots at once is nothing
     * to go on with. */
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        abort();
    return r;
}
