/* Moves from one root directory to another while programs run.
 *
 * The new root is first attached on top of the root itself: no path in the sandbox leads there, and
 * no path decides where it goes. The agent attaches to it what it needs. Then the two roots change
 * places, and every process that was in the old root is in the new one.
 *
 * Programs inside wrote the files of the new root, so nothing in it is followed: mounts are
 * attached to directories that were opened first, without going through a link or another mount.
 * All by mount(2): open_tree would need a mount namespace for each copy, and those are forbidden
 * here (root.c). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/places.h"
#include "inside/stage/stage.h"

enum root_usr root_usr;

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

/* Attaches the parts to the new root, in the same order as in a new sandbox, because that is the
 * order in which mounts are listed. With /usr comes the local of the old root. */
static int attach_parts(const struct places *p, bool with_usr, struct sg_error *e)
{
    if (bind_to("/dev", p->fd[PLACE_DEV], 0) < 0 ||
        mount("/dev/pts", "dev/pts", NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "attach /dev");
    if (bind_to("/proc", p->fd[PLACE_PROC], MS_REC) < 0)
        return err_errno(e, "attach /proc");
    if (bind_to("/sys", p->fd[PLACE_SYS], MS_REC) < 0)
        return err_errno(e, "attach /sys");
    if (with_usr && (bind_to("/usr", p->fd[PLACE_USR], MS_REC) < 0 ||
                     umount2("usr/local", MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
                     bind_place(p->fd[PLACE_LOCAL], "usr/local") < 0))
        return err_errno(e, "attach /usr and /usr/local");
    if (bind_place(p->fd[PLACE_SHM], "dev/shm") < 0)
        return err_errno(e, "attach /dev/shm");
    return 0;
}

int root_move(int new_root, bool bare, struct sg_error *e)
{
    AUTO(places_done) struct places p = PLACES_NONE;
    bool with_usr = root_usr == ROOT_USR_HOST || (root_usr == ROOT_USR_COVERED && !bare);
    int r;

    if (sys_move_mount(new_root, AT_FDCWD, "/") < 0)
        return err_errno(e, "attach the new root");
    if (fchdir(new_root) < 0)
        abort(); /* it lies on a directory, so it must be one */
    r = places_open(new_root, with_usr, &p, e);
    if (r == 0)
        r = attach_parts(&p, with_usr, e);
    if (r == 0)
        r = root_attach_again(new_root, e);
    if (r == 0 && sys_pivot_root(".", ".") < 0)
        r = err_errno(e, "pivot_root");
    root_attached_moved(r == 0);
    /* Whether the exchange worked or not, the root that must go lies on ".". The agent cannot go on
     * with two roots. */
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        abort();
    if (r == 0 && !with_usr)
        root_usr = ROOT_USR_BARE;
    return r;
}

int root_uncover(struct sg_error *e)
{
    if (root_usr != ROOT_USR_COVERED)
        return 0;
    /* First the mount that lies within the other. */
    if (umount2("/usr/local", MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
        umount2("/usr", MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
        return err_errno(e, "make /usr writable for root");
    root_usr = ROOT_USR_BARE;
    return 0;
}
