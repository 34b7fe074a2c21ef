#include "warden/layers/attach.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/slots.h"

#define PLACE       SLOTS_DIR "/mounts"
#define PLACE_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define NAME        24

static int place = -1; /* a directory for each kept mount */

static int make_tmpfs(struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("tmpfs");
    int mount = fs < 0 || sys_fsconfig_create(fs) < 0 ? -1 : sys_fsmount(fs, PLACE_FLAGS);

    return mount < 0 ? err_errno(e, "mount a tmpfs") : mount;
}

static int clone_of(int mount)
{
    return sys_open_tree(mount, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* What the host mounts later is still to be seen, but nothing of ours on the host. */
static int own_namespace(struct sg_error *e)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_errno(e, "make a mount namespace for the server");
    return 0;
}

int attach_begin(bool always, struct sg_error *e)
{
    AUTO(close_p) int tmpfs = make_tmpfs(e), clone = tmpfs < 0 ? -1 : clone_of(tmpfs);
    int r;

    if (tmpfs < 0)
        return tmpfs;
    if (!always && (clone >= 0 || errno != EINVAL))
        return 0;
    r = own_namespace(e);
    if (r < 0)
        return r;
    if ((mkdir(SLOTS_DIR, 0700) < 0 && errno != EEXIST) ||
        (mkdir(PLACE, 0700) < 0 && errno != EEXIST) || sys_move_mount(tmpfs, AT_FDCWD, PLACE) < 0)
        return err_errno(e, "attach a tmpfs to '" PLACE "'");
    place = steal_fd(&tmpfs);
    return 0;
}

bool attach_active(void)
{
    return place >= 0;
}

/* A file system has a device number that no other has at the time. */
static int name_of(int mount, char ret[NAME])
{
    struct stat st;

    if (fstat(mount, &st) < 0)
        return -1;
    snprintf(ret, NAME, "%llu", (unsigned long long)st.st_dev);
    return 0;
}

int attach_keep(int mount, struct sg_error *e)
{
    char name[NAME];

    if (place < 0)
        return 0;
    if (name_of(mount, name) < 0 || mkdirat(place, name, 0700) < 0)
        return err_errno(e, "make a place for a mount");
    if (sys_move_mount(mount, place, name) < 0) {
        int r = err_errno(e, "attach a mount");
        unlinkat(place, name, AT_REMOVEDIR);
        return r;
    }
    return 0;
}

void attach_let_go(int mount)
{
    char path[32], name[NAME];

    if (place < 0 || mount < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", mount);
    if (umount2(path, MNT_DETACH) == 0 && name_of(mount, name) == 0)
        unlinkat(place, name, AT_REMOVEDIR);
}

int attach_open(int at, const char *path)
{
    return sys_open_tree(at, path, OPEN_TREE_CLOEXEC | (place < 0 ? OPEN_TREE_CLONE : 0u));
}

int attach_copy(int mount)
{
    return place < 0 ? fcntl(mount, F_DUPFD_CLOEXEC, 0) : clone_of(mount);
}
