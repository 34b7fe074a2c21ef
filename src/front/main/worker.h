/* Runs a program that reads what strangers wrote, as nobody, for a command that is root. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define WORKER_NOBODY  65534u
#define WORKER_FDS_MAX 136

/* The program is one of those beside this one. `args` end with NULL; args[0] names the program.
 * fds[i] becomes descriptor i, -1: none, but for standard error, which is ours. What the program
 * writes to standard output can be read from *ret_out. */
struct worker {
    pid_t pid;
    int out;
};
/* Programs that another process has opened, instead of those beside this one: of that name, a
 * descriptor that can be executed. */
void worker_use_program(const char *name, int fd);
int worker_start(const char *const *args, const int *fds, size_t n, struct worker *ret,
                 struct sg_error *e);
/* Ends it; it must be waited for all the same. */
void worker_kill(const struct worker *w);
/* Waits for its end; returns its status as waitpid tells it. */
int worker_wait(struct worker *w);
/* In a child of our own: becomes nobody. Ends the process if it cannot. */
void worker_become_nobody(void);
