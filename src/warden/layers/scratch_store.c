#include "warden/layers/scratch_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/block.h"
#include "warden/layers/attach.h"
#include "warden/layers/mounts.h"
#include "warden/layers/scratch_store_file.h"

#define SCRATCH_STORE_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)
#define SIMPLE_QUOTAS       4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7 */
#define NUMBER_MAX          32
/* A quota over others: of level 1. */
#define SHARE_FIRST (1ull << BTRFS_QGROUP_LEVEL_SHIFT)
#define SHARE_EMPTY (1u << 20) /* bytes: all of it is gone, or soon will be */

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
    /* Seconds until what was removed counts no more. */
    if (sys_fsconfig_string(fs, "commit", "5") < 0 || sys_fsconfig_create(fs) < 0)
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
        r = block_device_make(file, false, &device, e);
    if (r == 0)
        r = mount_device(device, &mount, e);
    if (r == 0)
        r = attach_keep(mount, e);
    if (r == 0 && ((top = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
                   fchmod(top, 0700) < 0))
        r = err_errno(e, "open the scratch store");
    if (r == 0)
        r = enable_quotas(top, e);
    if (r == 0)
        r = open_figures(top, &figures, e);
    if (r < 0) {
        attach_let_go(mount);
        return r;
    }
    *ret = NEW(struct scratch_store, .mount = steal_fd(&mount), .top = steal_fd(&top),
               .figures = steal_fd(&figures), .bytes = bytes, .discard = spec->discard,
               .discard_arg = spec->discard_arg);
    return 0;
}

void scratch_store_close(struct scratch_store *s)
{
    struct scratch_share *h;

    if (!s)
        return;
    while ((h = LIST_POP(struct scratch_share, &s->shares, link)))
        free(h);
    close(s->top);
    attach_let_go(s->mount);
    close(s->mount);
    close(s->figures);
    free(s);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

int scratch_quota_limit(const struct scratch_store *s, uint64_t id, uint64_t bytes,
                        struct sg_error *e)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = id, .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes}};

    return ioctl(s->top, BTRFS_IOC_QGROUP_LIMIT, &args) < 0 ? err_errno(e, "limit a sandbox's disk")
                                                            : 0;
}

int scratch_quota_open_figure(const struct scratch_store *s, uint64_t id, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%llu_%llu/%s",
             (unsigned long long)(id >> BTRFS_QGROUP_LEVEL_SHIFT),
             (unsigned long long)(id & (SHARE_FIRST - 1)), name);
    return openat(s->figures, path, O_RDONLY | O_CLOEXEC);
}

int scratch_quota_used(const struct scratch_store *s, uint64_t id, uint64_t *ret,
                       struct sg_error *e)
{
    static const char *const names[] = {"referenced", "rsv_data"}; /* on disk; in memory for now */
    uint64_t bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        AUTO(close_p) int fd = scratch_quota_open_figure(s, id, names[i]);
        char text[NUMBER_MAX] = "";

        if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
            return err_errno(e, "ask how full a sandbox's disk is");
        bytes += strtoull(text, NULL, 10);
    }
    *ret = bytes;
    return 0;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static bool is_free(const struct scratch_share *h)
{
    uint64_t used;

    return h->users == 0 && scratch_quota_used(h->store, h->id, &used, NULL) == 0 &&
           used < SHARE_EMPTY;
}

static int make_share(struct scratch_store *s, struct scratch_share **ret, struct sg_error *e)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 1,
                                                  .qgroupid = SHARE_FIRST + ++s->n_shares};

    if (ioctl(s->top, BTRFS_IOC_QGROUP_CREATE, &args) < 0)
        return err_errno(e, "make a tenant's share of the scratch store");
    *ret = NEW(struct scratch_share, .store = s, .id = args.qgroupid);
    list_push(&s->shares, &(*ret)->link);
    return 0;
}

/* The share of a tenant that has left is another's then: so there are no more than tenants at a
 * time. */
int scratch_share_open(struct scratch_store *s, const char *tenant, uint32_t sandboxes,
                       struct scratch_share **ret, struct sg_error *e)
{
    struct scratch_share *h =
        LIST_FIND(struct scratch_share, at, &s->shares, link, strcmp(at->tenant, tenant) == 0);

    if (!h)
        h = LIST_FIND(struct scratch_share, at, &s->shares, link, is_free(at));
    if (!h) {
        int r = make_share(s, &h, e);
        if (r < 0)
            return r;
    }
    if (strcmp(h->tenant, tenant) != 0)
        h->most = 0;
    snprintf(h->tenant, sizeof(h->tenant), "%s", tenant);
    h->sandboxes = sandboxes;
    h->users++;
    *ret = h;
    return 0;
}

void scratch_share_release(struct scratch_share *h)
{
    if (h)
        h->users--;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int hold(struct scratch_share *h, struct sg_error *e)
{
    const struct scratch_store *s = h->store;
    uint64_t bytes = least(h->most, s->bytes / 5 * 4), slack = h->limit / 16;
    struct statfs fs;
    int r;

    if (fstatfs(s->top, &fs) < 0)
        return err_errno(e, "stat the scratch store");
    bytes = least(bytes, (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize * 4);
    if (h->most == 0 || (bytes + slack >= h->limit && bytes <= h->limit + slack))
        return 0;
    r = scratch_quota_limit(s, h->id, bytes, e);
    if (r == 0)
        h->limit = bytes;
    return r;
}

int scratch_share_raise(struct scratch_share *h, uint64_t bytes, struct sg_error *e)
{
    if (h->sandboxes * bytes <= h->most)
        return 0;
    h->most = h->sandboxes * bytes;
    return hold(h, e);
}

void scratch_store_share_out(struct scratch_store *s)
{
    if (!s)
        return;
    LIST_EACH(struct scratch_share, h, &s->shares, link)
        hold(h, NULL);
}
