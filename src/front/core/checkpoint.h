/* Checkpoints: what a sandbox was at one moment, its files and its kernels, under a name; and what
 * is made of them: forks, sandboxes that go back, snapshots that start warm. docs/fork.md is for
 * users, docs/internals/fork.md has the whole way down.
 *
 *   checkpoint.c        the table; what the warden tells   checkpoint_note.c   one as a note
 *   checkpoint_take.c   taking one                         checkpoint_use.c    a sandbox from one,
 * going back checkpoint_adopt.c  kernels into their contexts        checkpoint_thin.c   which are
 * kept checkpoint_report.c what became of kernels, for people replay.c            cells of kernels
 * that cannot be copied, recorded; replay_run.c  and run again
 *
 *   hold the agent's cells --> ORDER_CHECKPOINT --> let go          taking one
 *   ORDER_CREATE with STATE --> channel --> OP_KERNEL_ADOPT         a sandbox from it
 *   ORDER_REWIND --> OP_KERNEL_ADOPT                                going back
 *
 * A checkpoint is described to the warden in a note, JSON like a sandbox's, so that a later front
 * finds it again. It goes with its sandbox unless it is a snapshot's. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"

#define CHECKPOINT_LABEL_MAX   256
#define CHECKPOINT_WAIT_MAX_MS 600000

enum checkpoint_kind {
    CHECKPOINT_FORK,     /* for one request: forgotten with it, and by a later front */
    CHECKPOINT_LABEL,    /* before a message, or a cell: thinned */
    CHECKPOINT_SNAPSHOT, /* beside a snapshot of the same name */
};

struct checkpoint {
    struct front *front;
    char name[ID_LEN + 1], tenant[ID_LEN + 1];
    char sandbox_id[ID_LEN + 1]; /* that it is of; it may be gone */
    enum checkpoint_kind kind;
    char label[CHECKPOINT_LABEL_MAX + 1]; /* "": none */
    /* What the sandbox had come from: the one before, or the one it had gone back to; "". */
    char parent[ID_LEN + 1];
    uint64_t serial; /* in the order they were taken, over all */
    int64_t at_ms;
    /* What its kernels had in memory: it is shared, so this is the most they can cost. */
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* of a durable one */
    bool kernels;        /* they are there; otherwise the files alone */
    /* As EVENT_KERNEL told them, and what can come along: {"id", "language", "cwd", "default",
     * "cells", "pid", "carried": bool, "reason"?: why not, "dropped"?: [...], "unrecorded"?: why it
     * cannot be replayed}. */
    json_t *contexts;
    json_t *cells;                        /* what can be replayed: see replay.h; or NULL */
    unsigned refs, uses;                  /* uses: sandboxes that are being made from it */
    struct checkpoint *next, *next_named; /* of the same sandbox, the one after it; in the table */
};

/* What became of each kernel, and what could not come along: an object
 * {"kernels": [{"contextId", "language", "state": "carried"|"fresh"|"replayed", "reason"?,
 * "dropped"?: [{"fd", "what"}]}]}, or with -EBUSY {"inTheWay": [{"pid", "command", "what", "holds",
 * "remedy"}]}. Borrowed; may be NULL. */
typedef void (*checkpoint_done)(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                                const json_t *report);

struct checkpoint_ask {
    enum checkpoint_kind kind;
    const char *name;  /* NULL: a random one */
    const char *label; /* NULL: none */
    uint64_t wait_ms;  /* for a cell to end; 0: not at all */
    bool durable;      /* the files are saved as a layer of the same name too */
    bool files_only;   /* without kernels */
    bool one;          /* of a fork: one sandbox is made from it */
};
/* Exactly once, perhaps before it returns. c is valid during the call, and until it is forgotten.
 * -EBUSY: the report lists what is in the way; -EDQUOT: the tenant's limits; -EOPNOTSUPP: not on
 * this host, and the report has the kernels as a sandbox with the files alone has them. bytes of a
 * durable one: c->front's store knows nothing of them yet: checkpoint_disk_bytes. */
void sandbox_checkpoint(struct sandbox *b, const struct checkpoint_ask *ask, checkpoint_done done,
                        void *arg);
uint64_t checkpoint_disk_bytes(const struct checkpoint *c);
/* One that still waits for a cell ends with -EBUSY, for something that would end the cell too. */
void checkpoint_give_way(struct sandbox *b);

/* A sandbox with its files and kernels. Takes spec over. last: it is forgotten with that. `report`
 * says what came along. As sandbox_create otherwise; the sandbox is not in anybody's hands before
 * its kernels are. */
typedef void (*fork_done)(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                          const json_t *report);
struct fork_ask {
    uint64_t timeout_ms;
    bool last;
    bool files_do; /* if its kernels are gone, its files alone will do; else -EOWNERDEAD */
    bool replay;   /* run the cells of other kernels again, with nothing to go out meanwhile */
};
void sandbox_create_from(struct front *f, struct sandbox_spec *spec, struct checkpoint *c,
                         const struct fork_ask *ask, fork_done done, void *arg);

/* Back to it: everything that runs in the sandbox ends first. Those that were taken later stay.
 * -ENOENT, -EBUSY: what it is doing cannot be ended (it is being paused...). -EOWNERDEAD: its
 * kernels are gone, and nothing was done; with files_do it gets the files alone then. */
void sandbox_rewind(struct sandbox *b, struct checkpoint *c, bool files_do, checkpoint_done done,
                    void *arg);
/* It has, or had, kernels that could be copied. */
bool checkpoint_had_kernels(const struct checkpoint *c);

/* NULL: there is none of that tenant. */
struct checkpoint *checkpoint_find(struct front *f, const char *tenant, const char *name);
/* The newest of a sandbox with that label; NULL. */
struct checkpoint *checkpoint_labelled(struct front *f, const char *sandbox_id, const char *label);
/* Those of a sandbox that are no fork's and no snapshot's, oldest first, until fn says false. */
void checkpoints_each(struct front *f, const char *sandbox_id,
                      bool (*fn)(struct checkpoint *c, void *arg), void *arg);
size_t checkpoints_count(const struct front *f); /* of all */
void checkpoint_forget(struct checkpoint *c);
/* The name of the one that a sandbox has come from last; "": none that is known. */
const char *sandbox_came_from(const struct sandbox *b);
/* The serial of the last one that was taken. */
uint64_t checkpoints_serial(struct front *f);
/* Whether a sandbox had one of that label, or name, that did not stay. Of the last few hundred. */
bool checkpoint_was_thinned(struct front *f, const char *sandbox_id, const char *label);

/* One, as JSON: {"checkpointId", "messageId" (the label; absent without), "parentId"?, "createdAt",
 * "memoryBytes", "kernels": bool, "current": bool}. current: the sandbox has come from this one
 * last. */
void checkpoint_put(struct json *j, const struct checkpoint *c);
/* `kernels` of a report as a member of the object that is being written; and "inTheWay". */
void report_put(struct json *j, const json_t *report);
/* Answers 409 with the list; or as any error. */
void reply_fork_error(struct http_req *req, int r, const struct sg_error *e, const json_t *report);

/* What the warden tells. Takes the descriptor over. */
void checkpoint_told(struct front *f, const struct order_answer *a, int note_fd);
void checkpoint_told_lost(struct front *f, const struct order_answer *a);
void checkpoint_told_gone(struct front *f, const struct order_answer *a);
/* When the store is there: snapshots' checkpoints whose snapshot it does not know are forgotten. */
void checkpoints_match_store(struct front *f);
/* When all are told: sandboxes that an earlier front was taking back to one are taken there. */
void sandboxes_finish_rewinds(struct front *f);
/* Once: from now on those that are too old are forgotten. */
void checkpoints_watch_age(struct front *f);
/* A sandbox has ended: what goes with it is not there any more. */
void checkpoints_sandbox_ended(struct sandbox *b);
/* A layer of that name was forgotten. */
void checkpoint_snapshot_forgotten(struct front *f, const char *name);
