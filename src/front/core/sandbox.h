/* A sandbox as the front knows it.
 *
 *              sandbox_create             sandbox_pause, auto-pause
 *   (nothing) ------------> running ------------------------> paused
 *                             ^  |                              |  |
 *                             |  |       sandbox_resume             |  |
 *                             |  +<-----------------------------+  |
 *                             +--> ended (killed, expired, died) <-+
 *
 * While one of those is under way `busy` says which, and another waits for it to be over. Killing
 * never waits.
 *
 * A sandbox is found by tenant and id. What is ended is out of the table at once; the object itself
 * lives until the last sandbox_unref. The truth is the warden's: the front keeps a copy, and
 * describes each sandbox to the warden in a note (spec.h) from which a later front makes the object
 * again. */
#pragma once

#include "lib/base/ids.h"
#include "lib/channel/chan.h"
#include "front/core/sandbox_end.h"
#include "front/core/front.h"
#include "front/core/log.h"
#include "front/core/metrics.h"
#include "front/core/spec.h"
#include "front/core/usage.h"
#include "wire/warden.h"
#include "front/telemetry/trace.h"

enum sandbox_state { SANDBOX_STARTING, SANDBOX_RUNNING, SANDBOX_PAUSED, SANDBOX_ENDED };
/* A checkpoint is taken, or it goes back to one: BUSY_CHECKPOINT. */
enum sandbox_busy { BUSY_NO, BUSY_PAUSING, BUSY_RESUMING, BUSY_SNAPSHOT, BUSY_CHECKPOINT };

struct link;
struct operation;
struct context;
struct replay;
struct taking;

struct sandbox {
    struct front *front;
    char id[ID_LEN + 1];
    struct sandbox_spec spec;
    enum sandbox_state state;
    enum sandbox_busy busy;
    bool stored;          /* paused without memory */
    uint64_t held_memory; /* bytes, while it is paused with its memory */
    uint64_t deadline_ns; /* clock_ns(); 0 while paused */
    uint64_t seen_ns;     /* when this front came to know it */
    int64_t end_ms;       /* wall clock: when it ends; of a paused one, when it would have */
    struct link *link;    /* to the agent; NULL if stored or ended */
    struct sandbox_log log;
    struct sandbox_metrics metrics;
    struct sandbox_usage usage;
    struct watchers *watchers; /* envd's: watches that are polled; NULL until used */
    void (*watchers_free)(struct watchers *w); /* set with it */
    struct settle *waiting;                    /* for a transition to be over */
    struct replay *replay; /* front/core/replay.h: cells that could be run again; NULL until used */
    struct taking *taking; /* checkpoint_take.c's: a checkpoint that waits for a cell; NULL: none */
    bool has_copies;       /* copies of kernels came with it, and are its agent's */
    bool closed;           /* cells run again in it: nothing goes out, whatever its policy is */
    struct context *context; /* context/'s: that it is the sandbox of, as far as this front knows */
    const char *conversation, *path; /* of that; NULL: none */
    struct operation
        *operations; /* operation.h: cells, programs, tools, agents under way; newest first */
    struct trace_ref last_trace; /* of the last of them */
    uint64_t used_ns;            /* when its agent was last asked something for a client */
    unsigned holds;              /* of those who work in it */
    unsigned refs;
    struct sandbox_end end; /* how it ended */
    struct sandbox *next_in_bucket;
};

struct sandbox *sandbox_ref(struct sandbox *b);
void sandbox_unref(struct sandbox *b);

/* sandboxes.c: the table. */
struct sandboxes *sandboxes_new(void);
/* For the control plane: only a tenant's own, of any state but ended; NULL otherwise. */
struct sandbox *sandbox_get(struct front *f, const char *tenant, const char *id);
/* For the data plane, where the id and the sandbox's own token are the authority. */
struct sandbox *sandbox_find(struct front *f, const char *id);
/* Calls fn for each until it says false. */
void sandboxes_each(struct front *f, bool (*fn)(struct sandbox *b, void *arg), void *arg);
size_t sandboxes_count(struct front *f, const char *tenant); /* that run, or are about to */
/* Whether n more of a tenant's sandboxes can be paused: -EDQUOT. Of tenant_paused, those take a
 * place that are paused and those that will be at their end (autoPause), from their creation on: a
 * limit that stood in the way then could only end them. */
int sandboxes_check_paused(struct front *f, const char *tenant, size_t n, struct sg_error *e);
/* Whether what is paused holds less memory than tenant_paused_memory. How much one will hold is
 * known when it is paused: the last of them may go beyond. */
int sandboxes_check_held(struct front *f, const char *tenant, struct sg_error *e);

/* Somebody works in it, or waits for an answer of its agent. */
bool sandbox_in_use(const struct sandbox *b);
/* Its agent is gone, and the warden will tell what became of it. */
bool sandbox_is_breaking(const struct sandbox *b);

/* A new deadline (clock_ns), and the wall-clock time that is told for it. */
void sandbox_set_deadline(struct sandbox *b, uint64_t deadline_ns);

/* lifecycle.c. Each is answered through `done`, exactly once, perhaps before it returns. r is 0 or
 * -errno with e filled. The operation goes on when whoever asked for it is gone. */
typedef void (*sandbox_done)(void *arg, struct sandbox *b, int r, const struct sg_error *e);
/* Takes over spec (sandbox_spec_done is the callee's from then on). `layer` as in order.h, or NULL;
 * if it is a snapshot whose kernels are there, they come along (checkpoint.h). No more than
 * tenant_sandboxes of a tenant run at once: -EDQUOT, here and in sandbox_resume; the place is taken
 * before anything else happens. */
void sandbox_create(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                    uint64_t timeout_ms, sandbox_done done, void *arg);
void sandbox_kill(struct sandbox *b, sandbox_done done, void *arg);
/* -EDQUOT: sandboxes_check_paused, or sandboxes_check_held for one that would keep its memory. One
 * whose time is over and that would hold too much is kept by its files alone. */
void sandbox_pause(struct sandbox *b, bool keep_memory, sandbox_done done, void *arg);
void sandbox_resume(struct sandbox *b, bool use_memory, uint64_t timeout_ms, sandbox_done done,
                    void *arg);
/* The new end: now + timeout. extend_only: never earlier than it is. */
void sandbox_set_timeout(struct sandbox *b, uint64_t timeout_ms, bool extend_only,
                         sandbox_done done, void *arg);
/* Calls `again` when the transition that is under way is over, or the sandbox has ended; another
 * may have begun by then. The caller holds a reference. */
void sandbox_when_settled(struct sandbox *b, sandbox_done again, void *arg);
/* Tells the warden a changed spec. */
void sandbox_note_changed(struct sandbox *b);
/* layers.c. Keeps the files under `layer` (an id_random name). bytes: how many there are. */
typedef void (*sandbox_saved)(void *arg, int r, const struct sg_error *e, uint64_t bytes);
void sandbox_snapshot(struct sandbox *b, const char *snapshot, bool durable, sandbox_saved done,
                      void *arg);
void sandbox_forget_snapshot(struct front *f, const char *snapshot);
/* Those that an earlier front was killed over. Once, at the start. */
int sandboxes_forget_loose_snapshots(struct front *f, struct sg_error *e);
/* For a request to a port of it: at once if it runs; a paused one is woken if it may be
 * (autoResume); otherwise -ENOENT. */
void sandbox_wake(struct sandbox *b, sandbox_done done, void *arg);
