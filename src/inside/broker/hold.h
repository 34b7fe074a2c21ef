/* A sandbox that stands still: from TWIN_HOLD to TWIN_GO (twin.h). The broker works in these steps:
 *
 *   1. Stop the kernels that the request names, in the read where they idle. A kernel that is
 *      elsewhere may be on its way to that read, so it runs on for a short time first.
 *   2. Stop everybody else: each thread of each process of the control group, except the agent.
 *      Repeat until a round finds nobody new. Then nobody is left who could start a process.
 *   3. Look at all of them (look.h).
 *   4. If nothing is in the way, copy the kernels' Hs (frozen_kernels.h). This takes longest; the
 *      sandbox can get its new root meanwhile.
 *
 * Being stopped changes no process, and all of them go on if the broker dies. The agent starts no
 * process meanwhile, or else refuses the new root. Once the sandbox has the new root, the broker
 * puts each process into its working directory again, and opens the kernels' files again, by calls
 * made in these processes (remote_calls.h). */
#pragma once

#include "lib/base/list.h"
#include "inside/broker/kernel.h"
#include "inside/broker/frozen_kernels.h"

/* A kernel that runs. */
struct pair {
    struct list link;
    pid_t h, k;     /* 0: the process has ended */
    pid_t k_inside; /* K's pid inside its sandbox */
    uint64_t owner;
    uint64_t tid;       /* see struct source_thread; 0: not learnt yet */
    uint64_t orphan_ns; /* when K ended and left H behind; 0: K runs, or H has been killed */
};
struct pair *pair_find(const struct list *pairs, uint64_t owner, pid_t k_inside);

struct held_kernel;

/* A process that is stopped. */
struct held {
    struct list link;
    struct inspected inspected;
    struct numbers threads; /* the first n_stopped have stopped; the others were asked to stop */
    size_t n_stopped;
    struct remote_calls remote_calls; /* the calls it must make in the new root */
    struct held_kernel *kernel;       /* if the request names it, until it is copied */
};

struct hold {
    struct list link;
    uint64_t owner, frozen_kernels;
    uint64_t since_ns, deadline_ns;
    int members;
    struct view view;
    struct list all;        /* of struct held */
    struct numbers outside; /* processes of the group that run outside: the agent, and the
                             * broker's own */
};

/* fds are TWIN_HOLD_FDS and stay the caller's. -EBUSY: something is in the way, and everybody goes
 * on. In every case `f` has the findings for the report. */
int hold_begin(const struct twin_request *q, const int *fds, const struct list *pairs,
               struct findings *f, struct hold **ret, struct sg_error *e);
/* Copies the kernels into the set m; call it once. door: see TWIN_KEEP, or -1. If it fails, m has
 * some of the kernels, and the sandbox still stands still. */
int hold_copy(struct hold *h, int door, struct frozen_kernels *m, uint64_t *ret_memory,
              struct sg_error *e);
/* Lets everybody go on, and frees h. moved: see TWIN_MOVED. -EBUSY: a process could not be taken to
 * the new root, and keeps its old directory and files. */
int hold_end(struct hold *h, bool moved, struct sg_error *e);
/* Call it when the thread has ended. */
void hold_forget(struct hold *h, pid_t tid);
bool hold_has(const struct hold *h, pid_t tid);
