/* Tasks: what takes long and needs nothing but a few descriptors, done by a child that then
 * exits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

/* Like fork, but nothing that is open here stays open there, but for these: a copy of a lock or of
 * a line would outlive its sandbox. They are moved to 3 and up; -1 stays. */
pid_t task_fork(int *fds, size_t n, int *ret_pidfd);

#define TASK_FDS_MAX 128

/* In the child; 0 is success. */
typedef int (*task_work)(const int *fds, void *arg);
typedef void (*task_done)(void *arg, int status);
/* The descriptors stay the caller's. done may be NULL; a child that cannot be started has failed
 * before this returns. */
void task_start(struct server *s, const int *fds, size_t n, task_work work, task_done done,
                void *arg);

/* A directory that nobody has any use for, on a file system that may go meanwhile. It is removed
 * when there is time. */
void task_discard(struct server *s, int mount, const char *dir);
/* True: there was something to do. For the reactor's idle time. */
bool tasks_idle(struct server *s);
void tasks_close(struct server *s);
