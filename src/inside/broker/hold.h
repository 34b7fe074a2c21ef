/* A sandbox that stands still: from TWIN_HOLD to TWIN_GO (twin.h).
 *
 *   the kernels that were named are stopped, in the read that they idle in; one that is elsewhere
 *   goes on for a moment, since it may only be on its way there
 *   then everybody else: each thread of each process of the group but the agent, round after round,
 *   until a round finds nobody new: then nobody is left who could start anything
 *   all are looked at (look.h); if nothing is in the way, the kernels' Hs are copied (set of frozen
 * kernels.h), which takes longest: the sandbox can get its other root meanwhile
 *
 * Nobody is changed by being stopped, and all go on if we die. The agent starts nobody meanwhile,
 * or refuses the other root. When the sandbox has got one, each process is put into its directory
 * again, and kernels get their files again, by calls made in them (remote_calls.h). */
#pragma once

#include "inside/broker/kernel.h"
#include "inside/broker/frozen_kernels.h"

/* A kernel that lives. */
struct pair {
    struct pair *next;
    pid_t h, k;     /* 0: it has ended */
    pid_t k_inside; /* as seen in its sandbox */
    uint64_t owner;
    uint64_t tid;       /* see struct source_thread */
    uint64_t orphan_ns; /* since when H is without K; 0: it is not, or was ended */
};
struct pair *pair_find(struct pair *list, uint64_t owner, pid_t k_inside);

struct held_kernel;

/* A process that is stopped. */
struct held {
    struct held *next;
    struct inspected inspected;
    pid_t *threads; /* the first n_stopped have stopped, the others were asked to */
    size_t n_threads, n_stopped;
    struct remote_calls remote_calls; /* what it has to do in another root */
    struct held_kernel *kernel;       /* of one that was named, until it is copied */
};

struct hold {
    struct hold *next;
    uint64_t owner, frozen_kernels;
    uint64_t since_ns, deadline_ns;
    int members;
    struct view view;
    struct held *all;
    pid_t *outside; /* of the group, but not inside: the agent, and what is ours */
    size_t n_outside;
};

/* fds as TWIN_HOLD_FDS; they stay the caller's. With -EBUSY something is in the way, and all goes
 * on. Whatever it returns, the findings are those of the report. */
int hold_begin(const struct twin_request *q, const int *fds, struct pair *pairs, struct findings *f,
               struct hold **ret, struct sg_error *e);
/* Once. door: see TWIN_KEEP, or -1. If it fails m has some of them, and all still stand still. */
int hold_copy(struct hold *h, int door, struct frozen_kernels *m, uint64_t *ret_memory,
              struct sg_error *e);
/* All goes on, and h is freed. moved: see TWIN_MOVED; -EBUSY: somebody could not be taken along,
 * and has now what it had. */
int hold_end(struct hold *h, bool moved, struct sg_error *e);
/* The thread has ended. */
void hold_forget(struct hold *h, pid_t tid);
bool hold_has(const struct hold *h, pid_t tid);
