/* Orders: what the front asks of the warden, and what the warden tells the front.
 *
 * One SOCK_SEQPACKET socket carries one struct per message, with descriptors beside it. The front
 * parses text from anybody and has no privilege; the warden is root and reads nothing but these
 * structs. The warden checks every field: a front that was taken over can order what any tenant
 * could, and no more.
 *
 *   front                                  warden
 *         <--- TELL_LISTENER + socket      each socket to accept on
 *         <--- TELL_SETTINGS + memfds      the settings as text (lib/settings/settings.h), patterns
 *         <--- TELL_GUARD + socket         to the guard; TELL_DBWORKER, TELL_EXPORTER: to workers
 *         <--- TELL_TLS + memfd, memfd     certificate chain and key, if there is TLS
 *         <--- TELL_SANDBOX + note, chan   each sandbox that lives (to a front that was restarted)
 *         <--- TELL_READY
 *   ORDER_... (seq) ---------------------> answered by TELL_REPLY with the same seq, in any order
 *         <--- TELL_ENDED, TELL_PAUSED...  events that no order caused
 *   ORDER_READY -------------------------> the front takes connections; not answered
 *         <--- TELL_BEAT                   each second; answered by ORDER_BEAT
 *                                          (warden/processes/heartbeat.h)
 *         <--- TELL_DRAIN                  finish what is under way, then exit
 *
 * The states of a sandbox:
 *
 *              CREATE                        KILL, deadline, its own end
 *   (nothing) --------> running ----------------------------------------> gone (TELL_ENDED)
 *                        ^   | PAUSE, deadline              ^  ^
 *                 RESUME |   v                              |  |
 *                       paused (memory kept, frozen) -------+  |
 *                       stored (files only, no process) -------+
 *
 * A checkpoint is the files and kernels of a running sandbox at one time, under a name like a
 * snapshot's. It goes with its sandbox unless it was made with ORDER_KEEP.
 *
 * A front that dies loses nothing: the warden keeps the deadlines, and the agents keep the
 * processes, until the next front is there. */
#pragma once

#include <sandglass.h>

#include "lib/base/ids.h"
#include "wire/processes.h"

#define ORDER_MAGIC      0x73676f31u /* "sgo1" */
#define ORDER_NOTE_MAX   (1024u * 1024)
#define ORDER_TENANT_LEN 20 /* as ID_LEN: tenant ids look like sandbox ids */

enum order_op {
    /* id, tenant, limits, deadline_ns, on_expiry, snapshot ("": the plain template). Descriptors: a
     * memfd with the note, the front's own description of the sandbox, at most ORDER_NOTE_MAX
     * bytes; the warden keeps the note for the next front and never reads it. With ORDER_NETWORK a
     * second memfd: the policy document for the guard (wire/policy_document.h), which the warden
     * does not read either.
     * A limit of 0 means the server's default. volumes: what is mounted in it, whenever it boots.
     * Reply: the channel. -EEXIST: the id is taken; -EAGAIN: no more room; -ENOENT: no such
     * snapshot, or volume. */
    ORDER_CREATE = 1,
    /* id, and a new note as descriptor. */
    ORDER_NOTE,
    /* id, deadline_ns, on_expiry. The new deadline may lie in the past. */
    ORDER_DEADLINE,
    /* id. Answered when the sandbox is gone; TELL_ENDED comes first. */
    ORDER_KILL,
    /* id, flags: ORDER_FILES_ONLY. Answered when nothing in the sandbox runs any more. The deadline
     * stops.
     * ORDER_FILES_ONLY turns a paused sandbox into a stored one, and its memory is let go.
     * -EALREADY: it is in that state already. */
    ORDER_PAUSE,
    /* id, deadline_ns, on_expiry, limits; flags: ORDER_FILES_ONLY boots the sandbox afresh from its
     * files even if its memory was kept. Reply: a channel if it was booted; without one, the old
     * channel goes on. `state` of the reply is the state before. A limit of 0 stays as it was; new
     * limits count only if the sandbox is booted. -EALREADY: it runs. */
    ORDER_RESUME,
    /* id. Reply: stats. */
    ORDER_STATS,
    /* id, snapshot: keeps the sandbox's files as they are now under that name (20 of [a-z0-9]);
     * flags: with ORDER_DURABLE they survive the server. The sandbox stands still meanwhile. Reply:
     * stats.disk_bytes. -EEXIST: the name is taken; -ENOSPC; -EOPNOTSUPP: the state directory
     * cannot hold any. */
    ORDER_SNAPSHOT,
    /* id; flags: ORDER_NETWORK with a policy document as descriptor, or neither: then nothing goes
     * out. Answered when the guard enforces the policy and has reset the connections that it
     * forbids. -EAGAIN: there is no guard at the moment; the policy is kept, and nothing goes out
     * until there is one. A paused sandbox gets the policy too. */
    ORDER_POLICY,
    /* Live fork (docs/internals/fork.md). id, snapshot, kernels: keeps the files and the kernels as
     * they are now under that name. Descriptor: a note, as with CREATE. Before this order the front
     * makes the agent hold its cells (OP_KERNEL_HOLD). `kernels` are the pids, inside the sandbox,
     * of the kernels to copy. flags: with ORDER_KEEP the checkpoint may outlive the sandbox. Reply:
     * a memfd with the broker's report (inside/broker/twin.h), JSON that the warden never reads;
     * stats.memory_used: what the kernels have in memory, shared at first; paused_usec. -EBUSY:
     * something is in the way, and the report lists what; -EOPNOTSUPP: this host, or this sandbox,
     * cannot; -EEXIST; -ENOMEM. */
    ORDER_CHECKPOINT,
    /* snapshot: a checkpoint. Its files are written to disk under the same name, as by SNAPSHOT
     * with DURABLE, while its sandbox runs on. Reply: stats.disk_bytes. If saving fails, the
     * checkpoint is forgotten. */
    ORDER_SAVE,
    /* id, snapshot: a checkpoint. Every process in the sandbox ends, and the sandbox goes on with
     * the checkpoint's files and kernels. The channel stays. The front then tells the agent to
     * ADOPT the kernels. flags: ORDER_WHOLE. -ENOENT: no such checkpoint, or not this tenant's. */
    ORDER_REWIND,
    /* snapshot: forgets the name of a snapshot or a checkpoint; the files go when no sandbox uses
     * them. -ENOENT. */
    ORDER_FORGET,
    /* What differs between files (wire/files.h, FILES_DIFF): those of the sandbox `id` as they are,
     * or of the snapshot `snapshot` if id is "", against those of the snapshot `against`; "": the
     * template that the first stands on. Descriptor: the list, a memfd, which the warden does not
     * read. -ENOENT; -EXDEV: they stand on different templates. */
    ORDER_DIFF,
    /* The warden's counters. Reply: a memfd with a struct order_figures. */
    ORDER_FIGURES,
    /* Volumes (wire/volume.h): tenant, volumes[0].id. MAKE: an empty one. REMOVE: -EBUSY: a sandbox
     * has it. OPEN: the reply is a connection to its helper. -ENOENT; -EOPNOTSUPP: this host cannot
     * have any. */
    ORDER_VOLUME_MAKE,
    ORDER_VOLUME_REMOVE,
    ORDER_VOLUME_OPEN,
    /* Reply: a socket to a new world builder (wire/world_builder.h), which makes a world. -EAGAIN: too many run;
     * -EOPNOTSUPP. */
    ORDER_WORLD_BUILDER,
    /* against, snapshot: copies the files of the first, a snapshot, to the second, a new name: durable,
     * and without an inode that both have. For a tenant that may use what another has made. flags:
     * none; limits.disk_bytes: the most that the copy may take. Reply: stats.disk_bytes. -ENOENT;
     * -EEXIST; -EAGAIN: too many files are worked on; -EALREADY: `against` is a world, of which each
     * tenant has inodes of its own anyway. */
    ORDER_COPY,
    /* Whether a new sandbox could be handed out now. -EAGAIN, with the reason. */
    ORDER_READINESS,
    /* The warden does not answer these three. READY: the front takes connections. BEAT: it is
     * alive. FAILED: it cannot start, and ends; the message says why. */
    ORDER_READY,
    ORDER_BEAT,
    ORDER_FAILED,
    ORDER_MAX_
};

/* flags */
#define ORDER_FILES_ONLY 1u
#define ORDER_DURABLE    2u
#define ORDER_KERNEL \
    4u                    /* CREATE: a kernel will be wanted: make it while the reply is under
                             * way */
#define ORDER_NETWORK 8u  /* CREATE, POLICY: the sandbox has a way out, to the guard */
#define ORDER_KEEP    16u /* CHECKPOINT */
/* CREATE: the snapshot is a checkpoint, and this sandbox is the last that is made from it. The
 * order forgets the checkpoint's name, even if it fails. */
#define ORDER_LAST 32u
/* CREATE: the snapshot may be a checkpoint whose kernels are to come along. The copies are with the
 * agent when the reply comes, and the front tells the agent to ADOPT them. The reply has
 * TELL_KERNELS if kernels came along. Without this flag, or if the kernels are gone, the new
 * sandbox gets the files only. */
#define ORDER_STATE 64u
/* CREATE with STATE, REWIND: if the checkpoint had kernels, succeed only with them. -EOWNERDEAD:
 * they are gone, and nothing was ended or changed. */
#define ORDER_WHOLE 256u
/* CHECKPOINT: the front will order a sandbox from this checkpoint at once, so the warden makes one
 * ready meanwhile. With ORDER_LAST it will be the only one. */
#define ORDER_SOON 128u

#define ORDER_KERNELS_MAX 64
#define ORDER_VOLUMES_MAX 8
#define ORDER_TARGET_MAX  256

/* A volume of the tenant, and the directory of the sandbox that it is mounted on: an absolute
 * path. The front has checked that it hides nothing that a sandbox needs. */
struct order_volume {
    char id[ID_LEN + 1];
    uint8_t readonly;
    char target[ORDER_TARGET_MAX];
};

enum order_expiry { EXPIRY_KILL, EXPIRY_PAUSE, EXPIRY_PAUSE_FILES, EXPIRY_MAX_ };

struct order {
    uint32_t magic, op;
    uint64_t seq;
    uint32_t flags, on_expiry;
    uint64_t deadline_ns; /* clock_ns(); 0: none */
    struct sg_limits limits;
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1], snapshot[ID_LEN + 1];
    char against[ID_LEN + 1]; /* DIFF, COPY */
    uint32_t n_kernels;       /* CHECKPOINT */
    int32_t kernels[ORDER_KERNELS_MAX];
    uint32_t n_volumes; /* CREATE; VOLUME_...: 1 */
    struct order_volume volumes[ORDER_VOLUMES_MAX];
    char message[256]; /* FAILED */
};

enum order_tell {
    TELL_REPLY = 1,
    TELL_LISTENER,   /* descriptor: listening socket; flags: TELL_TLS_HERE or TELL_METRICS_HERE */
    TELL_SETTINGS,   /* descriptors: memfds: settings, sanitise_patterns (may be empty). Again after
                      * SIGHUP */
    TELL_GUARD,      /* descriptor: socket to the guard (wire/guard.h), again for each new guard */
    TELL_TLS,        /* descriptors: certificate chain, key. Again after SIGHUP */
    TELL_SANDBOX,    /* id, tenant, state, deadline, started, usage; descriptors: note, channel
                      * (unless stored) */
    TELL_CHECKPOINT, /* snapshot, tenant, id ("": its sandbox is gone); flags: TELL_KERNELS;
                      * descriptor: note. After all TELL_SANDBOX */
    TELL_READY,      /* flags: TELL_AGAIN. Before it: TELL_ENDED of the last sandboxes */
    TELL_ENDED,      /* id, tenant, end: why, message: details; usage when the sandbox was let go */
    TELL_PAUSED,     /* id, state: its deadline paused it; usage, as in the reply to PAUSE */
    TELL_KERNELS_LOST,    /* snapshot: a checkpoint whose kernels have ended; its files are there */
    TELL_CHECKPOINT_GONE, /* snapshot: a checkpoint that went with its sandbox */
    TELL_COLD,            /* id, message: why a kernel of Python that its agent wanted is no copy */
    TELL_DRAIN,
    TELL_BEAT,
    /* descriptor: socket to the worker (wire/worker.h); again for each new one */
    TELL_DBWORKER,
    TELL_EXPORTER,
    TELL_MAX_
};

#define TELL_TLS_HERE     1u
#define TELL_KERNELS      2u /* CHECKPOINT, reply to CREATE: its kernels are there */
#define TELL_METRICS_HERE 4u /* metrics_listen: nothing but /metrics, without TLS */
#define TELL_AGAIN        8u /* READY: this server has had a front before */

enum order_state { STATE_RUNNING = 1, STATE_PAUSED, STATE_STORED, STATE_MAX_ };

enum order_end {
    END_KILLED = 1, /* by order */
    END_EXPIRED,    /* its deadline */
    END_DIED,       /* pid 1 ended by itself: code inside, or Linux, killed it */
    END_FAILED,     /* the warden could not go on with it: message */
    END_MEMORY,     /* Linux killed pid 1: the sandbox's memory was full */
    END_TENANT,     /* the same, but its tenant's memory was full */
    END_MACHINE,    /* Linux killed pid 1: the machine was full, not by this sandbox's doing */
    END_MAX_
};

struct order_stats {
    /* Usage. The CPU time is of the sandbox's whole life, boots before included. */
    uint64_t cpu_usec;
    uint64_t memory_used, memory_cache, memory_total;
    /* Since the last boot; ORDER_STATS only. Processes that Linux killed in the sandbox because its
     * own memory was full, its tenant's, or the machine's. */
    uint64_t oom_kills, tenant_kills, machine_kills;
    uint64_t pids_hits;
    uint64_t disk_bytes; /* of a snapshot */
};

/* How long each step of a CREATE took, in microseconds, one after the other; 0: the step was not
 * needed. */
struct order_steps {
    uint32_t take;    /* until a sandbox was there: out of the pool, or made */
    uint32_t files;   /* its root over a snapshot or a checkpoint */
    uint32_t network; /* its way out: routes and sockets, and the guard was told */
    uint32_t kernels; /* copies of a checkpoint's kernels */
    uint32_t pooled;  /* 1: the sandbox waited in the pool */
};

struct order_process {
    uint64_t cpu_usec, resident_bytes, open_fds, max_fds;
    int64_t started_ms; /* wall clock */
};

struct order_figures {
    struct order_process warden;
    uint32_t pool, zygotes, running, paused, stored;
    uint64_t made, pooled, ended; /* sandboxes, so far */
    uint64_t faults[PROCESS_MAX_][PROCESS_FAULT_MAX_];
    /* The machine's memory budget, in bytes, and counters since the start (warden/memory/budget.h,
     * warden/memory/pressure.h). */
    uint64_t memory_limit, memory_reserved, memory_used, memory_available;
    uint64_t pools_let_go, kernels_let_go, creates_refused;
    uint32_t memory_pressure;
};

struct order_answer {
    uint32_t magic, tell;
    uint64_t seq;
    int32_t code;       /* 0 or -errno */
    int32_t error_kind; /* enum sg_error_kind */
    char message[256];
    uint32_t flags, state, end;
    uint32_t paused_usec; /* CHECKPOINT: how long the kernels stood still */
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1], snapshot[ID_LEN + 1];
    uint64_t deadline_ns, started_ns; /* clock_ns() */
    struct order_stats stats;
    struct order_steps steps; /* reply to CREATE */
};
