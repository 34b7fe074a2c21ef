#include "warden/host/idmap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"

int idmap_write(int pid, const char *uid_map, const char *gid_map, struct sg_error *e)
{
    char path[48];
    int r;

    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    r = file_write(AT_FDCWD, path, uid_map);
    if (r == 0) {
        snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
        r = file_write(AT_FDCWD, path, gid_map);
    }
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "write %s: %s", path, strerror(-r));
    return 0;
}

static int open_with(const char *uids, const char *gids, int *ret_userns, struct sg_error *e)
{
    struct clone_args args = {.flags = CLONE_NEWUSER};
    char path[48];
    pid_t pid = sys_clone3(&args);
    int r;

    if (pid < 0)
        return err_errno(e, "make a user namespace for an id map");
    if (pid == 0)
        for (;;)
            pause();
    r = idmap_write(pid, uids, gids, e);
    if (r == 0) {
        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        *ret_userns = open(path, O_RDONLY | O_CLOEXEC);
        if (*ret_userns < 0)
            r = err_errno(e, "open '%s'", path);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return r;
}

int idmap_open(const struct idmap_one *map, int *ret_userns, struct sg_error *e)
{
    char uids[48], gids[48];

    snprintf(uids, sizeof(uids), "%u %u 1", map->disk_uid, map->host_uid);
    snprintf(gids, sizeof(gids), "%u %u 1", map->disk_gid, map->host_gid);
    return open_with(uids, gids, ret_userns, e);
}

int idmap_open_range(uint32_t disk, uint32_t host, uint32_t n, int *ret_userns, struct sg_error *e)
{
    char map[48];

    snprintf(map, sizeof(map), "%u %u %u", disk, host, n);
    return open_with(map, map, ret_userns, e);
}
