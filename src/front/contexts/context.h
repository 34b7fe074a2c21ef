/* Execution contexts: each path of each conversation has one sandbox, made when it is first needed.
 *
 *   manager.c             the table of this server's contexts, and their sandboxes
 *   obtain.c              get-or-create: claims a row, makes or replaces its sandbox, answers all
 *                         who wait
 *   ready.c               waits until a sandbox runs and is free
 *   ending.c              terminate, merge, cleanup
 *   branch.c              makes a new path: with nothing, with files, or with kernels as well
 *   mark.c                takes a checkpoint before a message
 *   context_checkpoint.c  finds the checkpoint that a client means
 *   rewind.c              rewinds to a checkpoint; finds the sandbox for a list of checkpoints
 *   explore.c             makes several copies of a context's sandbox
 *   adopt.c               puts one of those copies in the sandbox's place
 *   reaper.c              ends expired contexts, reports uses, cleans up after a crash
 *   sweep.c               ends the sandboxes of many contexts
 *   lost.c                reports to the store that sandboxes have ended
 *   usage.c               reports to the store what sandboxes have used
 *   kept.c                keeps metadata, variables and network for a sandbox that replaces another
 *   network.c             changes the network of a sandbox, and keeps the change
 *   retention.c           forgets contexts that were over long ago
 *   limits.c              the limits of a tenant
 *   figures.c             figures for /metrics
 *
 * The store has the rows (front/store/contexts.h), and only its word is true. This part keeps a
 * copy for the sandboxes of this server: which sandbox belongs to which row, and who waits for it.
 *
 *                 claim: CLAIM_NEW         sandbox_create, settle
 *   OBTAIN_CLAIM ------------------> OBTAIN_CREATE --------------> answered
 *     |  ^   \                          ^    |
 *     |  |    \  CLAIM_FOUND, but its   |    |
 *     |  |     \ sandbox is gone        |    |
 *     |  |      +--> OBTAIN_REPLACE ----+    |
 *     |  |                 |                 |
 *     |  +---- -ESTALE ----+-----------------+
 *     |
 *     +-- CLAIM_FOUND: its sandbox runs, or was woken (OBTAIN_WAKE) --> answered
 *     +-- another node has it: that node's address ------------------> answered
 *
 * OBTAIN_REPLACE also comes if the first who waits brings another sandbox for the path.
 *
 * While one of these steps is under way for a path, everybody who asks for the same path waits for
 * its end: 64 callers are one claim and one sandbox. Only the first of them is told that the
 * sandbox was created.
 *
 * The sandbox of a context names it (sandbox_spec.context). So a later front finds the two again,
 * and ends a sandbox whose row is another's or nobody's. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"
#include "front/core/checkpoint.h"
#include "front/store/contexts.h"
#include "front/store/store.h"

struct contexts;

/* Starts this part: takes the store over, ends what an earlier front left half-made, starts the
 * reaper. The warden's sandboxes must already be in the table. `started` is called when this is
 * done, or when the store cannot be reached. In that case it is tried again, and requests for
 * contexts get -EAGAIN meanwhile. */
int contexts_start(struct front *f, struct ctx_store *store, void (*started)(struct front *f),
                   struct sg_error *e);

/* The server is about to end. From now on its rows have no sandboxes, and it counts as dead at
 * once, so that other servers make new ones. done is called when the store has noted that, or
 * cannot be reached. */
void contexts_leave(struct front *f, void (*done)(void *arg), void *arg);

/* Describes the sandbox, if one must be made; called again if that one could not be made.
 * template_id: from the row, or NULL for a new path. On success it fills ret, with tenant and
 * template, and snapshot as for sandbox_create ("": none). */
typedef int (*context_spec)(void *arg, const char *template_id, struct sandbox_spec *ret,
                            char snapshot[ID_LEN + 1], struct sg_error *e);

struct context_ask {
    const struct store_tenant *tenant;
    const char *conversation, *path; /* checked: context_name_check */
    uint64_t ttl_ms;                 /* 0: unchanged, or the setting's */
    const char *template_id;         /* for a new row; NULL: the setting's */
    context_spec spec;
    const char *checkpoint;      /* a new sandbox is made from it; NULL: from its template */
    bool last, replay, files_do; /* for that: as in struct fork_ask */
    struct sandbox *bring;       /* replaces the path's sandbox; NULL: nothing does */
};

struct context_answer {
    int r; /* 0, or -errno */
    const struct sg_error *e;
    const struct ctx_row *row;
    struct sandbox *sandbox; /* it runs; NULL if `elsewhere` is set */
    bool created;            /* the sandbox was made for this very call */
    bool replaced;           /* it replaces a lost one: files and variables are gone */
    bool kept_lost;          /* and so are metadata, variables, network: no key (kept.h) */
    const char *elsewhere;   /* URL of the server that has it, or NULL */
    /* Names what came along from a checkpoint or, with -EBUSY, what is in the way; NULL: nothing
     * to say. */
    const json_t *report;
    struct checkpoint *checkpoint; /* the one that it was rewound to */
};
typedef void (*context_done)(void *arg, const struct context_answer *a);

/* Checks a name: 1 to 256 bytes of UTF-8 without control characters. `field` is for the error. */
int context_name_check(const char *field, const char *value, struct sg_error *e);

/* Gets the sandbox of a path, and makes one if needed. done is called exactly once. Everything that
 * ask points to, except the strings, must live until then. arg is passed to ask->spec too. */
void context_obtain(struct front *f, const struct context_ask *ask, context_done done, void *arg);
/* Marks a sandbox as in use until context_release: it does not expire meanwhile. */
void context_hold(struct sandbox *b);
void context_release(struct sandbox *b);

/* Operations on one row, by id. The answer has the row as it is afterwards, and `elsewhere` as
 * above. -ENOENT: there is no such context. */
void context_get(struct front *f, const char *tenant, const char *id, context_done done, void *arg);
void context_touch(struct front *f, const char *tenant, const char *id, uint64_t ttl_ms,
                   context_done done, void *arg);
void context_terminate(struct front *f, const char *tenant, const char *id, context_done done,
                       void *arg);

/* The things that a new path inherits from its parent path. */
enum context_inherit { INHERIT_NONE, INHERIT_FILES, INHERIT_STATE, INHERIT_REPLAY };
struct context_from {
    const char *path;
    enum context_inherit inherit;
    const char *message, *checkpoint; /* the parent as it was then; both NULL: as it is now */
    bool files_do;                    /* accept files alone if variables are lost, as in fork_ask */
    uint64_t wait_ms;                 /* how long to wait for a cell that runs there */
};

/* Finds the checkpoint that a client means. -ENOMSG: there never was one, as far as this front
 * knows (404). -ESTALE: it was thinned out, or went with its sandbox (410). */
int context_checkpoint(struct sandbox *b, const char *message, const char *checkpoint,
                       struct checkpoint **ret, struct sg_error *e);

/* Makes a new path that comes from another. If it inherits nothing, no sandbox is made, and the row
 * is NULL. Otherwise the new path gets a sandbox at once. If the parent has no sandbox, the new
 * path gets nothing, unless a message or checkpoint was named: that is an error. -EEXIST: the path
 * has a context (409). -EBUSY comes with a report. -EOWNERDEAD: the variables of that checkpoint
 * are lost. Also the errors of context_checkpoint, with the parent's sandbox. ask: for the new
 * path. */
void context_branch(struct front *f, const struct context_ask *ask, const struct context_from *from,
                    context_done done, void *arg);
/* Rewinds a context: variables and files become what they were. -ENOENT: the context has ended.
 * -EOWNERDEAD: the variables are lost. Also the errors of context_checkpoint, with the sandbox. */
void context_rewind(struct front *f, const char *tenant, const char *id,
                    const struct context_from *to, context_done done, void *arg);
/* Finds the sandbox of an active context, to list its checkpoints; NULL if it has none now. This
 * does not count as use. */
void context_look(struct front *f, const char *tenant, const char *id, context_done done,
                  void *arg);

/* Changes the network of a context's running sandbox, and takes `network` over. Answered when the
 * new network is in force and kept. If it cannot be both, the sandbox gets its old network back: a
 * sandbox that replaces this one is never more open than the last change that was answered with 0.
 * -EAGAIN: the store could not keep it. */
void context_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg);

/* Takes a checkpoint before a message, unless the last checkpoint that the sandbox has come from is
 * of the same message. The callback gets either the checkpoint's id or the reason why there is
 * none; the other is NULL. */
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
                 struct sandbox_spec *ret); /* makes the spec of a copy */
};
/* An exploration: several copies of a context's sandbox, all from one checkpoint. These candidates
 * name the context but are not its sandbox. */
struct exploration {
    char id[ID_LEN + 1], tenant[ID_LEN + 1], context[ID_LEN + 1];
    size_t n;
    struct sandbox *sandboxes[EXPLORE_MAX]; /* NULL: the candidate has ended */
    struct front *front;                    /* private to explore.c, with the fields below */
    bool kept, dropping;
    bool auto_pause; /* of the sandbox that was copied */
    struct list link;
};
/* Either all candidates are made or none. x belongs to the caller until exploration_keep; NULL with
 * an error. */
typedef void (*explore_done)(void *arg, const struct context_answer *a, struct exploration *x);
void context_explore(struct front *f, const struct explore_ask *ask, explore_done done, void *arg);
/* Lets the candidates live for so long; until then one can be adopted. 0: ends them now. */
void exploration_keep(struct exploration *x, uint64_t ms);
/* Makes a candidate the context's sandbox. The sandbox before it and the other candidates end.
 * -ENOENT: no such context; -ENOMSG: it has no such candidate. */
void context_adopt(struct front *f, const struct store_tenant *tenant, const char *id,
                   const char *candidate, context_done done, void *arg);

/* Merges a path into another: the source's context ends. The answer has its row, or NULL if it had
 * none. */
void context_merge(struct front *f, const char *tenant, const char *conversation,
                   const char *source, const char *target, context_done done, void *arg);
/* Ends the tenant's expired contexts now or, with a conversation, all contexts of that. */
typedef void (*context_counted)(void *arg, int r, const struct sg_error *e, size_t n);
void context_cleanup(struct front *f, const char *tenant, const char *conversation,
                     context_counted done, void *arg);

/* Called once, at the start: adds the number of contexts to /metrics. */
void contexts_have_figures(void);
/* The store, for code that only reads: lists, paths, usage. */
struct ctx_store *contexts_store(struct front *f);
/* The limits of a tenant: its own, or the settings'. */
struct context_limits {
    uint32_t tenant, conversation; /* sandboxes of contexts at the same time */
    uint64_t execution_ms, execution_max_ms;
    size_t code_max;
};
void context_limits(const struct front *f, const struct store_tenant *t,
                    struct context_limits *ret);
