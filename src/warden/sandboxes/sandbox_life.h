/* The life of a sandbox in the warden: a table of states and events (sandbox_life.c).
 *
 *   making -> RUNNING <-> freezing -> PAUSED
 *                |  ^        |  ^        |
 *                |  |        v  |        |
 *                |  +----- saving <------+     files are being written, nothing runs
 *                |           |  ^
 *                |           v  |
 *                |       stowing -> STORED -> booting -> RUNNING
 *                |
 *                +-> keeping   -> RUNNING      a checkpoint is made of it: sandbox_fork.c
 *                +-> rewinding -> RUNNING      back to a checkpoint: sandbox_branch.c
 *
 *   making -> mounting  -> RUNNING             it gets volumes: sandbox_volumes.c
 *   making -> branching -> RUNNING             made from a checkpoint: sandbox_branch.c
 *   (any)  -> ending    -> gone
 *
 * In the states in capitals a sandbox waits for orders. In the others a job is under way: orders
 * that come meanwhile wait, except those about its end, its deadline, its note and its figures.
 *
 * Whoever notices something (an order, a timer, an answer) raises an event. The table has the
 * action and the next state, and nothing else changes the state of a sandbox. Where it depends on
 * an outcome what comes next, the outcome is an event of its own.
 *
 * If the front dies that ordered a job, the warden still finishes the job where it changes a
 * sandbox that the front knew: the next front is told of it as if it had happened by itself. A
 * sandbox that was still being made is ended, because nobody knows of it. */
#pragma once

#include "warden/processes/front_process.h"

struct sandbox;
struct checkpoint;
struct instance;
struct snapshot;
struct kernel_news;

enum phase {
    MAKING,
    MOUNTING,
    BRANCHING,
    RUNNING,
    KEEPING,
    REWINDING,
    FREEZING,
    SAVING,
    STOWING,
    PAUSED,
    STORED,
    BOOTING,
    ENDING,
    PHASE_MAX_
};

enum event {
    ON_NONE,
    /* Orders. A deadline gives the first two as well, without a ticket. */
    ON_PAUSE,
    ON_STORE, /* pause, files only */
    ON_RESUME,
    ON_RESTART, /* resume, files only */
    ON_SNAPSHOT,
    ON_CHECKPOINT,
    ON_REWIND,
    ON_ORDERS_END_,
    /* The tenant pool's answer. */
    ON_STARTED = ON_ORDERS_END_,
    ON_STARTED_BRANCH, /* and it gets files and kernels of a checkpoint */
    ON_TO_MOUNT,       /* and it gets volumes */
    ON_MOUNTED,        /* it has them, or could not get them */
    ON_NOT_STARTED,
    ON_UNWANTED, /* it has started, and is to end, or who ordered it is gone */
    /* Freezing and going on. */
    ON_FROZEN,  /* and so it stays */
    ON_TO_SAVE, /* it is frozen, and its files are to be saved */
    ON_THAWED,
    ON_BACK, /* as before the job */
    /* Saving and stowing. */
    ON_SAVED,   /* its files are saved, and it is to be stored */
    ON_GONE,    /* its processes are gone */
    ON_STOWED,  /* the same, and whoever ordered that is told */
    ON_ANOTHER, /* the same, and another is to start */
    /* Steps of a checkpoint or a branch. */
    ON_STILL,
    ON_HELD,
    ON_WENT,
    ON_CARRIED, /* open files are in the next root */
    ON_ROOTED,
    ON_COPIED,
    ON_BROKER_GONE,
    ON_DONE,
    ON_FAILED,
    ON_END, /* for any reason: see sandbox_end */
    ON_MAX_
};

/* An event, with what belongs to it. */
struct happening {
    enum event event; /* this and `was` are set by sandbox_happens */
    enum phase was;
    const struct ticket *ticket; /* orders */
    const struct order *order;   /* orders of a front */
    int fd; /* CHECKPOINT: the note; STARTED, DONE: the front's end of a channel. Taken over */
    struct checkpoint *checkpoint;  /* REWIND */
    struct instance *instance;      /* UNWANTED in MAKING */
    bool ready, rooted;             /* STARTED_BRANCH: it is a fork start, and has its root */
    const struct kernel_news *news; /* STILL, HELD, WENT */
    int r;                          /* an error; ROOTED, MOUNTED: the agent's code */
    const struct sg_error *e;
};

/* The state of a sandbox, as others see it. */
struct phase_rules {
    const char *name;
    bool rests;            /* it waits for orders */
    bool known;            /* fronts are told of it */
    bool counts;           /* among the figures */
    bool no_kernels;       /* it stands still or changes its root: a kernel would be lost */
    enum order_state told; /* what fronts are told; SAVING: as before the job */
};
extern const struct phase_rules phase_rules[PHASE_MAX_];

/* Does what the table says. The sandbox may be freed. */
void sandbox_happens(struct sandbox *g, enum event event, const struct happening *h);

/* An action. The sandbox is in its next state already. An action that leads to a job, or stays, may
 * raise another event; one that leads to a state in which the sandbox rests may not. */
typedef void sandbox_action(struct sandbox *g, const struct happening *h);

/* sandbox.c */
sandbox_action action_made, action_not_made, action_unwanted, action_failed, action_end,
    action_gone;
/* sandbox_job.c */
sandbox_action action_freeze, action_save, action_paused, action_thaw, action_stow, action_boot,
    action_booted, action_not_booted, action_unboot;
/* sandbox_volumes.c; sandbox_job.c and sandbox_branch.c */
sandbox_action action_mount, action_mounted, action_boot_mounted, action_branch_mounted;
/* sandbox_fork.c */
sandbox_action action_keep, action_still, action_held, action_went, action_keep_carried,
    action_keep_rooted, action_kept, action_not_kept, action_drop_news, action_keep_broker_gone;
/* sandbox_branch.c */
sandbox_action action_branch, action_rewind, action_branch_carried, action_branch_rooted,
    action_copied, action_branch_broker_gone, action_branched, action_rewound, action_not_rewound;
