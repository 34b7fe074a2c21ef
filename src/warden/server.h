/* The warden process of a server: what its parts share.
 *
 *   server.c   start, signals, reload, end            front_process.c  the process that speaks HTTP
 *   state.c    the state directory                    guard_process.c  the one all traffic goes
 * through sandbox.c    sandboxes by id, and what they do      orders.c         what the front asks
 * for tenant pool.c     a tenant's domain and pool             child program.c        what front
 * and guard share grave.c    sandboxes that end                     layer.c          snapshots
 *   reactor.c  the event loop                         logfile.c        what is said about it all
 *   heartbeat.c  which process hangs                  faults.c, trouble.c  which failed, and why
 *   helpers.c  and those of a tenant pool                    notify.c         what systemd is told
 *   budget.c   shares of the machine's memory         pressure.c       when it is short
 *
 * One thread; nothing waits. What takes long is done by the kernel (a sandbox that ends), by a
 * child (a snapshot that is written) or in steps (a sandbox that is made). */
#pragma once

#include "wire/guard.h"
#include "wire/warden.h"
#include "lib/settings/settings.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/processes/heartbeat.h"
#include "warden/logfile.h"
#include "warden/memory/budget.h"
#include "warden/memory/pressure.h"
#include "warden/readiness.h"
#include "warden/reactor.h"
#include "warden/state.h"

#define SANDBOX_BUCKETS 4096

#define LISTENERS_MAX 16

struct sandbox;
struct tenant_pool;
struct snapshot;
struct checkpoint;
struct discard;
struct cgroup_place;

/* Certificate chain and key, as the files had them; NULL without TLS. */
struct tls_text {
    char *cert, *key;
    size_t cert_len, key_len;
};
void tls_text_done(struct tls_text *t);

/* Files that settings name, for front and guard; empty if none is named. */
struct extra_text {
    char *roots, *patterns;
    size_t roots_len, patterns_len;
};
void extra_text_done(struct extra_text *t);

#define ENDS_KEPT 256

struct server {
    struct reactor reactor;
    struct settings settings;
    struct state state;
    struct cgroup_place *place; /* the groups of all its sandboxes */
    struct budget budget;
    struct {
        enum pressure_state state;
        struct timer timer;
        uint64_t available, ooms, full_ns;
        uint64_t pools, kernels; /* that were let go, so far */
    } pressure;
    struct logfile log;
    struct child_program front, guard;
    struct child_program dbworker, exporter; /* see workers.h */
    struct heartbeats beats;
    uint64_t faults[PROCESS_MAX_][PROCESS_FAULT_MAX_]; /* see faults.h */
    struct readiness readiness;
    enum egress_path path; /* how sandboxes' connections come to the guard; 0: not at all */
    uint64_t lives;        /* of sandboxes, counted */
    struct sandbox *sandboxes[SANDBOX_BUCKETS];
    struct tenant_pool *tenant_pools;
    struct snapshot *snapshots;
    struct checkpoint *checkpoints;
    struct discard *discards; /* see task.h */
    struct timer discard_timer;
    bool discards_due;
    bool squashing;     /* layers are being merged */
    bool closing;       /* nothing is begun any more */
    size_t n_teardowns; /* sandboxes that have not ended yet */
    int listeners[LISTENERS_MAX];
    size_t n_listeners;
    size_t n_plain_listeners;     /* the others, behind them, are for metrics alone */
    uint64_t made, pooled, ended; /* sandboxes, so far */
    /* The last of them: at[ended % ENDS_KEPT] is next. See sandboxes_tell_ends. */
    struct sandbox_ended ends[ENDS_KEPT];
    struct tls_text tls;
    struct extra_text extra;
};

/* How `sandglass serve` was called; what SIGHUP reads again. */
struct serve_call {
    const char *config;                        /* NULL: SERVE_CONFIG if it is there */
    const char *flags[SETTING_MAX_];           /* as given; NULL: not given */
    bool anew;                                 /* a database that is gone is to be made again */
    const char *front_program, *guard_program; /* unless the settings name others */
};

#define SERVE_CONFIG "/etc/sandglass.conf"

/* config.c. File, environment, flags. */
int serve_settings(const struct serve_call *call, struct settings *ret, struct sg_error *e);
int serve_tls(const struct settings *settings, struct tls_text *ret, struct sg_error *e);
int serve_extra(const struct settings *settings, struct extra_text *ret, struct sg_error *e);
/* The sockets of s->settings.listen, and of metrics_listen. */
int serve_listen(struct server *s, struct sg_error *e);
/* Serves until a signal ends it. Returns the exit status. */
int serve_run(const struct serve_call *call, struct sg_error *e);
