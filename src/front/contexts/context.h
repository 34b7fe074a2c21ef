/* Execution contexts: each path of each conversation has one sandbox, made when it is first needed.
 *
 *   manager.c    the contexts that this server has, and who waits for them
 *   obtain.c     get-or-create: claim a row, make or replace its sandbox, answer all who wait
 *   ready.c      a sandbox, when something can be done to it
 *   ending.c     terminate, merge, cleanup
 *   branch.c     a new path: of nothing, of files, of state
 *   mark.c       a checkpoint before a message
 *   context_checkpoint.c     which checkpoint is meant
 *   rewind.c     back to one; which there are
 *   explore.c    the same sandbox several times
 *   adopt.c      one of those instead of it
 *   reaper.c     what expired; uses that were not told; what a crash left
 *   sweep.c      the sandboxes of many that ended
 *   lost.c       sandboxes that ended: told
 *   usage.c      what sandboxes used, into the store
 *   kept.c       what a sandbox was asked to be, for the one that replaces it
 *   network.c    another network for a sandbox, kept
 *   retention.c  what is over for long: forgotten
 *
 * The rows are the store's (front/store/contexts.h), and only what it says is true. What is kept
 * here is a copy for the sandboxes of this server: which sandbox belongs to which row, and who
 * waits.
 *
 *                 claim: CLAIM_NEW         sandbox_create, settle
 *   OBTAIN_CLAIM ------------------> OBTAIN_CREATE ------------> answered
 *      |   ^  \                            ^
 *      |   |   +-- CLAIM_FOUND, gone --> OBTAIN_REPLACE     (or the first who waits brings another)
 *      |   +------------ -ESTALE ----------+
 *      +-- CLAIM_FOUND, its sandbox runs, or was woken -----------> answered
 *      +-- it is another node's: its address -----------------> answered
 *
 * While one of these is under way for a path, whoever asks for the same path waits for its end, so
 * 64 callers are one claim and one sandbox. Exactly the first of them is told that it was created.
 *
 * A sandbox of a context names it (sandbox_spec.context), so that a later front finds the two
 * again, and ends a sandbox whose row is another's or nobody's. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"
#include "front/core/checkpoint.h"
#include "front/store/contexts.h"
#include "front/store/store.h"

struct contexts;

/* Begins: takes the store over, ends what an earlier front left half-made, starts the reaper.
 * Sandboxes that the warden has told of must be there. `started` comes when that is done, or the
 * store cannot be reached: then it is tried again, and meanwhile contexts are answered -EAGAIN. */
int contexts_start(struct front *f, struct ctx_store *store, void (*started)(struct front *f),
                   struct sg_error *e);

/* The server ends: its rows have no sandboxes from now on, and it counts as dead at once, so that
 * other servers make new ones. done: the store has heard of it, or cannot be reached. */
void contexts_leave(struct front *f, void (*done)(void *arg), void *arg);

/* How a sandbox is to be, if one must be made; asked again if that one came to nothing.
 * template_id: what the row says, or NULL for a path that is new. On success ret is filled, with
 * its tenant and template, and layer as for sandbox_create ("": none). */
typedef int (*context_spec)(void *arg, const char *template_id, struct sandbox_spec *ret,
                            char snapshot[ID_LEN + 1], struct sg_error *e);

struct context_ask {
    const struct store_tenant *tenant;
    const char *conversation, *path; /* checked: context_name_check */
    uint64_t ttl_ms;                 /* 0: as it is, or the setting */
    const char *template_id;         /* of the row, if it is new; NULL: the setting's */
    context_spec spec;
    const char *checkpoint; /* what a sandbox is made from if one must be; NULL: its template */
    bool last, replay, files_do; /* of that: as in struct fork_ask */
    struct sandbox *bring; /* it takes the place of the one that the path has; NULL: none does */
};

struct context_answer {
    int r; /* 0, or -errno */
    const struct sg_error *e;
    const struct ctx_row *row;
    struct sandbox *sandbox; /* it runs; NULL if `elsewhere` */
    bool created;            /* its sandbox was made for this very call */
    bool replaced;           /* for one that was lost: what it knew is gone */
    bool kept_lost;          /* and so is what its context kept for it: no key (kept.h) */
    const char *elsewhere;   /* URL of the server that has it, or NULL */
    /* What came along from a checkpoint, or with -EBUSY what is in the way; NULL: nothing to say */
    const json_t *report;
    struct checkpoint *checkpoint; /* that it was rewound to */
};
typedef void (*context_done)(void *arg, const struct context_answer *a);

/* 1 to 256 bytes of UTF-8 without control characters. `field` names it in the error. */
int context_name_check(const char *field, const char *value, struct sg_error *e);

/* The sandbox of a path. Everything that ask points to but the strings must live until done, which
 * comes exactly once; arg is given to ask->spec too. */
void context_obtain(struct front *f, const struct context_ask *ask, context_done done, void *arg);
/* Somebody works in it until context_release: it does not expire meanwhile. */
void context_hold(struct sandbox *b);
void context_release(struct sandbox *b);

/* For one row, by id. `row` is as it is afterwards. -ENOENT. `elsewhere` as above. */
void context_get(struct front *f, const char *tenant, const char *id, context_done done, void *arg);
void context_touch(struct front *f, const char *tenant, const char *id, uint64_t ttl_ms,
                   context_done done, void *arg);
void context_terminate(struct front *f, const char *tenant, const char *id, context_done done,
                       void *arg);

/* What a new path gets of the one that it comes from. */
enum context_inherit { INHERIT_NONE, INHERIT_FILES, INHERIT_STATE, INHERIT_REPLAY };
struct context_from {
    const char *path;
    enum context_inherit inherit;
    const char *message, *checkpoint; /* as it was then; both NULL: as it is now */
    bool files_do;                    /* of then, if variables are lost: as in struct fork_ask */
    uint64_t wait_ms;                 /* for a cell that runs there */
};

/* Which checkpoint is meant. -ENOMSG: there never was one, as far as this front knows (404);
 * -ESTALE: it was thinned away, or went with its sandbox (410). */
int context_checkpoint(struct sandbox *b, const char *message, const char *checkpoint,
                       struct checkpoint **ret, struct sg_error *e);

/* A path that comes from another. With nothing of it nothing is made: the row is NULL. Else the new
 * path has a sandbox at once; if the parent has none, as with nothing, unless a moment was named.
 * -EEXIST (409); -EBUSY with a report; -EOWNERDEAD: the variables of that moment are lost; as
 * context_checkpoint, with the parent's sandbox. ask: of the new path. */
void context_branch(struct front *f, const struct context_ask *ask, const struct context_from *from,
                    context_done done, void *arg);
/* Variables and files as they were. -ENOENT: it has ended; -EOWNERDEAD; as context_checkpoint, with
 * the sandbox. */
void context_rewind(struct front *f, const char *tenant, const char *id,
                    const struct context_from *to, context_done done, void *arg);
/* The sandbox of an active context, for its checkpoints: NULL if it has none now. No use of it. */
void context_look(struct front *f, const char *tenant, const char *id, context_done done,
                  void *arg);

/* Another network for the running sandbox of a context; takes `network` over. Answered when it is
 * in force and kept. If it cannot be both, the sandbox has the one before again: a sandbox that
 * replaces this one is never more open than what was last answered with 0. -EAGAIN: the store. */
void context_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg);

/* Leaves a checkpoint before a message, unless the one that its sandbox has come from last is of
 * the same. Only one of the two is not NULL: its id, or why there is none. */
typedef void (*context_marked)(void *arg, const char *checkpoint, const char *skipped);
void context_mark(struct sandbox *b, const char *message, uint64_t wait_ms, context_marked done,
                  void *arg);

#define EXPLORE_MAX 64
struct explore_ask {
    const struct store_tenant *tenant;
    const char *context;
    size_t n;
    uint64_t wait_ms, life_ms;
    void (*copy)(const struct sandbox_spec *from,
                 struct sandbox_spec *ret); /* what each is to be */
};
/* Sandboxes that are what a context's was at one moment. They name it and are not its sandbox. */
struct exploration {
    char id[ID_LEN + 1], tenant[ID_LEN + 1], context[ID_LEN + 1];
    size_t n;
    struct sandbox *sandboxes[EXPLORE_MAX]; /* NULL: it has ended */
    struct front *front;                    /* this and below: explore.c's */
    bool kept, dropping;
    bool auto_pause; /* of the sandbox that they come from */
    struct exploration *next;
};
/* All or none. x is the caller's until exploration_keep; NULL with an error. */
typedef void (*explore_done)(void *arg, const struct context_answer *a, struct exploration *x);
void context_explore(struct front *f, const struct explore_ask *ask, explore_done done, void *arg);
/* They end by themselves in so long, and one can be adopted until then. 0: now. */
void exploration_keep(struct exploration *x, uint64_t ms);
/* The candidate is the context's sandbox from now on. What it had before, and the other candidates,
 * end. -ENOENT: no such context; -ENOMSG: no such candidate of it. */
void context_adopt(struct front *f, const struct store_tenant *tenant, const char *id,
                   const char *candidate, context_done done, void *arg);

/* The source's context ends: its row, or NULL if there was none. */
void context_merge(struct front *f, const char *tenant, const char *conversation,
                   const char *source, const char *target, context_done done, void *arg);
/* Ends what has expired, now; or, with a conversation, all of that. */
typedef void (*context_counted)(void *arg, int r, const struct sg_error *e, size_t n);
void context_cleanup(struct front *f, const char *tenant, const char *conversation,
                     context_counted done, void *arg);

/* Once, at the start: /metrics tells how many there are. */
void contexts_have_figures(void);
/* The store, for what is only read: lists, paths, usage. */
struct ctx_store *contexts_store(struct front *f);
/* The limits of a tenant: its own, or the settings'. */
struct context_limits {
    uint32_t tenant, conversation; /* sandboxes of contexts at a time */
    uint64_t execution_ms, execution_max_ms;
    size_t code_max;
};
void context_limits(const struct front *f, const struct store_tenant *t,
                    struct context_limits *ret);
