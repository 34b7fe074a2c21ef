/* Tasks: long pieces of work that need only a few descriptors. A child of the warden does each one,
 * and exits. */
#pragma once

#include <stddef.h>

struct server;

#define TASK_FDS_MAX 8

/* Runs in the child; 0 is success. */
typedef int (*task_work)(const int *fds, void *arg);
typedef void (*task_done)(void *arg, int status);
/* The descriptors stay the caller's. done may be NULL; if the child cannot be started, done is
 * called before this returns. */
void task_start(struct server *s, const int *fds, size_t n, task_work work, task_done done,
                void *arg);
