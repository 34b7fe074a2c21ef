/* What /proc tells of a process inside. `dir` is its directory there, opened once: it never comes
 * to be another's. Nothing here trusts what is read but the kernel's own words: names of programs
 * and files are bytes, with a bound. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define SIGHT_PATH_MAX    4096
#define SIGHT_COMMAND_MAX 200

int sight_open(pid_t pid, int *ret_dir);

struct sight_status {
    pid_t inside;  /* as it is called in its own pid namespace */
    unsigned deep; /* how far below ours that is; 0: it is ours */
    char state;    /* as ps has it */
    unsigned threads;
    unsigned filters; /* of system calls */
    uint32_t uid, gid, umask;
    uint64_t rss_bytes;
};
int sight_status(int dir, struct sight_status *ret);

/* Processes of a control group, as seen in our pid namespace. file: its list, opened by anybody. */
int sight_members(int file, pid_t **ret, size_t *ret_n);
/* Threads of a process. */
int sight_threads(int dir, pid_t **ret, size_t *ret_n);
size_t sight_count_threads(int dir);
/* Its command line, arguments with spaces between them; or its name. How long it is. */
size_t sight_command(int dir, char ret[SIGHT_COMMAND_MAX]);

/* One of its links: "cwd", "root", "fd/4". The length of the target, which ends in NUL, or -errno.
 */
ssize_t sight_link(int dir, const char *which, char ret[SIGHT_PATH_MAX]);

/* What a path or a link leads to. */
struct sight_at {
    uint64_t mount, dev, ino;
    uint32_t nlink;
    mode_t mode;
};
/* flags: AT_EMPTY_PATH, or 0: links are followed. */
int sight_at(int dirfd, const char *path, int flags, struct sight_at *ret);
bool sight_same(const struct sight_at *a, const struct sight_at *b); /* the same file */

/* Its descriptors, in ascending order. */
int sight_fds(int dir, int **ret, size_t *ret_n);
struct sight_fd {
    int flags; /* as of open(2), with O_CLOEXEC */
    int64_t offset;
    bool locked; /* a lock or a lease */
};
int sight_fd(int dir, int fd, struct sight_fd *ret);
