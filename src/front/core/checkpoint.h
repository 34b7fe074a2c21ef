/* Checkpoints: the files and kernels of a sandbox at one time, under a name. Forks, rewinds and
 * snapshots that start with their variables are made from them. docs/fork.md is for users;
 * docs/internals/fork.md describes every step, down to the kernel.
 *
 *   checkpoint.c          the table of checkpoints, and messages of the warden about them
 *   checkpoint_note.c     a checkpoint as a note for the next front
 *   checkpoint_take.c     takes a checkpoint
 *   checkpoint_use.c      makes a sandbox from a checkpoint; rewinds a sandbox to one
 *   checkpoint_adopt.c    gives copied kernels to their contexts
 *   checkpoint_thin.c     decides which checkpoints are kept
 *   checkpoint_report.c   reports what became of each kernel
 *   replay.c              records the cells of kernels that cannot be copied
 *   replay_run.c          runs recorded cells again
 *
 *   taking one:           hold the agent's cells --> ORDER_CHECKPOINT --> let the cells go on
 *   a sandbox from one:   ORDER_CREATE with ORDER_STATE --> channel --> OP_KERNEL_ADOPT
 *   rewinding to one:     ORDER_REWIND --> OP_KERNEL_ADOPT
 *
 * The front describes each checkpoint to the warden in a note (JSON, as for a sandbox), so that a
 * later front finds the checkpoint again. A checkpoint is forgotten when its sandbox ends, unless
 * it belongs to a snapshot. */
#pragma once

#include "lib/base/map.h"
#include "lib/text/json.h"
#include "front/core/sandbox.h"

#define CHECKPOINT_LABEL_MAX   256
#define CHECKPOINT_WAIT_MAX_MS 600000

enum checkpoint_kind {
    CHECKPOINT_FORK,     /* for one request: forgotten with it, and by a later front */
    CHECKPOINT_LABEL,    /* taken before a message or a cell; old ones are thinned out */
    CHECKPOINT_SNAPSHOT, /* belongs to the snapshot of the same name */
};

struct checkpoint {
    struct front *front;
    char name[ID_LEN + 1], tenant[ID_LEN + 1];
    char sandbox_id[ID_LEN + 1]; /* whose state it holds; may have ended */
    enum checkpoint_kind kind;
    char label[CHECKPOINT_LABEL_MAX + 1]; /* "": none */
    /* The checkpoint that the sandbox had come from: the one taken before this, or the one that the
     * sandbox was last rewound to; "" if there is none. */
    char parent[ID_LEN + 1];
    uint64_t serial; /* counts up with each checkpoint of this server */
    int64_t at_ms;
    /* The memory that its kernels had. The copies share pages, so this is the most that they can
     * cost. */
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* of a durable checkpoint */
    bool kernels;        /* its kernels are there; if false, only its files */
    /* The contexts of the sandbox, as EVENT_KERNEL reported them, with what was copied: {"id",
     * "language", "cwd", "default", "cells", "pid", "carried": bool, "reason"?: why it was not
     * carried, "dropped"?: [...], "unrecorded"?: why it cannot be replayed}. */
    json_t *contexts;
    json_t *cells;       /* cells that can be replayed (replay.h); or NULL */
    unsigned refs, uses; /* uses: sandboxes being made from it */
    struct map_node by_name;
    struct list of_sandbox;
};

/* Called when a checkpoint was taken or a sandbox was rewound. The report says what became of each
 * kernel and what could not be carried: {"kernels": [{"contextId", "language", "state":
 * "carried"|"fresh"|"replayed", "reason"?, "dropped"?: [{"fd", "what"}]}]}. With -EBUSY it says
 * what is in the way: {"inTheWay": [{"pid", "command", "what", "holds", "remedy"}]}. The report is
 * borrowed and may be NULL. */
typedef void (*checkpoint_done)(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                                const json_t *report);

struct checkpoint_ask {
    enum checkpoint_kind kind;
    const char *name;  /* NULL: a random name */
    const char *label; /* NULL: none */
    uint64_t wait_ms;  /* how long to wait for a cell to end; 0: do not wait */
    bool durable;      /* the files are also saved as a snapshot of the same name */
    bool files_only;   /* without kernels */
    bool one;          /* of a fork: only one sandbox will be made from it */
};
/* Takes a checkpoint. done is called exactly once, perhaps before this returns. c is valid during
 * that call, and until the checkpoint is forgotten.
 *
 * Errors: -EBUSY: the report lists what is in the way. -EDQUOT: the tenant's limits. -EOPNOTSUPP:
 * this host cannot copy kernels; the report then describes the kernels as a sandbox made from the
 * files alone would have them.
 *
 * The store does not know the size of a durable checkpoint yet: the caller gets it from
 * checkpoint_disk_bytes. */
void sandbox_checkpoint(struct sandbox *b, const struct checkpoint_ask *ask, checkpoint_done done,
                        void *arg);
uint64_t checkpoint_disk_bytes(const struct checkpoint *c);
/* Ends a checkpoint that still waits for a cell, with -EBUSY: the caller is about to do something
 * that would end the cell as well. */
void checkpoint_give_way(struct sandbox *b);

/* Makes a sandbox with the files and kernels of a checkpoint, and takes spec over. The report says
 * what was carried. Nobody else can use the sandbox before its kernels are in place. Otherwise as
 * sandbox_create. */
typedef void (*fork_done)(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                          const json_t *report);
struct fork_ask {
    uint64_t timeout_ms;
    bool last;
    bool files_do; /* accept the files alone if the kernels are gone; else -EOWNERDEAD */
    bool replay;   /* run the cells of other kernels again; nothing goes out meanwhile */
};
void sandbox_create_from(struct front *f, struct sandbox_spec *spec, struct checkpoint *c,
                         const struct fork_ask *ask, fork_done done, void *arg);

/* Rewinds a sandbox to a checkpoint. Everything that runs in the sandbox ends first. Checkpoints
 * that were taken later stay. -ENOENT: the sandbox has ended. -EBUSY: the sandbox is doing
 * something that cannot be broken off, such as pausing. -EOWNERDEAD: the kernels of the checkpoint
 * are gone, and nothing was done; with files_do the sandbox gets the files alone instead. */
void sandbox_rewind(struct sandbox *b, struct checkpoint *c, bool files_do, checkpoint_done done,
                    void *arg);
/* Whether the checkpoint has, or once had, copied kernels. */
bool checkpoint_had_kernels(const struct checkpoint *c);

/* NULL: the tenant has no checkpoint of that name. */
struct checkpoint *checkpoint_find(struct front *f, const char *tenant, const char *name);
/* The newest checkpoint of a sandbox with that label; NULL if there is none. */
struct checkpoint *checkpoint_labelled(struct front *f, const char *sandbox_id, const char *label);
/* Calls fn for the checkpoints of a sandbox, oldest first, until fn returns false. Checkpoints of
 * forks and snapshots are left out. */
void checkpoints_each(struct front *f, const char *sandbox_id,
                      bool (*fn)(struct checkpoint *c, void *arg), void *arg);
size_t checkpoints_count(const struct front *f); /* of all sandboxes */
void checkpoint_forget(struct checkpoint *c);
/* The name of the checkpoint that a sandbox has come from last; "" if none is known. */
const char *sandbox_came_from(const struct sandbox *b);
/* The serial of the checkpoint that was taken last. */
uint64_t checkpoints_serial(struct front *f);
/* Whether a sandbox once had a checkpoint of that label, or name, that was thinned out. Only the
 * last few hundred are remembered. */
bool checkpoint_was_thinned(struct front *f, const char *sandbox_id, const char *label);

/* Writes a checkpoint as JSON: {"checkpointId", "messageId"? (the label), "parentId"?, "createdAt",
 * "memoryBytes", "kernels": bool, "current": bool}. current: the sandbox has come from this
 * checkpoint last. */
void checkpoint_put(struct json *j, const struct checkpoint *c);
/* Writes "kernels" and "inTheWay" of a report as members of the object that is being written. */
void report_put(struct json *j, const json_t *report);
/* Answers 409 with the list of what is in the way; other errors as usual. */
void reply_fork_error(struct http_req *req, int r, const struct sg_error *e, const json_t *report);

/* Messages of the warden: a checkpoint exists, its kernels are lost, it is gone. checkpoint_told
 * takes the descriptor over. */
void checkpoint_told(struct front *f, const struct order_answer *a, int note_fd);
void checkpoint_told_lost(struct front *f, const struct order_answer *a);
void checkpoint_told_gone(struct front *f, const struct order_answer *a);
/* Called when the store is open: forgets checkpoints of snapshots that the store does not know. */
void checkpoints_match_store(struct front *f);
/* Called when the warden has named all sandboxes and checkpoints: finishes the rewinds that an
 * earlier front had begun. */
void sandboxes_finish_rewinds(struct front *f);
/* Called once: from now on, checkpoints that are too old are forgotten. */
void checkpoints_watch_age(struct front *f);
/* A sandbox has ended: removes its checkpoints, except those of snapshots, from the table. */
void checkpoints_sandbox_ended(struct sandbox *b);
/* The snapshot of that name was forgotten: removes its checkpoint from the table. */
void checkpoint_snapshot_forgotten(struct front *f, const char *name);
