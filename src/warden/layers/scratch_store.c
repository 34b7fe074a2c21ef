#include "warden/layers/scratch_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/layers/mounts.h"
#include "warden/layers/scratch_store_file.h"

#define SCRATCH_STORE_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)
#define SIMPLE_QUOTAS       4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7 */
#define NUMBER_MAX          32
#define FILES_DIR           "files"

struct scratch_store {
    int mount;   /* detached */
    int top;     /* its topmost directory, open */
    int figures; /* its directory in sysfs */
    uint64_t bytes, n_made;
};

/* Nothing on it is needed after a crash, and all its space stays its own: so writes need no order,
 * and what is removed is not given back to the host. */
static int mount_device(int device, int *ret, struct sg_error *e)
{
    static const char *const flags[] = {"nobarrier", "nodiscard", "nodatasum",
                                        "user_subvol_rm_allowed"};
    AUTO(close_p) int fs = sys_fsopen("btrfs");
    char path[32];

    if (fs < 0)
        return errno == ENODEV ? err_set(e, SG_ERR_UNSUPPORTED, -ENODEV,
                                         "the kernel has no btrfs, which quotas need")
                               : err_errno(e, "open the file system btrfs");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", device);
    if (sys_fsconfig_string(fs, "source", path) < 0)
        return mounts_mount_error(fs, e, "mount the scratch store");
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if (sys_fsconfig_flag(fs, flags[i]) < 0)
            return mounts_mount_error(fs, e, "mount the scratch store");
    if (sys_fsconfig_create(fs) < 0)
        return mounts_mount_error(fs, e, "mount the scratch store");
    *ret = sys_fsmount(fs, SCRATCH_STORE_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the scratch store") : 0;
}

/* Simple quotas count who wrote what, which is all that is wanted, and cost next to nothing. */
static int enable_quotas(int top, struct sg_error *e)
{
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = SIMPLE_QUOTAS};

    return ioctl(top, BTRFS_IOC_QUOTA_CTL, &args) < 0
               ? err_errno(e, "switch on the scratch store's quotas (Linux 6.7 or later has them)")
               : 0;
}

static int open_figures(int top, int *ret, struct sg_error *e)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    char path[96];
    int n = snprintf(path, sizeof(path), "/sys/fs/btrfs/");

    if (ioctl(top, BTRFS_IOC_FS_INFO, &info) < 0)
        return err_errno(e, "ask for the scratch store's name");
    for (size_t i = 0; i < sizeof(info.fsid); i++)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
    snprintf(path + n, sizeof(path) - (size_t)n, "/qgroups");
    *ret = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? err_errno(e, "open '%s'", path) : 0;
}

int scratch_store_open(const struct scratch_store_spec *spec, struct scratch_store **ret,
                       struct sg_error *e)
{
    AUTO(close_p) int file = -1, device = -1, mount = -1, top = -1, figures = -1;
    uint64_t bytes = 0;
    int r = scratch_store_file_make(spec, &file, &bytes, e);

    if (r == 0)
        r = scratch_store_file_attach(file, &device, e);
    if (r == 0)
        r = mount_device(device, &mount, e);
    if (r == 0 && ((top = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
                   fchmod(top, 0700) < 0))
        r = err_errno(e, "open the scratch store");
    if (r == 0)
        r = enable_quotas(top, e);
    if (r == 0)
        r = open_figures(top, &figures, e);
    if (r < 0)
        return r;
    *ret = NEW(struct scratch_store, .mount = steal_fd(&mount), .top = steal_fd(&top),
               .figures = steal_fd(&figures), .bytes = bytes);
    return 0;
}

void scratch_store_close(struct scratch_store *s)
{
    if (!s)
        return;
    close(s->top);
    close(s->mount);
    close(s->figures);
    free(s);
}

uint64_t scratch_store_size(const struct scratch_store *s)
{
    return s->bytes;
}

int scratch_store_top(const struct scratch_store *s)
{
    return s->top;
}

static int limit(const struct scratch_store *s, const struct scratch_store_place *p, uint64_t bytes,
                 struct sg_error *e)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = p->id, .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes}};

    return ioctl(s->top, BTRFS_IOC_QGROUP_LIMIT, &args) < 0 ? err_errno(e, "limit a sandbox's disk")
                                                            : 0;
}

static int find_id(int mount, uint64_t *ret, struct sg_error *e)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    AUTO(close_p) int fd = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return err_errno(e, "ask for the number of a sandbox's disk");
    *ret = args.treeid;
    return 0;
}

/* The topmost directory of a subvolume stays root's, so that a files worker may remove all of it. */
static int open_place(const struct scratch_store *s, uint32_t owner, struct scratch_store_place *p,
                      int *ret_mount, struct sg_error *e)
{
    char files[SCRATCH_STORE_NAME + sizeof("/" FILES_DIR)];
    AUTO(close_p) int mount = -1;
    int r;

    snprintf(files, sizeof(files), "%s/" FILES_DIR, p->name);
    if (mkdirat(s->top, files, 0755) < 0 || fchownat(s->top, files, owner, owner, 0) < 0)
        return err_errno(e, "fill a sandbox's disk");
    mount = sys_open_tree(s->top, files, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    r = mount < 0 ? err_errno(e, "open a sandbox's disk") : find_id(mount, &p->id, e);
    if (r == 0)
        *ret_mount = steal_fd(&mount);
    return r;
}

int scratch_store_make(struct scratch_store *s, uint64_t bytes, uint32_t owner,
                       struct scratch_store_place *ret, int *ret_mount, struct sg_error *e)
{
    struct btrfs_ioctl_vol_args args = {0};
    AUTO(close_p) int mount = -1;
    struct scratch_store_place p = {0};
    int r;

    snprintf(p.name, sizeof(p.name), "s%llu", (unsigned long long)++s->n_made);
    snprintf(args.name, sizeof(args.name), "%s", p.name);
    if (ioctl(s->top, BTRFS_IOC_SUBVOL_CREATE, &args) < 0)
        return err_errno(e, "make a sandbox's disk");
    r = open_place(s, owner, &p, &mount, e);
    if (r == 0 && bytes > 0)
        r = limit(s, &p, bytes, e);
    if (r < 0) {
        ioctl(s->top, BTRFS_IOC_SNAP_DESTROY, &args);
        return r;
    }
    *ret = p;
    *ret_mount = steal_fd(&mount);
    return 0;
}

/* What is on disk, and what is in memory for now. */
static const char *const used[] = {"referenced", "rsv_data"};

static int open_figure(const struct scratch_store *s, const struct scratch_store_place *p,
                       const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "0_%llu/%s", (unsigned long long)p->id, name);
    return openat(s->figures, path, O_RDONLY | O_CLOEXEC);
}

int scratch_store_grow(struct scratch_store *s, const struct scratch_store_place *p, uint64_t bytes,
                       struct sg_error *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
        AUTO(close_p) int fd = open_figure(s, p, used[i]);
        char text[NUMBER_MAX] = "";

        if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
            return err_errno(e, "ask how full a sandbox's disk is");
        bytes += strtoull(text, NULL, 10);
    }
    return limit(s, p, bytes, e);
}

int scratch_store_open_figures(const struct scratch_store *s, const struct scratch_store_place *p,
                               int ret[SCRATCH_STORE_FIGURES], struct sg_error *e)
{
    for (size_t i = 0; i < SCRATCH_STORE_FIGURES; i++) {
        ret[i] = open_figure(s, p, i < ARRAY_SIZE(used) ? used[i] : "max_referenced");
        if (ret[i] < 0) {
            int r = err_errno(e, "open the figures of a sandbox's disk");
            while (i-- > 0)
                close_p(&ret[i]);
            return r;
        }
    }
    return 0;
}
