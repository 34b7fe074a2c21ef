/* SIGCHLD: pid 1 reaps its own children, and every orphan of the sandbox. */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "lib/loop/loop.h"

struct child {
    pid_t pid;
    void (*on_exit)(struct child *child, int status, const struct rusage *usage);
    struct list link;
};

struct reaper {
    struct loop *loop;
    struct loop_source src;
    struct loop_task task;
    struct list children;
};

/* A signalfd for SIGCHLD, or -1. */
int reaper_signals(void);
/* Blocks every signal for good and sets all actions to the default, which children then inherit. */
int reaper_init(struct reaper *r, struct loop *loop);
void reaper_done(struct reaper *r);

void reaper_add(struct reaper *r, struct child *child);
/* The child is still reaped, but nobody is told. Does nothing if it is not listed. */
void reaper_forget(struct child *child);

/* Reaps now, without waiting for the loop. */
void reaper_reap(struct reaper *r);
/* Sends SIGKILL to every other process until none is left that runs. This waits. 0, or -EBUSY if
 * one still runs after EVERYBODY_MS. */
#define EVERYBODY_MS 2000
int reaper_kill_everybody(struct reaper *r);

/* Sends SIGKILL to the process, its group and its whole session: a shell gives each job a group of
 * its own. */
void session_kill(pid_t leader);
