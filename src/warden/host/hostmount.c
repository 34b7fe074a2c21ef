#include "warden/host/hostmount.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/sys.h"
#include "warden/host/idmap.h"

static bool below(const char *path, const char *root)
{
    size_t n = strlen(root);

    while (n > 1 && root[n - 1] == '/')
        n--;
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0' || n == 1);
}

static bool allowed(const char *real, const char *const *roots)
{
    for (; *roots; roots++) {
        char resolved[PATH_MAX];
        if (realpath(*roots, resolved) && below(real, resolved))
            return true;
    }
    return false;
}

static int real_path(int fd, char ret[PATH_MAX])
{
    char link[40];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret, PATH_MAX - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return 0;
}

static int check_source(const struct hostmount_spec *spec, int fd, struct stat *ret_st,
                        struct sg_error *e)
{
    char real[PATH_MAX];

    if (fstat(fd, ret_st) < 0 || real_path(fd, real) < 0)
        return err_errno(e, "stat the mount source '%s'", spec->source);
    if (!S_ISDIR(ret_st->st_mode) && !S_ISREG(ret_st->st_mode))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "mount source '%s' is neither a directory nor a regular file", spec->source);
    if (!allowed(real, spec->roots))
        return err_set(
            e, SG_ERR_DENIED, -EACCES,
            "refused by policy rule 'mount-roots': '%s' is '%s', outside the allowed roots; add "
            "that with 'mount-root' in the policy",
            spec->source, real);
    if (spec->writable && ret_st->st_uid == 0)
        return err_set(
            e, SG_ERR_DENIED, -EACCES,
            "mount source '%s' belongs to root and cannot be writable: files made inside must "
            "not become root's; chown it to another user, or mount it read-only",
            spec->source);
    return 0;
}

/* Sets which ids are seen on the mount: see hostmount.h. Root's files belong to nobody inside. */
static int map_owner(const struct hostmount_spec *spec, const struct stat *st,
                     struct mount_attr *attr, int *ret_userns, struct sg_error *e)
{
    struct idmap_one map = {.disk_uid = st->st_uid,
                            .disk_gid = st->st_gid,
                            .host_uid = spec->first_id + spec->owner_inside,
                            .host_gid = spec->first_id + spec->owner_inside};
    int r;

    if (st->st_uid == 0)
        return 0;
    r = idmap_open(&map, ret_userns, e);
    if (r < 0)
        return r;
    attr->attr_set |= MOUNT_ATTR_IDMAP;
    attr->userns_fd = (uint64_t)*ret_userns;
    return 0;
}

int hostmount_open(const struct hostmount_spec *spec, int *ret_fd, struct sg_error *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    AUTO(close_p) int source = open(spec->source, O_PATH | O_CLOEXEC);
    AUTO(close_p) int tree = -1, userns = -1;
    struct stat st;
    int r;

    if (source < 0)
        return err_errno(e, "mount source '%s'", spec->source);
    r = check_source(spec, source, &st, e);
    if (r == 0)
        r = map_owner(spec, &st, &attr, &userns, e);
    if (r < 0)
        return r;
    tree = sys_open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree < 0)
        return err_errno(e, "clone the mount source '%s'", spec->source);
    if (!spec->writable)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    r = sys_mount_setattr(tree, 0, &attr);
    if (r < 0 && errno == EINVAL)
        return err_set(
            e, SG_ERR_UNSUPPORTED, -EINVAL,
            "the file system of mount source '%s' cannot map ids on this kernel: copy it to "
            "ext4, xfs or btrfs",
            spec->source);
    if (r < 0)
        return err_errno(e, "mount source '%s'", spec->source);
    *ret_fd = steal_fd(&tree);
    return 0;
}
