/* Reads /proc about a process inside. `dir` is the process's directory there, opened once, so
 * it never becomes another process's. Only the kernel's own words are trusted: names of programs
 * and files are treated as bytes of bounded length. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define PROCFS_PATH_MAX    4096
#define PROCFS_COMMAND_MAX 200

int procfs_open(pid_t pid, int *ret_dir);

struct procfs_status {
    pid_t inside;  /* its pid in its own pid namespace */
    unsigned deep; /* how many levels below ours that namespace is; 0: it is ours */
    char state;    /* the letter that ps shows */
    unsigned threads;
    unsigned filters; /* number of its system-call filters */
    uint32_t uid, gid, umask;
    uint64_t rss_bytes;
};
int procfs_status(int dir, struct procfs_status *ret);

/* A list of pids or descriptors. */
struct numbers {
    int *v;
    size_t n, cap;
};
void numbers_done(struct numbers *l);
void numbers_add(struct numbers *l, int number);
bool numbers_have(const struct numbers *l, int number);

/* These add to an empty list; -E2BIG: there are too many.
 * The processes of a control group, as seen in our pid namespace. file: cgroup.procs of the group;
 * anybody may have opened it. */
int procfs_members(int file, struct numbers *ret);
/* The threads of a process. */
int procfs_threads(int dir, struct numbers *ret);
size_t procfs_count_threads(int dir);
/* The command line, with spaces between the arguments, or the program's name if there is none.
 * Returns the length. */
size_t procfs_command(int dir, char ret[PROCFS_COMMAND_MAX]);

/* The target of one of the links "cwd", "root", "fd/4", ..., ending in NUL. Returns its length or
 * -errno. */
ssize_t procfs_link(int dir, const char *which, char ret[PROCFS_PATH_MAX]);

/* The file that a path or a link leads to. */
struct procfs_process {
    uint64_t mount, dev, ino;
    uint32_t nlink;
    mode_t mode;
};
/* flags: AT_EMPTY_PATH, or 0 to follow links. */
int procfs_process(int dirfd, const char *path, int flags, struct procfs_process *ret);
bool procfs_same(const struct procfs_process *a,
                 const struct procfs_process *b); /* the same file */

/* The descriptors of a process, in ascending order. */
int procfs_fds(int dir, struct numbers *ret);
struct procfs_fd {
    int flags; /* flags of open(2), with O_CLOEXEC */
    int64_t offset;
    bool locked; /* it holds a lock or a lease */
};
int procfs_fd(int dir, int fd, struct procfs_fd *ret);
