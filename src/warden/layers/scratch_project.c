/* The scratch store with project quotas: a place is a directory, and all that is made in it has its project. It
 * is in the state directory if that has such quotas, or on an xfs of the server's own.
 *
 * There are no quotas over others, so the places of a tenant have lower limits when its share is
 * nearly used up, as of each second. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>

#include "lib/base/fd.h"
#include "warden/layers/scratch_ops.h"
#include "warden/layers/scratch_store_file.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define DIR_NAME   "disks.d"
#define PROJECTS   65535u /* ids of a slot, which is the server's alone */
#define UNIT       512u   /* of blocks, in struct fs_disk_quota */
#define FILE_LEAST 4096u /* bytes for each file that there may be, since its inode does not count */

static const struct scratch_file_system file_system = {
    .name = "xfs",
    .mkfs = "/usr/sbin/mkfs.xfs",
    .package = "xfsprogs",
    .arguments = {"-q", "-f", "-K", "-s", "size=4096", SCRATCH_FILE, NULL},
    .options = {"prjquota", "nodiscard", NULL}};

static int quota(int fd, unsigned command, uint64_t id, void *value)
{
    return (int)syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), (int)id, value);
}

static bool has_projects(int dir)
{
    struct fs_quota_stat st = {.qs_version = FS_QSTAT_VERSION};
    unsigned wanted = FS_QUOTA_PDQ_ACCT | FS_QUOTA_PDQ_ENFD;

    return quota(dir, Q_XGETQSTAT, 0, &st) == 0 && (st.qs_flags & wanted) == wanted;
}

static int projects_open(struct scratch_store *s, const struct scratch_store_spec *spec,
                         struct sg_error *e)
{
    int r;

    if (!has_projects(spec->dir))
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "the state directory has no project quotas");
    r = scratch_file_size(spec, &s->bytes, e);
    if (r < 0)
        return r;
    if (mkdirat(spec->dir, DIR_NAME, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '" DIR_NAME "' in the state directory");
    s->top = openat(spec->dir, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->top < 0)
        return err_errno(e, "open '" DIR_NAME "' in the state directory");
    return scratch_places_left(s, e);
}

static int xfs_open(struct scratch_store *s, const struct scratch_store_spec *spec,
                    struct sg_error *e)
{
    return scratch_file_open(s, spec, &file_system, e);
}

static bool is_used(const struct scratch_store *s, uint64_t id)
{
    LIST_EACH(const struct scratch_share, h, &s->shares, link)
        if (LIST_FIND(struct scratch_place, p, &h->places, link, p->id == id))
            return true;
    return LIST_FIND(struct scratch_place, p, &s->leaving, link, p->id == id);
}

static int set_project(int top, const char *name, uint64_t id)
{
    AUTO(close_p) int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct fsxattr x = {0};

    if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return -1;
    x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    x.fsx_projid = (uint32_t)id;
    return ioctl(fd, FS_IOC_FSSETXATTR, &x);
}

static int project_limit(const struct scratch_store *s, uint64_t id, uint64_t bytes,
                         struct sg_error *e)
{
    struct fs_disk_quota q = {.d_version = FS_DQUOT_VERSION,
                              .d_flags = FS_PROJ_QUOTA,
                              .d_fieldmask = FS_DQ_BHARD | FS_DQ_IHARD,
                              .d_id = (uint32_t)id,
                              .d_blk_hardlimit = (bytes + UNIT - 1) / UNIT,
                              .d_ino_hardlimit = bytes / FILE_LEAST + (bytes > 0)};

    return quota(s->top, Q_XSETQLIM, id, &q) < 0 ? err_errno(e, "limit a sandbox's disk") : 0;
}

static int project_make_place(struct scratch_share *h, const char *name, uint64_t *ret_id,
                              struct sg_error *e)
{
    struct scratch_store *s = h->store;
    uint64_t id;
    int r;

    do
        id = s->maker + 1 + s->n_projects++ % PROJECTS;
    while (is_used(s, id));
    if (mkdirat(s->top, name, 0755) < 0)
        return scratch_place_failed("make a sandbox's disk", e);
    r = set_project(s->top, name, id) < 0
            ? err_errno(e, "give a sandbox's disk a project")
            : project_limit(s, id, 0, e); /* that of the place that had the number before */
    if (r < 0)
        unlinkat(s->top, name, AT_REMOVEDIR);
    else
        *ret_id = id;
    return r;
}

static int project_used(const struct scratch_store *s, uint64_t id, uint64_t *ret,
                        struct sg_error *e)
{
    struct fs_disk_quota q = {0};

    if (quota(s->top, Q_XGETQUOTA, id, &q) < 0 && errno != ENOENT)
        return err_errno(e, "ask how full a sandbox's disk is");
    *ret = q.d_bcount * UNIT;
    return 0;
}

const struct scratch_ops scratch_projects = {.name = "project quotas",
                                             .open = projects_open,
                                             .make_place = project_make_place,
                                             .limit = project_limit,
                                             .used = project_used};
const struct scratch_ops scratch_xfs = {.name = "xfs",
                                        .open = xfs_open,
                                        .make_place = project_make_place,
                                        .limit = project_limit,
                                        .used = project_used};
