/* A sandbox as the front knows it.
 *
 *              sandbox_create            sandbox_pause, auto-pause
 *   (nothing) ----------------> running --------------------------> paused
 *                               |    ^                            |    |
 *                               |    +------- sandbox_resume -----+    |
 *                               |                                      |
 *                               +--> ended (killed, expired, died) <---+
 *
 * While a transition is under way, `busy` says which one, and the next waits until it is over.
 * Killing never waits.
 *
 * A sandbox is found by tenant and id. One that has ended leaves the table at once; the object
 * lives until the last sandbox_unref. The warden has the truth, and the front a copy: it describes
 * each sandbox to the warden in a note (spec.h), from which a later front makes the object
 * again. */
#pragma once

#include "lib/base/ids.h"
#include "lib/base/map.h"
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
/* BUSY_CHECKPOINT: a checkpoint is being taken, or the sandbox is being rewound. */
enum sandbox_busy { BUSY_NO, BUSY_PAUSING, BUSY_RESUMING, BUSY_SNAPSHOT, BUSY_CHECKPOINT };

struct link;
struct operation;
struct context;
struct replay;
struct taking;

#define COLD_MAX 160

struct sandbox {
    struct front *front;
    char id[ID_LEN + 1];
    struct sandbox_spec spec;
    enum sandbox_state state;
    enum sandbox_busy busy;
    bool stored;          /* paused with its files alone */
    uint64_t held_memory; /* bytes, while paused with its memory */
    uint64_t deadline_ns; /* clock_ns(); 0 while paused */
    uint64_t seen_ns;     /* when this front first knew of it */
    int64_t end_ms;       /* wall clock: when it ends or, if paused, would have ended */
    struct link *link;    /* to the agent; NULL if stored or ended */
    struct sandbox_log log;
    struct sandbox_metrics metrics;
    struct sandbox_usage usage;
    struct watchers *watchers; /* envd's: watches that clients poll; NULL until used */
    void (*watchers_free)(struct watchers *w); /* set together with watchers */
    struct list waiting;                       /* those who wait for a transition to be over */
    struct replay *replay;   /* front/core/replay.h: recorded cells; NULL until used */
    struct taking *taking;   /* checkpoint_take.c's: a checkpoint that waits for a cell, or NULL */
    bool has_copies;         /* it was made with copied kernels, which its agent has */
    char cold[COLD_MAX];     /* why its last kernel of Python that was no copy was none; "" */
    bool closed;             /* cells are replayed in it: nothing goes out, whatever its policy */
    struct context *context; /* front/contexts/: whose sandbox it is, if known */
    const char *conversation, *path; /* of that context; NULL: none */
    struct list
        operations; /* operation.h: cells, programs, tools, agents under way; newest first */
    struct trace_ref last_trace; /* of the last operation */
    uint64_t used_ns;            /* when a client last had a call to its agent */
    unsigned holds;              /* how many callers work in it */
    unsigned refs;
    struct sandbox_end end; /* how it ended */
    struct map_node by_id;
};

struct sandbox *sandbox_ref(struct sandbox *b);
void sandbox_unref(struct sandbox *b);

/* sandboxes.c: the table. */
/* For the control plane: finds a tenant's own sandbox, in any state but ended; NULL otherwise. */
struct sandbox *sandbox_get(struct front *f, const char *tenant, const char *id);
/* For the data plane, where the id and the sandbox's own token give access. */
struct sandbox *sandbox_find(struct front *f, const char *id);
/* All sandboxes. The loop may end the one that it is at. */
#define SANDBOXES_EACH(b, front) MAP_EACH(struct sandbox, b, &(front)->sandboxes, by_id)
size_t sandboxes_count(struct front *f, const char *tenant); /* those that run or start */
/* Whether n more of a tenant's sandboxes may be paused: -EDQUOT if not. Two kinds count towards
 * tenant_paused: sandboxes that are paused, and those that will be paused at their deadline
 * (autoPause). The latter count from their creation on, because a limit that stopped them at their
 * deadline could only end them. */
int sandboxes_check_paused(struct front *f, const char *tenant, size_t n, struct sg_error *e);
/* Whether a tenant's paused sandboxes hold less memory than tenant_paused_memory. How much memory a
 * sandbox will hold is known only when it is paused, so the last one may exceed the limit. */
int sandboxes_check_held(struct front *f, const char *tenant, struct sg_error *e);

/* Whether somebody works in the sandbox or waits for an answer of its agent. */
bool sandbox_in_use(const struct sandbox *b);
/* Whether its agent is gone and the warden has not said yet what became of the sandbox. */
bool sandbox_is_breaking(const struct sandbox *b);

/* Sets the deadline (clock_ns), and the wall-clock time that clients are told for it. */
void sandbox_set_deadline(struct sandbox *b, uint64_t deadline_ns);

/* making.c, lifecycle.c. Each of these calls `done` exactly once, perhaps before it returns. r is 0, or
 * -errno with e filled. The transition goes on even if the client that asked for it is gone. */
typedef void (*sandbox_done)(void *arg, struct sandbox *b, int r, const struct sg_error *e);
/* Makes a sandbox. Takes spec over, and calls sandbox_spec_done on it. `snapshot` is as in struct
 * order (wire/warden.h), or NULL; if that snapshot has kernels, they come along (checkpoint.h). At
 * most tenant_sandboxes of a tenant run at once: -EDQUOT, here and in sandbox_resume. The place is
 * taken before anything else happens. */
void sandbox_create(struct front *f, struct sandbox_spec *spec, const char *snapshot,
                    uint64_t timeout_ms, sandbox_done done, void *arg);
void sandbox_kill(struct sandbox *b, sandbox_done done, void *arg);
/* -EDQUOT: sandboxes_check_paused or, for a pause that keeps the memory, sandboxes_check_held. A
 * sandbox that reaches its deadline and would hold too much memory is paused with its files
 * alone. */
void sandbox_pause(struct sandbox *b, bool keep_memory, sandbox_done done, void *arg);
void sandbox_resume(struct sandbox *b, bool use_memory, uint64_t timeout_ms, sandbox_done done,
                    void *arg);
/* Sets the deadline to now + timeout. extend_only: never to an earlier time than it is. done may be
 * NULL. */
void sandbox_set_timeout(struct sandbox *b, uint64_t timeout_ms, bool extend_only,
                         sandbox_done done, void *arg);
/* Calls `again` when the transition under way is over or the sandbox has ended. The next transition
 * may have begun by then. The caller holds a reference. */
void sandbox_when_settled(struct sandbox *b, sandbox_done again, void *arg);
/* Sends the changed spec to the warden, as the sandbox's note. */
void sandbox_note_changed(struct sandbox *b);
/* layers.c. Saves the files of a sandbox under the name `snapshot` (from id_random). bytes: their
 * size. */
typedef void (*sandbox_saved)(void *arg, int r, const struct sg_error *e, uint64_t bytes);
void sandbox_snapshot(struct sandbox *b, const char *snapshot, bool durable, sandbox_saved done,
                      void *arg);
/* Deletes the files, unless something in the store still names them. */
void sandbox_forget_snapshot(struct front *f, const char *snapshot);
/* Forgets the snapshots that an earlier front was making when it was killed. Called once, at the
 * start. */
int sandboxes_forget_loose_snapshots(struct front *f, struct sg_error *e);
/* Prepares the sandbox for a request to one of its ports. Calls back at once if it runs; wakes a
 * paused sandbox if it may be woken (autoResume); otherwise -ENOENT. */
void sandbox_wake(struct sandbox *b, sandbox_done done, void *arg);
