/* The warden process of a server: the state that its parts share.
 *
 * The warden has one thread, and that thread never waits. Long work is done by the kernel (ending a
 * sandbox), by a child (writing a snapshot) or in steps (making a sandbox). */
#pragma once

#include "wire/guard.h"
#include "wire/warden.h"
#include "lib/base/map.h"
#include "lib/settings/settings_answer.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/processes/files_worker.h"
#include "warden/processes/heartbeat.h"
#include "warden/logfile.h"
#include "warden/memory/budget.h"
#include "warden/memory/pressure.h"
#include "warden/readiness.h"
#include "lib/loop/loop.h"
#include "warden/host/netpath.h"
#include "warden/host/privileges.h"
#include "warden/state.h"

struct sandbox;
struct tenant_pool;
struct snapshot;
struct checkpoint;
struct cgroup_place;
struct scratch_store;
struct provider_ops;

/* Contents of files that the settings name; NULL where none is named. */
struct serve_texts {
    struct file_text {
        char *text;
        size_t len;
    } cert, key, roots, patterns; /* for the front: the first two are for TLS; and for the guard */
};
void serve_texts_done(struct serve_texts *t);

/* Put together without rights. */
struct prepared {
    struct seccomp_prog filter; /* see privileges.h */
    struct netpath_plan plan;
};

#define ENDS_KEPT 256

struct server {
    struct loop loop;
    const struct provider_ops *provider; /* of its sandboxes */
    struct settings settings;
    struct settings_answer *told; /* the last answer of the child that reads them */
    struct prepared prepared;     /* by the same child, at the start */
    struct state state;
    struct scratch_store *scratch_store; /* where sandboxes have their disks; NULL: in memory */
    struct cgroup_place *place;          /* control groups of all sandboxes of this server */
    struct budget budget;
    struct {
        enum pressure_state state;
        struct loop_timer timer;
        uint64_t available, ooms, full_ns;
        uint64_t pools, kernels; /* pooled sandboxes and kernels given up so far */
    } pressure;
    struct logfile log;
    struct child_program front, guard;
    struct child_program dbworker, exporter; /* see workers.h */
    int journal;                             /* TELL_JOURNAL; -1: there is none yet */
    struct heartbeats beats;
    uint64_t faults[PROCESS_MAX_][PROCESS_FAULT_MAX_]; /* see faults.h */
    struct readiness readiness;
    enum egress_path path; /* how sandboxes' connections come to the guard; 0: not at all */
    uint64_t impossible;   /* events that the table of sandbox_life.c has no cell for: bugs */
    uint64_t lives;        /* numbers instances, for the guard */
    struct map sandboxes;  /* by id */
    struct list tenant_pools, snapshots, checkpoints;
    struct list volumes, volume_helpers; /* see volume.h */
    size_t n_volume_helpers;
    struct list discards, discards_left; /* see discard.h */
    struct files_workers files;
    struct loop_timer discard_timer, discard_again;
    bool discards_due;
    bool squashing;        /* layers are being merged */
    bool closing;          /* the server ends; nothing new is begun */
    struct list teardowns; /* sandboxes that are being ended */
    int listeners[SETTINGS_ADDRESSES_MAX];
    size_t n_listeners;
    size_t n_plain_listeners;     /* those after them serve metrics only */
    uint64_t made, pooled, ended; /* sandboxes, so far */
    /* The latest sandboxes that ended; the next goes to ends[ended % ENDS_KEPT]. See
     * sandboxes_tell_ends. */
    struct sandbox_ended ends[ENDS_KEPT];
    struct serve_texts texts;
};

/* How `sandglass serve` was called. SIGHUP reads the settings again from it. */
struct serve_call {
    struct settings_source settings;           /* config NULL: SERVE_CONFIG if that exists */
    bool anew;                                 /* make a new database if it is gone */
    const char *front_program, *guard_program; /* unless the settings name others */
};

#define SERVE_CONFIG "/etc/sandglass.conf"

/* In config.c. Opens the configuration; path NULL: SERVE_CONFIG, and *ret is -1 if there is none. */
int serve_open_config(const char *path, int *ret, struct sg_error *e);
/* Has a child read the settings. now: those in force, or NULL at the start. The answer is the
 * callback's to free; it may be called before this returns. */
typedef void (*settings_done)(struct server *s, struct settings_answer *a);
void serve_read_settings(struct server *s, const struct serve_call *call,
                         const struct settings *now, settings_done done);
int serve_texts_read(const struct settings *settings, struct serve_texts *ret, struct sg_error *e);
/* Opens the sockets of the first answer. */
int serve_listen(struct server *s, struct sg_error *e);
/* Serves until a signal ends it. Returns the exit status. */
int serve_run(const struct serve_call *call, struct sg_error *e);
