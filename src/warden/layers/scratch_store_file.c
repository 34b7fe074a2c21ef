#include "warden/layers/scratch_store_file.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <linux/fs.h>
#include <linux/magic.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/host/child.h"
#include "warden/host/program.h"

#define MKFS    "/usr/sbin/mkfs.btrfs"
#define MKFS_NS 60000000000ull
#define END_MS  1000
#define ROUND   (1ull << 20)
#define AUTO_MOST \
    (16ull << 30) /* bytes that SCRATCH_STORE_AUTO takes, if they are a quarter of what */
#define AUTO_LEAST (2ull << 30) /* is free */

/* Where the host's own file system copies what it overwrites, that would need room once more. */
static void forbid_copies(int file)
{
    int flags = FS_NOCOW_FL;

    ioctl(file, FS_IOC_SETFLAGS, &flags);
}

static int choose_size(const struct scratch_store_spec *spec, uint64_t *ret, struct sg_error *e)
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

static int wait_for(int *pidfd, struct sg_error *e)
{
    struct pollfd p = {.fd = *pidfd, .events = POLLIN};
    uint64_t deadline = clock_ns() + MKFS_NS;
    struct child_exit how = {0};

    while (poll(&p, 1, clock_poll_ms(deadline)) < 0 && errno == EINTR)
        ;
    if (child_reap(pidfd, &how) < 0) {
        child_end(pidfd, END_MS, NULL);
        return err_set(e, SG_ERR_LIMIT, -ETIMEDOUT, MKFS " took too long");
    }
    if (how.signalled || how.code != 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -EIO, MKFS " failed, with %s %d",
                       how.signalled ? "signal" : "status", how.code);
    return 0;
}

/* The program reads nothing that anybody else wrote, but need not be root either: the file belongs
 * to its user while it works. */
static int format(const struct scratch_store_spec *spec, int file, struct sg_error *e)
{
    static const char *const arguments[] = {
        "-q", "-f", "-K", "-n", "4096", "-m", "single", PROGRAM_MORE_PATH, NULL};
    struct program program = {.name = "scratch store",
                              .path = MKFS,
                              .arguments = arguments,
                              .uid = spec->maker,
                              .gid = spec->maker,
                              .dir = spec->dir,
                              .more = file,
                              .silent = true,
                              .ends_with_thread = true};
    struct program_ends ends;
    int r;

    if (access(MKFS, X_OK) < 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOENT, "there is no " MKFS ": install btrfs-progs");
    if (fchown(file, spec->maker, spec->maker) < 0)
        return err_errno(e, "give the file of the scratch store to its maker");
    r = program_start(&program, &ends, e);
    if (r < 0)
        return r;
    close(ends.sock);
    r = wait_for(&ends.pidfd, e);
    if (r == 0 && fchown(file, 0, 0) < 0)
        r = err_errno(e, "take the file of the scratch store back");
    return r;
}

int scratch_store_file_make(const struct scratch_store_spec *spec, int *ret_file,
                            uint64_t *ret_bytes, struct sg_error *e)
{
    AUTO(close_p) int file = -1;
    uint64_t bytes = 0;
    int r = choose_size(spec, &bytes, e);

    if (r < 0)
        return r;
    file = openat(spec->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return err_errno(e, "make a file without a name in the state directory");
    forbid_copies(file);
    if (fallocate(file, 0, 0, (off_t)bytes) < 0)
        return err_errno(e, "take %llu MiB of the state directory for sandboxes",
                         (unsigned long long)(bytes >> 20));
    r = format(spec, file, e);
    if (r < 0)
        return r;
    *ret_file = steal_fd(&file);
    *ret_bytes = bytes;
    return 0;
}
