/* Execution contexts: each path of each conversation has one sandbox, made when it is first needed.
 *
 *   manager.c    the contexts that this server has, and who waits for them
 *   obtain.c     get-or-create: claim a row, make or replace its sandbox, answer all who wait
 *   ending.c     terminate, merge, cleanup        branch.c   a new path, with or without files
 *   reaper.c     what expired; uses that were not told; what a crash left
 *   sweep.c      the sandboxes of many that ended
 *   lost.c       sandboxes that ended: told       usage.c    what sandboxes used, into the store
 *
 * The rows are the store's (store/contexts.h), and only what it says is true. What is kept here is
 * a copy for the sandboxes of this server: which box belongs to which row, and who waits.
 *
 *                 claim: CLAIM_NEW         box_create, settle
 *   OBTAIN_CLAIM ------------------> OBTAIN_CREATE ------------> answered
 *      |   ^  \                            ^
 *      |   |   +-- CLAIM_FOUND, gone --> OBTAIN_REPLACE
 *      |   +------------ -ESTALE ----------+
 *      +-- CLAIM_FOUND, its box runs, or was woken -----------> answered
 *      +-- it is another node's: its address -----------------> answered
 *
 * While one of these is under way for a path, whoever asks for the same path waits for its end, so
 * 64 callers are one claim and one sandbox. Exactly the first of them is told that it was created.
 *
 * A sandbox of a context names it (box_spec.context), so that a later front finds the two again,
 * and ends a sandbox whose row is another's or nobody's. */
#pragma once

#include "front/box.h"
#include "store/contexts.h"
#include "store/store.h"

struct contexts;

/* Begins: takes the store over, ends what an earlier front left half-made, starts the reaper. Boxes
 * that the warden has told of must be there. `started` comes when that is done, or the store cannot
 * be reached: then it is tried again, and meanwhile contexts are answered -EAGAIN. */
int contexts_start(struct front *f, struct ctx_store *store, void (*started)(struct front *f),
                   struct sg_error *e);

/* How a sandbox is to be, if one must be made; asked again if that one came to nothing.
 * template_id: what the row says, or NULL for a path that is new. On success ret is filled, with
 * its tenant and template, and layer as for box_create ("": none). */
typedef int (*context_spec)(void *arg, const char *template_id, struct box_spec *ret,
                            char layer[ID_LEN + 1], struct sg_error *e);

struct context_ask {
    const struct store_tenant *tenant;
    const char *conversation, *path; /* checked: context_name_check */
    uint64_t ttl_ms;                 /* 0: as it is, or the setting */
    const char *template_id;         /* of the row, if it is new; NULL: the setting's */
    context_spec spec;
};

struct context_answer {
    int r; /* 0, or -errno */
    const struct sg_error *e;
    const struct ctx_row *row;
    struct box *box;       /* it runs; NULL if `elsewhere` */
    bool created;          /* its sandbox was made for this very call */
    bool replaced;         /* for one that was lost: what it knew is gone */
    const char *elsewhere; /* URL of the server that has it, or NULL */
};
typedef void (*context_done)(void *arg, const struct context_answer *a);

/* 1 to 256 bytes of UTF-8 without control characters. `field` names it in the error. */
int context_name_check(const char *field, const char *value, struct sg_error *e);

/* The sandbox of a path. Everything that ask points to but the strings must live until done, which
 * comes exactly once; arg is given to ask->spec too. */
void context_obtain(struct front *f, const struct context_ask *ask, context_done done, void *arg);
/* Somebody works in it until context_release: it does not expire meanwhile. */
void context_hold(struct box *b);
void context_release(struct box *b);

/* For one row, by id. `row` is as it is afterwards. -ENOENT. `elsewhere` as above. */
void context_get(struct front *f, const char *tenant, const char *id, context_done done, void *arg);
void context_touch(struct front *f, const char *tenant, const char *id, uint64_t ttl_ms,
                   context_done done, void *arg);
void context_terminate(struct front *f, const char *tenant, const char *id, context_done done,
                       void *arg);

/* A path that comes from another. Without files nothing is made: the row is NULL. With them the new
 * path has a sandbox at once, made of the files that the parent's has now (if the parent has none,
 * as without). -EEXIST (409). ask: of the new path. */
void context_branch(struct front *f, const struct context_ask *ask, const char *from, bool files,
                    context_done done, void *arg);
/* The source's context ends: its row, or NULL if there was none. */
void context_merge(struct front *f, const char *tenant, const char *conversation,
                   const char *source, const char *target, context_done done, void *arg);
/* Ends what has expired, now; or, with a conversation, all of that. */
typedef void (*context_counted)(void *arg, int r, const struct sg_error *e, size_t n);
void context_cleanup(struct front *f, const char *tenant, const char *conversation,
                     context_counted done, void *arg);

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
