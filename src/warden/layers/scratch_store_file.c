#include "warden/layers/scratch_store_file.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <linux/fs.h>
#include <linux/magic.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/block.h"
#include "warden/host/child.h"
#include "warden/layers/attach.h"
#include "warden/layers/mounts.h"

#define SCRATCH_STORE_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)
#define MKFS_NS             60000000000ull
#define END_MS              1000
#define ROUND               (1ull << 20)
#define AUTO_MOST \
    (16ull << 30) /* bytes that SCRATCH_STORE_AUTO takes, if they are a quarter of what */
#define AUTO_LEAST (2ull << 30) /* is free */

/* Where the host's own file system copies what it overwrites, that would need room once more. */
static void forbid_copies(int file)
{
    int flags = FS_NOCOW_FL;

    ioctl(file, FS_IOC_SETFLAGS, &flags);
}

int scratch_file_size(const struct scratch_store_spec *spec, uint64_t *ret, struct sg_error *e)
{
    bool chosen = spec->bytes == SCRATCH_STORE_AUTO;
    uint64_t wanted = chosen ? AUTO_MOST : spec->bytes, least, most;
    unsigned part = chosen ? 4 : 2;
    struct statfs fs;

    if (fstatfs(spec->dir, &fs) < 0)
        return err_errno(e, "stat the file system of the state directory");
    if (fs.f_type == TMPFS_MAGIC)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP, "the state directory is in memory");
    least = chosen ? AUTO_LEAST : SCRATCH_STORE_LEAST;
    most = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / part;
    *ret = (wanted < most ? wanted : most) / ROUND * ROUND;
    if (*ret < least)
        return err_set(e, SG_ERR_LIMIT, -ENOSPC,
                       "%s of what is free in the state directory is %llu MiB, and worlds_disk "
                       "needs %llu: free some, or use another --state",
                       chosen ? "a quarter" : "half", (unsigned long long)(*ret >> 20),
                       (unsigned long long)(least >> 20));
    return 0;
}

static int wait_for(const char *mkfs, int *pidfd, struct sg_error *e)
{
    struct pollfd p = {.fd = *pidfd, .events = POLLIN};
    uint64_t deadline = clock_ns() + MKFS_NS;
    struct child_exit how = {0};

    while (poll(&p, 1, clock_poll_ms(deadline)) < 0 && errno == EINTR)
        ;
    if (child_reap(pidfd, &how) < 0) {
        child_end(pidfd, END_MS, NULL);
        return err_set(e, SG_ERR_LIMIT, -ETIMEDOUT, "%s took too long", mkfs);
    }
    if (how.signalled || how.code != 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -EIO, "%s failed, with %s %d", mkfs,
                       how.signalled ? "signal" : "status", how.code);
    return 0;
}

/* The program reads nothing that anybody else wrote, but need not be root either: the file belongs
 * to its user while it works. */
static int format(const struct scratch_store_spec *spec, const struct scratch_file_system *fs,
                  int file, struct sg_error *e)
{
    struct program program = {.name = "scratch store",
                              .path = fs->mkfs,
                              .arguments = fs->arguments,
                              .uid = spec->maker,
                              .gid = spec->maker,
                              .dir = spec->dir,
                              .more = file,
                              .silent = true,
                              .ends_with_thread = true};
    struct program_ends ends;
    int r;

    if (fchown(file, spec->maker, spec->maker) < 0)
        return err_errno(e, "give the file of the scratch store to its maker");
    r = program_start(&program, &ends, e);
    if (r < 0)
        return r;
    close(ends.sock);
    r = wait_for(fs->mkfs, &ends.pidfd, e);
    if (r == 0 && fchown(file, 0, 0) < 0)
        r = err_errno(e, "take the file of the scratch store back");
    return r;
}

static int make_file(const struct scratch_store_spec *spec, uint64_t bytes, int *ret,
                     struct sg_error *e)
{
    AUTO(close_p) int file = openat(spec->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (file < 0)
        return err_errno(e, "make a file without a name in the state directory");
    forbid_copies(file);
    if (fallocate(file, 0, 0, (off_t)bytes) < 0)
        return err_errno(e, "take %llu MiB of the state directory for sandboxes",
                         (unsigned long long)(bytes >> 20));
    *ret = steal_fd(&file);
    return 0;
}

static int set_option(int fs, const char *option)
{
    char key[32];
    const char *value = strchr(option, '=');

    snprintf(key, sizeof(key), "%.*s", (int)strcspn(option, "="), option);
    return value ? sys_fsconfig_string(fs, key, value + 1) : sys_fsconfig_flag(fs, key);
}

static int mount_device(int fs, const struct scratch_file_system *of, int device, int *ret,
                        struct sg_error *e)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", device);
    if (sys_fsconfig_string(fs, "source", path) < 0)
        return mounts_mount_error(fs, e, "mount the scratch store");
    for (size_t i = 0; of->options[i]; i++)
        if (set_option(fs, of->options[i]) < 0)
            return mounts_mount_error(fs, e, "mount the scratch store");
    if (sys_fsconfig_create(fs) < 0)
        return mounts_mount_error(fs, e, "mount the scratch store");
    *ret = sys_fsmount(fs, SCRATCH_STORE_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the scratch store") : 0;
}

/* Before room is taken: whether the kernel has the file system, and the host its program. */
static int check(const struct scratch_file_system *of, int *ret_fs, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen(of->name);

    if (fs < 0)
        return errno == ENODEV ? err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                                         "the kernel has no %s, which quotas need", of->name)
                               : err_errno(e, "open the file system %s", of->name);
    if (access(of->mkfs, X_OK) < 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOENT, "there is no %s: install %s", of->mkfs,
                       of->package);
    *ret_fs = steal_fd(&fs);
    return 0;
}

int scratch_file_open(struct scratch_store *s, const struct scratch_store_spec *spec,
                      const struct scratch_file_system *of, struct sg_error *e)
{
    AUTO(close_p) int fs = -1, file = -1, device = -1, mount = -1;
    int r = check(of, &fs, e);

    if (r == 0)
        r = scratch_file_size(spec, &s->bytes, e);
    if (r == 0)
        r = make_file(spec, s->bytes, &file, e);
    if (r == 0)
        r = format(spec, of, file, e);
    if (r == 0)
        r = block_device_make(file, false, &device, e);
    if (r == 0)
        r = mount_device(fs, of, device, &mount, e);
    if (r == 0)
        r = attach_keep(mount, e);
    if (r < 0)
        return r;
    s->mount = steal_fd(&mount);
    s->top = openat(s->mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->top < 0 ? err_errno(e, "open the scratch store") : 0;
}
