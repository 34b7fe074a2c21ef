/* What /proc tells of a process inside. `dir` is its directory there, opened once: it never comes
 * to be another's. Nothing here trusts what is read but the kernel's own words: names of programs
 * and files are bytes, with a bound. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define PROCFS_PATH_MAX    4096
#define PROCFS_COMMAND_MAX 200

int procfs_open(pid_t pid, int *ret_dir);

struct procfs_status {
    pid_t inside;  /* as it is called in its own pid namespace */
    unsigned deep; /* how far below ours that is; 0: it is ours */
    char state;    /* as ps has it */
    unsigned threads;
    unsigned filters; /* of system calls */
    uint32_t uid, gid, umask;
    uint64_t rss_bytes;
};
int procfs_status(int dir, struct procfs_status *ret);

/* Processes of a control group, as seen in our pid namespace. file: its list, opened by anybody. */
int procfs_members(int file, pid_t **ret, size_t *ret_n);
/* Threads of a process. */
int procfs_threads(int dir, pid_t **ret, size_t *ret_n);
size_t procfs_count_threads(int dir);
/* Its command line, arguments with spaces between them; or its name. How long it is. */
size_t procfs_command(int dir, char ret[PROCFS_COMMAND_MAX]);

/* One of its links: "cwd", "root", "fd/4". The length of the target, which ends in NUL, or -errno.
 */
ssize_t procfs_link(int dir, const char *which, char ret[PROCFS_PATH_MAX]);

/* What a path or a link leads to. */
struct procfs_process {
    uint64_t mount, dev, ino;
    uint32_t nlink;
    mode_t mode;
};
/* flags: AT_EMPTY_PATH, or 0: links are followed. */
int procfs_process(int dirfd, const char *path, int flags, struct procfs_process *ret);
bool procfs_same(const struct procfs_process *a,
                 const struct procfs_process *b); /* the same file */

/* Its descriptors, in ascending order. */
int procfs_fds(int dir, int **ret, size_t *ret_n);
struct procfs_fd {
    int flags; /* as of open(2), with O_CLOEXEC */
    int64_t offset;
    bool locked; /* a lock or a lease */
};
int procfs_fd(int dir, int fd, struct procfs_fd *ret);
