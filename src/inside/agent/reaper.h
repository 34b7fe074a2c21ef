/* SIGCHLD: pid 1 reaps everything, its own children and every orphan of the sandbox. */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "inside/agent/loop.h"

struct child {
    pid_t pid;
    void (*on_exit)(struct child *child, int status, const struct rusage *usage);
    struct child *next, **link; /* link is NULL: not listed */
};

struct reaper {
    struct loop *loop;
    struct loop_source src;
    struct loop_task task;
    struct child *children;
};

/* Blocks every signal for good and makes their actions the default, which children then inherit. */
int reaper_init(struct reaper *r, struct loop *loop);
void reaper_done(struct reaper *r);

void reaper_add(struct reaper *r, struct child *child);
/* It is still reaped, but nobody is told. Does nothing if it is not listed. */
void reaper_forget(struct child *child);

/* Now, not when the loop comes to it. */
void reaper_reap(struct reaper *r);
/* SIGKILL for every other process, until none is left that runs: 0, or -EBUSY if one still does
 * after EVERYBODY_MS. This waits. */
#define EVERYBODY_MS 2000
int reaper_kill_everybody(struct reaper *r);

/* SIGKILL for the process, its group and all of its session: a shell gives each job a group. */
void session_kill(pid_t leader);
