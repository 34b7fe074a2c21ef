/* Providers: what makes isolated places with a channel to an agent. Nothing above this header knows
 * how isolation is made.
 *
 * A provider is a table: a small core, and capabilities that it may have or not. A capability that
 * is NULL is refused by the code above, never faked. A new provider is a folder of its own and a
 * row in providers.c.
 *
 *   life of an instance:  begin -> starting -> started -> running <-> paused -> end -> gone
 *
 * end kills, thaws, waits, and checks that nothing is left. It is complete, or says why not: an
 * instance that will not die keeps its slot for ever, because its ids must not be reused, and is
 * reported.
 *
 * No call here waits; those of the library do, and are in waiting.h. */
#pragma once

#include <sandglass.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "wire/guard.h"
#include "wire/processes.h"

struct provider;
struct instance;
struct stack;         /* warden/layers/layer_stack.h */
struct scratch_place; /* warden/layers/scratch_place.h */
struct scratch_share; /* warden/layers/scratch_store.h */
struct world_source;  /* warden/layers/world.h */
struct child_exit;
struct provider_ops;

/* Begins each provider's own struct provider and struct instance, whose other members nobody else
 * sees. */
struct provided {
    const struct provider_ops *ops;
    void *user; /* a pointer for the owner; NULL at first */
};
/* clang-format off */
#define PROVIDED(x) /* nothing else has one */ \
    ((struct provided *)_Generic((x), \
        struct provider *: (uintptr_t)(x), const struct provider *: (uintptr_t)(x), \
        struct instance *: (uintptr_t)(x), const struct instance *: (uintptr_t)(x)))
/* clang-format on */
#define OPS(x)  (PROVIDED(x)->ops)
#define USER(x) (PROVIDED(x)->user)

struct provider_setup {
    uint32_t max_instances;
    /* Where the control groups of its instances are: see warden/host/cgroup_place.h. */
    const char *server, *tenant;
    unsigned omit;               /* control builds only, see inside/stage/defences.h */
    bool account;                /* count the processor time of instances */
    struct scratch_share *share; /* where its instances have their disks; NULL: in memory */
    bool strict;                 /* no two instances share a mounted world */
    bool user_marks;             /* overlays keep their marks in user.overlay.*: see wire/files.h */
    /* Removes the files that a freed stack or a dropped root leaves behind, which may take long;
     * or NULL. Files may outlive the provider. */
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    /* Closes a file system that nobody uses any more, with all that the kernel keeps of it, which
     * may take long; or NULL. Takes the mount over. */
    void (*discard_mount)(void *arg, int mount);
    void *discard_arg;
};

struct instance_spec {
    struct sg_limits limits; /* all set */
    const char *hostname;
    const struct sg_mount *mounts;
    size_t n_mounts;
    const char *const *mount_roots; /* NULL-terminated */
    uint32_t mount_owner;           /* the id inside of the sources' owners */
    /* Opens the source of one; first_id is the sandbox's id 0 on the host. */
    int (*open_mount)(const struct instance_spec *spec, size_t which, uint32_t first_id,
                      int *ret_fd, struct sg_error *e);
    /* The agent's socket is not a channel but a line, over which channels are sent: see connect. */
    bool line;
    bool twins; /* and the agent asks for kernels on it */
    /* The world that it gets in place of the host's /usr, or NULL. Only finish reads it. */
    const struct world_source *world;
    /* A directory between the template and the sandbox's own files, with ids 0..65535 on disk, or
     * NULL. Only finish reads it. */
    const int *layer;
};

struct instance_stats {
    uint64_t oom_kills, pids_hits, cpu_usec; /* since creation */
    uint64_t memory_bytes, memory_cache, memory_reclaimable;
    bool was_full; /* of its own memory, since the last call; stats only */
};

/* ---- the core -------------------------------------------------------------------------------- */

enum line_news { LINE_WANTS_KERNEL, LINE_ROOT_DONE, LINE_MOUNT_DONE };

struct provider_ops {
    const char *name;

    /* Says what is in the way of every sandbox on this host, and changes nothing there. 0: it knows
     * of nothing; only `open` can tell that it works. */
    int (*probe)(struct sg_error *e);
    int (*open)(const struct provider_setup *setup, struct provider **ret, struct sg_error *e);
    /* Destroys the instances that are left, all at once. The error tells of the first that would
     * not end. NULL is allowed. */
    int (*close)(struct provider *p, struct sg_error *e);
    /* The memory of all instances together: sets a limit (0: none); how much they use, less what
     * the kernel can take back at once; how often the kernel killed because of that limit, or of
     * one above. */
    int (*limit_memory)(struct provider *p, uint64_t bytes, struct sg_error *e);
    uint64_t (*memory)(const struct provider *p);
    uint64_t (*ooms)(struct provider *p);
    /* Does a small piece of work that was put off; false if there is none. */
    bool (*idle)(struct provider *p);
    /* Frees what one slot keeps for its next sandbox, if it was not used since before_ns; false if
     * there is no such slot. */
    bool (*trim)(struct provider *p, uint64_t before_ns);

    /* In steps:
     *
     *   begin -> fd readable and begun -> finish -> line readable -> started -> running
     *   -> end -> process readable -> ended
     *
     * Between begin and finish no other instance of the provider can be begun. */

    /* Does all of a start that does not depend on whose sandbox it becomes. */
    int (*begin)(struct provider *p, struct instance **ret, struct sg_error *e);
    int (*fd)(const struct provider *p);
    /* Whether finish would return without waiting. True without a start: the provider has failed,
     * and begins no more. */
    bool (*begun)(struct provider *p);
    /* Does the rest of the start. After an error, only `end` may follow. -EPIPE: the provider has
     * failed, and begins no more. */
    int (*finish)(struct instance *i, const struct instance_spec *spec, struct sg_error *e);
    int (*line)(const struct instance *i);
    /* Says whether the sandbox is up, or why not; -EAGAIN: it has not said yet. */
    int (*started)(struct instance *i, struct sg_error *e);
    /* Sends the sandbox its end of a new channel, which replaces the one it had. Does not wait. */
    int (*connect)(struct instance *i, int channel_fd, struct sg_error *e);
    /* Takes one message of the agent when the line of a running sandbox is readable. -EAGAIN: there
     * is no more. Any other error: the message is none that an agent sends. */
    int (*line_take)(struct instance *i, enum line_news *ret, int *ret_code);
    void (*stats)(struct instance *i, struct instance_stats *ret);
    /* Like stats, but with the counts of events at 0: quick enough to be called just before the
     * sandbox is killed. */
    void (*usage)(struct instance *i, struct instance_stats *ret);
    /* Pausing is only asked for; `paused` says when it is done. Going on is done on return. */
    int (*pause)(struct instance *i, bool on, struct sg_error *e);
    bool (*paused)(struct instance *i);
    /* Readable when the sandbox's pid 1 has ended; after that, when another process has ended that
     * must be waited for. -1 before finish. */
    int (*process)(const struct instance *i);
    /* Whether pid 1 has ended by SIGKILL. */
    bool (*was_killed)(const struct instance *i);
    /* Kills the sandbox. Call `ended` when `process` becomes readable, and at end_deadline.
     * siblings: sandboxes of the tenant that may want the processors meanwhile. */
    void (*end)(struct instance *i, uint32_t siblings);
    uint64_t (*end_deadline)(const struct instance *i);
    /* -EAGAIN: the sandbox has not ended yet. Otherwise i has been freed: 0, or an error if the
     * sandbox would not die and its slot is lost. */
    int (*ended)(struct instance *i, struct sg_error *e);

    const struct provider_helpers *helpers;
    const struct provider_network *network;
    const struct provider_kernels *kernels;
    const struct provider_files *files;
    const struct provider_fork *fork; /* with kernels and files only */
    /* Mounts a directory, whose ids 0..65535 are those inside, in a sandbox that is up. Only asks
     * for it: LINE_MOUNT_DONE says how it went, in order. With `line` only. */
    int (*mount)(struct instance *i, int dir, const char *target, bool readonly,
                 struct sg_error *e);
};

/* In providers.c. All providers, the default first; NULL ends them. */
extern const struct provider_ops *const providers[];

/* ---- helper processes ------------------------------------------------------------------------
 *
 * Processes that a provider needs besides its sandboxes, for the code that watches whether they
 * live and work. */

struct provider_helpers {
    /* The helper's process id; 0: there is none. */
    int (*pid)(struct provider *p, enum process h);
    /* Sends the helper a heartbeat. The broker answers among its other news, as news of no kind. */
    void (*beat)(struct provider *p, enum process h);
    /* Whether holder or spawner gave a sign of life. */
    bool (*heard)(struct provider *p, enum process h);
    /* Kills the helper; or continues it, if it was stopped. */
    void (*kill)(struct provider *p, enum process h);
    void (*go_on)(struct provider *p, enum process h);
    /* Whether the holder has ended, or is about to: then every sandbox ends. */
    bool (*holder_gone)(const struct provider *p);
    /* The helper has ended: reaps it, and tells how it ended. */
    void (*ended)(struct provider *p, enum process h, struct child_exit *ret);
};

/* ---- the way out -----------------------------------------------------------------------------
 *
 * Without a way out, a sandbox can reach nothing. With one, all that it sends, to whatever address,
 * arrives at two sockets, which are for the guard (wire/guard.h). */

#define NETWORK_WHY 320

/* The sockets stay the instance's. */
struct network_sockets {
    enum egress_path path;
    int tcp, udp;
};

struct provider_network {
    /* Finds the best path that works on this host; `why` says what is wrong with better ones, or is
     * "". wish: 0, or the only path to try. */
    int (*choose)(enum egress_path wish, enum egress_path *ret, char why[NETWORK_WHY],
                  struct sg_error *e);
    /* Does the larger part of the work, of which the sandbox notices nothing. Does nothing the
     * second time. */
    int (*prepare)(struct instance *i, enum egress_path path, struct sg_error *e);
    bool (*prepared)(const struct instance *i);
    /* Opens the way out, and prepares it if need be; or closes it: then new connections fail at
     * once, and those under way stop. */
    int (*open)(struct instance *i, enum egress_path path, struct sg_error *e);
    int (*close)(struct instance *i, struct sg_error *e);
    void (*sockets)(const struct instance *i, struct network_sockets *ret);
    /* For GUARD_ASK_UDP: returns a socket. */
    int (*udp)(struct instance *i, const struct sockaddr_storage *local,
               const struct sockaddr_storage *peer, struct sg_error *e);
};

/* ---- kernels ---------------------------------------------------------------------------------
 *
 * Warm interpreters for sandboxes (inside/broker/twin.h). The broker, a helper process, copies them
 * from a zygote, one after the other. Only for instances with `line` and `twins` in their spec.
 * None of these calls waits. */

enum kernel_news_kind {
    NEWS_NONE,
    NEWS_ZYGOTE, /* there is a zygote; with an error: there is none (any more) */
    NEWS_KERNEL, /* the agent has its kernel; with an error: it has not */
    NEWS_GONE,   /* the broker has ended, and all frozen kernels with it */
    NEWS_STILL,  /* a sandbox stands still, and its files can be frozen */
    NEWS_HELD,   /* and its kernels were copied; or with -EBUSY it goes on; or they were not, and it
                    stands still if that was said */
    NEWS_WENT,   /* the sandbox goes on */
    NEWS_LOST,   /* a set of frozen kernels has ended */
};
#define NEWS_KERNELS_MAX 64
struct kernel_news {
    enum kernel_news_kind kind;
    struct instance *instance; /* KERNEL, STILL, HELD, WENT: NULL if it has ended meanwhile */
    uint64_t frozen_kernels;   /* HELD, LOST */
    int report;                /* HELD: a memfd, the caller's, or -1 */
    int written; /* STILL, HELD: a memfd, the caller's, or -1: paths of files that kernels have open
                    for writing, each ended by a zero byte. Only a files worker reads it */
    int32_t kernels[NEWS_KERNELS_MAX]; /* HELD: those that were copied */
    size_t n_kernels;
    uint64_t memory_bytes;
    uint32_t held_usec; /* WENT */
};

struct provider_kernels {
    /* Starts the broker, or replaces it. */
    int (*open)(struct provider *p, struct sg_error *e);
    int (*fd)(const struct provider *p);
    /* Takes one piece of news when fd is readable. -EAGAIN: there is no more. */
    int (*take)(struct provider *p, struct kernel_news *ret, struct sg_error *e);
    /* Asks for a zygote, which replaces any other. It sees the files of `home`, a sandbox that
     * nobody else uses. plain: see inside/broker/twin.h. Without it, a host that cannot copy
     * processes answers SG_ERR_UNSUPPORTED. */
    int (*zygote)(struct provider *p, struct instance *home, const char *imports, bool plain,
                  struct sg_error *e);
    /* A zygote for sandboxes with other files than the template's is a frozen kernel (live fork). `load` starts an
     * interpreter in `home`, a sandbox with these files that nobody else uses; NEWS_KERNEL follows, and the agent does
     * not get it. When `loading` is readable `loaded` tells that the interpreter idles, with its pid inside; -EAGAIN:
     * not yet; or why it never will. Whoever has frozen it ends it with `unload`. */
    int (*load)(struct instance *home, const char *imports, struct sg_error *e);
    int (*loading)(const struct instance *home);
    int (*loaded)(struct instance *home, int32_t *ret_was, struct sg_error *e);
    void (*unload)(struct instance *home);
    /* Whether the sandbox has written to what an interpreter of its world consists of. */
    bool (*python_changed)(const struct instance *i);
    /* Asks for a kernel for the sandbox's agent, from the zygote, or from this frozen one. One at a
     * time: -EALREADY. */
    int (*ask)(struct instance *i, uint64_t frozen_kernels, int32_t was, struct sg_error *e);
    /* Tells the agent that it gets no kernel. */
    int (*refuse)(struct instance *i, struct sg_error *e);
    bool (*has)(const struct instance *i); /* or will have */
    /* Whether a kernel was asked for and is not answered yet. */
    bool (*pending)(const struct instance *i);
    /* Opens ahead of time the descriptors that go with the next request for a kernel. */
    int (*gather)(struct instance *i, struct sg_error *e);
    /* For a fork start: a kernel that comes is kept back, without NEWS_KERNEL, until hand_over.
     * That returns 1 if the kernel was there, and the agent has it now; 0: not yet. */
    void (*keep)(struct instance *i);
    int (*hand_over)(struct instance *i, struct sg_error *e);
    /* Asks for a kernel copied from a set of frozen kernels. NEWS_KERNEL follows when the agent has
     * it. One at a time. */
    int (*copy)(struct instance *i, uint64_t frozen_kernels, int32_t was, bool last,
                struct sg_error *e);
};

/* Whether the sandbox has a kernel, or will have; whether one was asked for and has not come yet. */
static inline bool kernel_has(const struct instance *i)
{
    return OPS(i)->kernels && OPS(i)->kernels->has(i);
}

static inline bool kernel_pending(const struct instance *i)
{
    return OPS(i)->kernels && OPS(i)->kernels->pending(i);
}

/* ---- files -----------------------------------------------------------------------------------
 *
 * All that a sandbox has written can be frozen as the topmost layer of a stack
 * (warden/layers/layer_stack.h); the sandbox goes on with an empty layer above, and other sandboxes
 * can have the same stack. Without this capability there are no snapshots. None of these calls
 * waits. */

/* Where the files are that the sandbox has changed: layers of an overlay, bottom first, in each of
 * which first_id is the sandbox's id 0. Valid as long as the sandbox, or the stack. With `line` only. */
#define LAYER_STACK_MAX 64
struct layer_stack_view {
    const struct scratch_place *place; /* that they are in; NULL: none */
    size_t n;
    struct {
        int mount;
        uint32_t first_id;
        const char *dir;
    } v[LAYER_STACK_MAX];
};

struct provider_files {
    void (*layers)(const struct instance *i, struct layer_stack_view *ret);
    void (*layers_of)(const struct stack *s, struct layer_stack_view *ret);
    /* Whether this sandbox's files can be frozen: the host's kernel may lack what that needs. */
    bool (*can_freeze)(const struct instance *i);
    /* Freezes the sandbox's files: its next root will be over its present files. The stack of frozen
     * layers becomes the caller's. 1: nothing was written since the last time, so the sandbox can
     * keep its root. 0: `root` or `moved` follows. */
    int (*freeze)(struct instance *i, struct stack **ret, struct sg_error *e);
    /* The sandbox is to have the files of a stack; `root` or `moved` follows. */
    int (*take)(struct instance *i, const struct stack *s, struct sg_error *e);
    /* The layers of the next root, and last its upper layer, which is empty. Until the root is made,
     * files can be put there. */
    void (*next_layers)(const struct instance *i, struct layer_stack_view *ret);
    /* Makes the next root. layer: as in struct instance_spec. After an error there is none to move
     * to. */
    int (*root)(struct instance *i, const int *layer, int *ret_root, struct sg_error *e);
    /* Sends the agent that root. LINE_ROOT_DONE follows. Takes the descriptor over. */
    int (*root_send)(struct instance *i, int root, bool clear, struct sg_error *e);
    /* Tells whether the sandbox moved to the new root; call it before the next root is made. If it
     * did not move, the new root is dropped. All that stays is the caller's stack, on whose top
     * layer the sandbox still writes. */
    void (*moved)(struct instance *i, bool moved);
    /* Call it after freezing and moving, when everything that runs is in the new root: from now on
     * the kernel itself lets nobody write to the old one. -EBUSY: somebody has a file open there
     * for writing. As long as that is so, the sandbox cannot be frozen again. */
    int (*seal)(struct instance *i, struct sg_error *e);
    /* Replaces the sandbox's stack by one that shows the same files, and takes it over. It counts
     * when the sandbox's root is made next. */
    void (*swap)(struct instance *i, struct stack *s);
    const struct stack *(*stack)(const struct instance *i);
};

/* ---- live fork -------------------------------------------------------------------------------
 *
 * docs/internals/fork.md has the steps. Kernels are copied into sets of frozen kernels, which stand
 * still, and from which kernels are made; they end with the provider. None of these calls waits. */

struct hold_spec {
    const int32_t *kernels; /* pids inside */
    size_t n_kernels;
    bool keep; /* the set stays when the sandbox ends */
};

struct provider_fork {
    /* Holds a sandbox still and copies its kernels into a set of frozen kernels. The caller
     * remembers the number of the set; `drop` ends it. NEWS_STILL and NEWS_HELD follow, then the
     * caller lets the sandbox go on. */
    int (*hold)(struct instance *i, const struct hold_spec *spec, uint64_t *ret_frozen_kernels,
                struct sg_error *e);
    int (*go)(struct instance *i, bool moved, struct sg_error *e);
    void (*drop)(struct provider *p, uint64_t frozen_kernels);
};
