/* Checks of file systems. Each makes real mounts in a child with a mount namespace of its own, so
 * that they vanish together with the child. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "cli/local/doctor.h"

#define MAP_BASE  100000 /* first id of the map; any range will do */
#define MAP_COUNT 65536
#define SCRATCH   "/run"
#define TEMPLATES "/var/lib"

/* ---- pieces ---------------------------------------------------------------------------------- */

static int private_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    return 0;
}

static int new_tmpfs(int *ret_fd)
{
    AUTO(close_p) int fs = sys_fsopen("tmpfs");

    if (fs < 0 || sys_fsconfig_create(fs) < 0)
        return -errno;
    int fd = sys_fsmount(fs, 0);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int write_map(pid_t pid, const char *file)
{
    char path[64], map[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    snprintf(map, sizeof(map), "0 %d %d\n", MAP_BASE, MAP_COUNT);
    return file_write(AT_FDCWD, path, map);
}

/* Waits until the process says that it is in its user namespace, writes the id maps of that
 * namespace and opens it. */
static int open_userns_of(pid_t pid, int ready_fd, int *ret_fd)
{
    char path[64], byte;

    if (read(ready_fd, &byte, 1) != 1)
        return -EPERM;
    int r = write_map(pid, "uid_map");
    if (r == 0)
        r = write_map(pid, "gid_map");
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* Makes a user namespace with MAP_COUNT ids that only the descriptor keeps alive. */
static int new_userns(int *ret_fd)
{
    int ready[2];

    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWUSER) == 0 && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    int r = pid < 0 ? -errno : 0;
    close(ready[1]);
    if (r == 0) {
        r = open_userns_of(pid, ready[0], ret_fd);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(ready[0]);
    return r;
}

/* Makes a detached copy of the mount at dirfd/path, with ids shifted into a user namespace. */
static int idmapped_tree(int dirfd, const char *path, int *ret_fd)
{
    AUTO(close_p) int userns = -1, tree = -1;
    int r = new_userns(&userns);

    if (r < 0)
        return r;
    tree = sys_open_tree(dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};
    if (tree < 0 || sys_mount_setattr(tree, 0, &attr) < 0)
        return -errno;
    *ret_fd = steal_fd(&tree);
    return 0;
}

/* ---- what is tried --------------------------------------------------------------------------- */

static int try_mount_api(void *arg UNUSED)
{
    AUTO(close_p) int fd = -1;
    int r = private_mounts();

    return r < 0 ? r : new_tmpfs(&fd);
}

static int try_idmapped_tmpfs(void *arg UNUSED)
{
    AUTO(close_p) int fd = -1, tree = -1;
    int r = private_mounts();

    if (r == 0)
        r = new_tmpfs(&fd);
    if (r < 0)
        return r;
    if (sys_move_mount(fd, AT_FDCWD, SCRATCH) < 0)
        return -errno;
    return idmapped_tree(AT_FDCWD, SCRATCH, &tree);
}

static int try_idmapped_path(void *arg UNUSED)
{
    AUTO(close_p) int tree = -1;
    int r = private_mounts();

    return r < 0 ? r : idmapped_tree(AT_FDCWD, TEMPLATES, &tree);
}

/* Mounts an overlay whose lower layer, with mapped ids, is attached at SCRATCH/lower. */
static int mount_overlay(int lower)
{
    AUTO(close_p) int fs = -1, fd = -1;

    if (sys_move_mount(lower, AT_FDCWD, SCRATCH "/lower") < 0)
        return -errno;
    fs = sys_fsopen("overlay");
    if (fs < 0 || sys_fsconfig_string(fs, "lowerdir", SCRATCH "/lower") < 0 ||
        sys_fsconfig_string(fs, "upperdir", SCRATCH "/upper") < 0 ||
        sys_fsconfig_string(fs, "workdir", SCRATCH "/work") < 0 || sys_fsconfig_create(fs) < 0)
        return -errno;
    fd = sys_fsmount(fs, 0);
    return fd < 0 ? -errno : 0;
}

static int try_overlay(void *arg UNUSED)
{
    AUTO(close_p) int tmpfs = -1, lower = -1;
    int r = private_mounts();

    if (r == 0)
        r = new_tmpfs(&tmpfs);
    if (r < 0)
        return r;
    if (sys_move_mount(tmpfs, AT_FDCWD, SCRATCH) < 0 || mkdir(SCRATCH "/lower", 0755) < 0 ||
        mkdir(SCRATCH "/upper", 0755) < 0 || mkdir(SCRATCH "/work", 0755) < 0)
        return -errno;
    r = idmapped_tree(AT_FDCWD, TEMPLATES, &lower);
    return r < 0 ? r : mount_overlay(lower);
}

/* Tries what a live fork needs: an overlay of layers that are named one by one, on mounts that are
 * attached nowhere, one of them with mapped ids; and an overlay that becomes read-only. */
static int try_layer_stack(void *arg UNUSED)
{
    AUTO(close_p) int tmpfs = -1, mapped = -1, fs = -1, root = -1, pick = -1;
    char lower[40], below[40], upper[40], work[40];
    int r = private_mounts();

    if (r == 0)
        r = new_tmpfs(&tmpfs);
    if (r < 0)
        return r;
    if (mkdirat(tmpfs, "a", 0755) < 0 || mkdirat(tmpfs, "b", 0755) < 0 ||
        mkdirat(tmpfs, "u", 0755) < 0 || mkdirat(tmpfs, "w", 0755) < 0)
        return -errno;
    r = idmapped_tree(tmpfs, ".", &mapped);
    if (r < 0)
        return r;
    snprintf(lower, sizeof(lower), "/proc/self/fd/%d/a", mapped);
    snprintf(below, sizeof(below), "/proc/self/fd/%d/b", mapped);
    snprintf(upper, sizeof(upper), "/proc/self/fd/%d/u", tmpfs);
    snprintf(work, sizeof(work), "/proc/self/fd/%d/w", tmpfs);
    fs = sys_fsopen("overlay");
    if (fs < 0 || sys_fsconfig_string(fs, "lowerdir+", lower) < 0 ||
        sys_fsconfig_string(fs, "lowerdir+", below) < 0 ||
        sys_fsconfig_string(fs, "upperdir", upper) < 0 ||
        sys_fsconfig_string(fs, "workdir", work) < 0 || sys_fsconfig_create(fs) < 0)
        return -errno;
    root = sys_fsmount(fs, 0);
    pick = root < 0 ? -1 : sys_fspick(root);
    return pick < 0 || sys_fsconfig_flag(pick, "ro") < 0 || sys_fsconfig_reconfigure(pick) < 0
               ? -errno
               : 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

struct trial {
    int (*fn)(void *arg);
    const char *fix;
};

static int try(struct check_result *r)
{
    const struct trial *trial = r->about;
    int err = probe_in_child(trial->fn, NULL);

    if (err < 0) {
        check_missing(r, "%s", strerror(-err));
        check_fix(r, "%s", err == -EPERM ? "run sandglass as the host's root" : trial->fix);
    } else {
        check_ok(r, "available");
    }
    return err;
}

static void check_trial(struct check_result *r)
{
    try(r);
}

static void check_idmapped_tmpfs(struct check_result *r)
{
    if (try(r) == -EINVAL) {
        check_warn(r, "%s: the ids on scratch disks are the host's", strerror(EINVAL));
        check_fix(r, "sandboxes run; Linux 6.3 or later maps them");
    }
}

static void check_layer_stack(struct check_result *r)
{
    int err = probe_in_child(try_layer_stack, NULL);

    if (err == 0)
        return check_ok(r, "a running sandbox can be forked");
    if (err == -EINVAL)
        return check_ok(r, "if they are attached: a server has a mount namespace for that");
    check_warn(r, "%s: a sandbox's files are copied, and it cannot be forked live", strerror(-err));
    check_fix(r, "needs Linux 6.15 or later");
}

#define TRIAL(...) (&(const struct trial){__VA_ARGS__})
static const struct check mount_checks[] = {
    {"mount API", check_trial,
     TRIAL(try_mount_api, "needs Linux 5.12 or later (fsopen, mount_setattr)")},
    {"tmpfs, ids mapped", check_idmapped_tmpfs, TRIAL(try_idmapped_tmpfs, "")},
    {"overlay on mapped layers", check_trial,
     TRIAL(
         try_overlay,
         "needs Linux 5.19 or later with CONFIG_OVERLAY_FS; if it is a module: modprobe overlay")},
    {"layers that are shared", check_layer_stack, NULL},
    {TEMPLATES ", ids mapped", check_trial,
     TRIAL(try_idmapped_path,
           TEMPLATES " must lie on a file system whose ids can be mapped: ext4, xfs, btrfs; not "
                     "NFS, overlay")},
};
const struct check_group doctor_filesystems = {"File systems", mount_checks,
                                               ARRAY_SIZE(mount_checks)};
