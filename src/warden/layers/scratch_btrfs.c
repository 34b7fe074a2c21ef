/* The scratch store as a btrfs: a place is a subvolume, and a tenant's share a quota over its places. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/layers/mounts.h"
#include "warden/layers/scratch_ops.h"
#include "warden/layers/scratch_store_file.h"

#define SIMPLE_QUOTAS 4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, Linux 6.7 */
#define NUMBER_MAX    32
/* A quota over others: of level 1. */
#define SHARE_FIRST (1ull << BTRFS_QGROUP_LEVEL_SHIFT)

/* Nothing on it is needed after a crash, and all its space stays its own: so writes need no order,
 * and what is removed is not given back to the host. commit: seconds until what was removed counts no
 * more. */
static const struct scratch_file_system file_system = {
    .name = "btrfs",
    .mkfs = "/usr/sbin/mkfs.btrfs",
    .package = "btrfs-progs",
    .arguments = {"-q", "-f", "-K", "-n", "4096", "-m", "single", SCRATCH_FILE, NULL},
    .options = {"nobarrier", "nodiscard", "nodatasum", "user_subvol_rm_allowed", "commit=5", NULL}};

/* Simple quotas count who wrote what, which is all that is wanted, and cost next to nothing. */
static int enable_quotas(int top, struct sg_error *e)
{
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = SIMPLE_QUOTAS};

    return ioctl(top, BTRFS_IOC_QUOTA_CTL, &args) < 0
               ? err_errno(e, "switch on the quotas of btrfs (Linux 6.7 or later has them)")
               : 0;
}

static int open_sysfs(int top, int *ret, struct sg_error *e)
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

static int btrfs_open(struct scratch_store *s, const struct scratch_store_spec *spec,
                      struct sg_error *e)
{
    int r = scratch_file_open(s, spec, &file_system, e);

    if (r == 0)
        r = enable_quotas(s->top, e);
    return r < 0 ? r : open_sysfs(s->top, &s->figures, e);
}

static int btrfs_make_share(struct scratch_store *s, uint64_t *ret_id, struct sg_error *e)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 1,
                                                  .qgroupid = SHARE_FIRST + ++s->n_shares};

    if (ioctl(s->top, BTRFS_IOC_QGROUP_CREATE, &args) < 0)
        return err_errno(e, "make a tenant's share of the scratch store");
    *ret_id = args.qgroupid;
    return 0;
}

static int find_id(int top, const char *name, uint64_t *ret, struct sg_error *e)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    AUTO(close_p) int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return err_errno(e, "ask for the number of a sandbox's disk");
    *ret = args.treeid;
    return 0;
}

/* From its first byte on it counts to the tenant's share. */
static int btrfs_make_place(struct scratch_share *h, const char *name, uint64_t *ret_id,
                            struct sg_error *e)
{
    const struct scratch_store *s = h->store;
    uint64_t counts[sizeof(struct btrfs_qgroup_inherit) / sizeof(uint64_t) + 1] = {0};
    struct btrfs_qgroup_inherit *inherit = (struct btrfs_qgroup_inherit *)counts;
    struct btrfs_ioctl_vol_args_v2 args = {
        .flags = BTRFS_SUBVOL_QGROUP_INHERIT, .size = sizeof(counts), .qgroup_inherit = inherit};
    int r;

    inherit->num_qgroups = 1;
    inherit->qgroups[0] = h->id;
    snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(s->top, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
        return scratch_place_failed("make a sandbox's disk", e);
    r = find_id(s->top, name, ret_id, e);
    if (r < 0)
        s->discard(s->discard_arg, s->top, 0, name);
    return r;
}

static int btrfs_limit(const struct scratch_store *s, uint64_t id, uint64_t bytes,
                       struct sg_error *e)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = id, .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes}};

    return ioctl(s->top, BTRFS_IOC_QGROUP_LIMIT, &args) < 0 ? err_errno(e, "limit a sandbox's disk")
                                                            : 0;
}

static int open_figure(const struct scratch_store *s, uint64_t id, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%llu_%llu/%s",
             (unsigned long long)(id >> BTRFS_QGROUP_LEVEL_SHIFT),
             (unsigned long long)(id & (SHARE_FIRST - 1)), name);
    return openat(s->figures, path, O_RDONLY | O_CLOEXEC);
}

static int btrfs_used(const struct scratch_store *s, uint64_t id, uint64_t *ret, struct sg_error *e)
{
    static const char *const names[] = {"referenced", "rsv_data"}; /* on disk; in memory for now */
    uint64_t bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        AUTO(close_p) int fd = open_figure(s, id, names[i]);
        char text[NUMBER_MAX] = "";

        if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
            return err_errno(e, "ask how full a sandbox's disk is");
        bytes += strtoull(text, NULL, 10);
    }
    *ret = bytes;
    return 0;
}

static int btrfs_open_figures(const struct scratch_store *s, uint64_t id,
                              int ret[SCRATCH_PLACE_FIGURES], struct sg_error *e)
{
    static const char *const names[SCRATCH_PLACE_FIGURES] = {"referenced", "rsv_data",
                                                             "max_referenced"};

    for (size_t i = 0; i < SCRATCH_PLACE_FIGURES; i++) {
        ret[i] = open_figure(s, id, names[i]);
        if (ret[i] < 0) {
            int r = err_errno(e, "open the figures of a sandbox's disk");
            while (i-- > 0)
                close_p(&ret[i]);
            return r;
        }
    }
    return 0;
}

const struct scratch_ops scratch_btrfs = {.name = "btrfs",
                                          .open = btrfs_open,
                                          .make_share = btrfs_make_share,
                                          .make_place = btrfs_make_place,
                                          .limit = btrfs_limit,
                                          .used = btrfs_used,
                                          .open_figures = btrfs_open_figures,
                                          .removes_whole = true};
