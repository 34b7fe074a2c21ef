/* Tasks: long pieces of work that need only a few descriptors. A child of the warden does each one,
 * and exits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

/* Like fork, but the child keeps only these descriptors open: its copy of a lock or of a channel
 * would outlive the sandbox. They are moved to 3 and up; -1 stays -1. */
pid_t task_fork(int *fds, size_t n, int *ret_pidfd);

#define TASK_FDS_MAX 128

/* Runs in the child; 0 is success. */
typedef int (*task_work)(const int *fds, void *arg);
typedef void (*task_done)(void *arg, int status);
/* The descriptors stay the caller's. done may be NULL; if the child cannot be started, done is
 * called before this returns. */
void task_start(struct server *s, const int *fds, size_t n, task_work work, task_done done,
                void *arg);

/* Removes a directory that nobody needs any more, when there is time. Its file system may go away
 * meanwhile. */
void task_discard(struct server *s, int mount, const char *dir);
/* Work for the loop's idle time. True: there was something to do. */
bool tasks_idle(struct server *s);
void tasks_close(struct server *s);
