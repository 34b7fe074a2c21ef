/* The process provider: sandboxes made of namespaces, control groups, layers and filters
 * (src/warden).
 *
 * Nothing above this header knows how isolation is made: the code there gets a channel to an agent.
 *
 *   life of an instance:  create -> starting -> await -> running <-> frozen -> destroy -> gone
 *
 * destroy kills, thaws, waits, and checks that the control group is empty. It is complete, or says
 * why not: an instance that will not die keeps its slot for ever, because its ids must not be
 * reused, and is reported.
 *
 * Creating and destroying exist twice: as calls that wait, for the library, and in steps that do
 * not wait, for the server. An owner uses one way or the other. */
#pragma once

#include <sandglass.h>

#include "lib/base/err.h"
#include "wire/guard.h"

struct provider;
struct instance;
struct domain;
struct stack; /* warden/layers/layer_stack.h */

/* Where the control groups of the provider's instances are: see warden/host/cgroup_place.h. */
struct provider_place {
    const char *server, *tenant;
};

/* place NULL: the place of one-shots. omit: control builds only, see inside/stage/defences.h. */
int provider_open(uint32_t max_instances, const struct provider_place *place, unsigned omit,
                  struct provider **ret, struct sg_error *e);
/* Destroys the instances that are left, all at once. The error tells of the first that would not
 * end. NULL is allowed. */
int provider_close(struct provider *p, struct sg_error *e);

struct instance_spec {
    struct sg_limits limits; /* all set */
    const char *hostname;
    const struct sg_mount *mounts;
    size_t n_mounts;
    const char *const *mount_roots; /* NULL-terminated */
    uint32_t mount_owner;           /* the id inside of the sources' owners */
    /* The agent's socket is not a channel but a line, over which channels are sent: see
     * instance_connect. */
    bool line;
    bool twins; /* and the agent asks for kernels on it */
    /* A directory between the template and the sandbox's own files, with ids 0..65535 on disk, or
     * NULL. Only instance_finish reads it. */
    const int *layer;
};

/* Returns while the sandbox is still entering its root. Its channel takes requests from now on;
 * call instance_await before the first answer is read. */
int instance_create(struct provider *p, const struct instance_spec *spec, struct instance **ret,
                    struct sg_error *e);
/* The host's end of the channel. It becomes the caller's; call this once. */
int instance_take_channel(struct instance *i);
/* Says whether the sandbox is up, or why not. */
int instance_await(struct instance *i, int channel_fd, struct sg_error *e);

struct instance_events {
    uint64_t oom_kills, pids_hits; /* since the last call, or since creation */
    uint64_t memory_peak;          /* since creation */
};
void instance_events(struct instance *i, struct instance_events *ret);
int instance_freeze(struct instance *i, bool on, struct sg_error *e);

/* Sends SIGKILL to all processes of the sandbox, and does not wait. instance_destroy must follow,
 * and then has less to wait for. */
void instance_kill(struct instance *i);

/* Frees i in any case. */
int instance_destroy(struct instance *i, struct sg_error *e);

/* ---- in steps --------------------------------------------------------------------------------
 *
 *   instance_begin -> provider_fd readable -> instance_finish -> instance_fd readable ->
 *   instance_started -> running -> instance_end -> instance_pidfd readable -> instance_ended
 *
 * Between begin and finish no other instance of the provider can be begun. */

/* The memory of all instances together: sets a limit (0: none); how much they use, less what the
 * kernel can take back at once; how often the kernel killed because of that limit, or of one
 * above. */
int provider_limit_memory(struct provider *p, uint64_t bytes, struct sg_error *e);
uint64_t provider_memory(const struct provider *p);
uint64_t provider_ooms(struct provider *p);
/* From now on the processor time of instances is counted. */
void provider_account(struct provider *p);
int provider_fd(const struct provider *p);
/* For the code that watches the domain's helper processes (warden/host/domain.h). */
struct domain *provider_domain(struct provider *p);
/* Does a small piece of work that was put off; false if there is none. */
bool provider_idle(struct provider *p);
/* Frees what one slot keeps for its next sandbox, if it was not used since before_ns; false if
 * there is no such slot. */
bool provider_trim(struct provider *p, uint64_t before_ns);

/* Does all of a start that does not depend on whose sandbox it becomes. */
int instance_begin(struct provider *p, struct instance **ret, struct sg_error *e);
/* Does the rest of the start. After an error, only instance_end may follow. */
int instance_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e);
int instance_fd(const struct instance *i);
/* Says whether the sandbox is up, or why not; -EAGAIN: it has not said yet. */
int instance_started(struct instance *i, struct sg_error *e);
/* Sends the sandbox its end of a new channel, which replaces the one it had. Does not wait. */
int instance_connect(struct instance *i, int channel_fd, struct sg_error *e);

struct instance_stats {
    uint64_t oom_kills, pids_hits; /* since creation, if instance_events was never called */
    uint64_t cpu_usec;             /* since creation */
    uint64_t memory_bytes, memory_cache, memory_reclaimable;
    bool was_full; /* of its own memory, since the last call; stats only */
};
void instance_stats(struct instance *i, struct instance_stats *ret);
/* Like instance_stats, but with the counts of events at 0: quick enough to be called just before
 * the sandbox is killed. */
void instance_usage(struct instance *i, struct instance_stats *ret);
/* Freezing is only asked for; instance_frozen says when it is done. Thawing is done on return. */
int instance_freeze_ask(struct instance *i, bool on, struct sg_error *e);
bool instance_frozen(struct instance *i);
/* Where the files are that the sandbox has changed: layers of an overlay, bottom first, in which
 * first_id is the sandbox's id 0. Valid as long as the sandbox, or the stack. With `line` only. */
#define LAYER_STACK_MAX 64
struct layer_stack_view {
    size_t n;
    uint32_t first_id;
    struct {
        int mount;
        const char *dir;
    } v[LAYER_STACK_MAX];
};
void instance_layers(const struct instance *i, struct layer_stack_view *ret);
void stack_layers(const struct stack *s, struct layer_stack_view *ret);

/* Readable when the sandbox's pid 1 has ended; after that, when another process has ended that must
 * be waited for. -1 before instance_finish. */
int instance_pidfd(const struct instance *i);
/* Whether pid 1 has ended by SIGKILL. */
bool instance_was_killed(const struct instance *i);
/* Kills the sandbox. Call instance_ended when instance_pidfd becomes readable, and at
 * instance_end_deadline. siblings: sandboxes of the tenant that may want the processors meanwhile
 * (cgroup.h, hurry). */
void instance_end(struct instance *i, uint32_t siblings);
uint64_t instance_end_deadline(const struct instance *i);
/* -EAGAIN: the sandbox has not ended yet. Otherwise i has been freed: 0, or an error if the sandbox
 * would not die and its slot is lost. */
int instance_ended(struct instance *i, struct sg_error *e);

/* ---- the way out -----------------------------------------------------------------------------
 *
 * Without a way out, a sandbox can reach nothing. With one, all that it sends, to whatever address,
 * arrives at two sockets, which are for the guard (wire/guard.h). */

/* Finds the best path that works on this host; `why` says what is wrong with better ones, or is "".
 * wish: 0, or the only path to try. */
#define NETWORK_WHY 320
int network_choose(enum egress_path wish, enum egress_path *ret, char why[NETWORK_WHY],
                   struct sg_error *e);

/* Does the larger part of the work, of which the sandbox notices nothing. Does nothing the second
 * time. */
int instance_network_prepare(struct instance *i, enum egress_path path, struct sg_error *e);
bool instance_network_prepared(const struct instance *i);
/* Opens the way out, and prepares it if need be; or closes it: then new connections fail at once,
 * and those under way stop. */
int instance_network_open(struct instance *i, enum egress_path path, struct sg_error *e);
int instance_network_close(struct instance *i, struct sg_error *e);
/* The sockets stay the instance's. */
struct network_sockets {
    enum egress_path path;
    int tcp, udp;
};
void instance_network_sockets(const struct instance *i, struct network_sockets *ret);
/* For GUARD_ASK_UDP: returns a socket. */
int instance_network_udp(struct instance *i, const struct sockaddr_storage *local,
                         const struct sockaddr_storage *peer, struct sg_error *e);

/* ---- kernels ---------------------------------------------------------------------------------
 *
 * Warm interpreters for sandboxes (inside/broker/twin.h). The broker, a process of the provider's
 * domain, copies them from a zygote, one after the other. Only for instances with `line` and
 * `twins` in their spec. None of these calls waits. */

/* Starts the broker, or replaces it. */
int provider_kernels_open(struct provider *p, struct sg_error *e);
int provider_kernels_fd(const struct provider *p);
/* Asks for a zygote, which replaces any other. It sees the files of `home`, a sandbox that nobody
 * else uses. plain: see inside/broker/twin.h. Without it, a host that cannot copy processes answers
 * SG_ERR_UNSUPPORTED. */
int provider_zygote_ask(struct provider *p, struct instance *home, const char *imports, bool plain,
                        struct sg_error *e);
/* Asks for a kernel for the sandbox's agent. One at a time: -EALREADY. */
int instance_kernel_ask(struct instance *i, struct sg_error *e);

bool instance_has_kernel(const struct instance *i); /* or will have */
/* Whether a kernel was asked for and is not answered yet. */
bool instance_kernel_pending(const struct instance *i);

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
    int written; /* STILL, HELD: a memfd, the caller's, or -1: see instance_files_freeze */
    int32_t kernels[NEWS_KERNELS_MAX]; /* HELD: those that were copied */
    size_t n_kernels;
    uint64_t memory_bytes;
    uint32_t held_usec; /* WENT */
};
/* Takes one piece of news when provider_kernels_fd is readable. -EAGAIN: there is no more. */
int provider_kernels_take(struct provider *p, struct kernel_news *ret, struct sg_error *e);
/* Takes one message of the agent when instance_fd of a running sandbox is readable. -EAGAIN: there
 * is no more. Any other error: the message is none that an agent sends. */
enum line_news { LINE_WANTS_KERNEL, LINE_ROOT_DONE };
int instance_line_take(struct instance *i, enum line_news *ret, int *ret_code);
/* Tells the agent that it gets no kernel. */
int instance_kernel_refuse(struct instance *i, struct sg_error *e);

/* ---- live fork ---------------------------------------------------------------------------------
 *
 * docs/internals/fork.md has the steps. Files: all that a sandbox has written is frozen as the
 * topmost layer of a stack (warden/layers/layer_stack.h), and the sandbox goes on with an empty
 * layer above; other sandboxes can have the same stack. Kernels: sets of frozen kernels, copies
 * that stand still, from which kernels are made; they end with the provider. None of these calls
 * waits. */

/* Whether this sandbox's files can be frozen: the host's kernel may lack what that needs. */
bool instance_can_freeze(const struct instance *i);
/* Freezes the sandbox's files: makes the root that the sandbox will have, over its present files.
 * The stack of frozen layers becomes the caller's. 0 with *ret_root -1: nothing was written since
 * the last time, so the sandbox can keep its root. layer: as in struct instance_spec. written:
 * paths of files that kernels have open for writing, as NEWS_STILL brings them: these keep their
 * inode numbers. */
int instance_files_freeze(struct instance *i, const int *layer, int written, struct stack **ret,
                          int *ret_root, struct sg_error *e);
/* Makes a root over a stack, for a sandbox that is to have those files. */
int instance_files_take(struct instance *i, const struct stack *s, const int *layer, int written,
                        int *ret_root, struct sg_error *e);
/* Sends the agent the root that one of the two calls above made. LINE_ROOT_DONE follows. Takes the
 * descriptor over. */
int instance_root_send(struct instance *i, int root, bool clear, struct sg_error *e);
/* Tells whether the sandbox moved to the new root; call it before the next root is made. If it did
 * not move, the new root is dropped. All that stays is the caller's stack, on whose top layer the
 * sandbox still writes. */
void instance_files_moved(struct instance *i, bool moved);
/* Call it after freezing and moving, when everything that runs is in the new root: from now on the
 * kernel itself lets nobody write to the old one. -EBUSY: somebody has a file open there for
 * writing. As long as that is so, the sandbox cannot be frozen again. */
int instance_files_seal(struct instance *i, struct sg_error *e);
/* Opens the sandbox's upper layer: a directory, which the caller closes. */
int instance_open_upper(const struct instance *i);
/* Replaces the sandbox's stack by one that shows the same files, and takes it over. It counts when
 * the sandbox's root is made next. */
void instance_files_swap(struct instance *i, struct stack *s);
const struct stack *instance_stack(const struct instance *i);

/* Holds a sandbox still and copies its kernels into a set of frozen kernels. The caller remembers
 * the number of the set; provider_frozen_kernels_drop ends it. kernels: pids inside. keep: the set
 * stays when the sandbox ends. NEWS_STILL and NEWS_HELD follow, then the caller lets the sandbox go
 * on. */
struct hold_spec {
    const int32_t *kernels;
    size_t n_kernels;
    bool keep;
};
int instance_hold(struct instance *i, const struct hold_spec *spec, uint64_t *ret_frozen_kernels,
                  struct sg_error *e);
int instance_go(struct instance *i, bool moved, struct sg_error *e);
/* Asks for a kernel copied from a set of frozen kernels. NEWS_KERNEL follows when the agent has it.
 * One at a time. */
int instance_kernel_copy(struct instance *i, uint64_t frozen_kernels, int32_t was, bool last,
                         struct sg_error *e);
/* Opens ahead of time the descriptors that go with the next request for a kernel. */
int instance_kernel_gather(struct instance *i, struct sg_error *e);
/* For a fork start: a kernel that comes is kept back, without NEWS_KERNEL, until
 * instance_kernel_hand_over. That returns 1 if the kernel was there, and the agent has it now; 0:
 * not yet. */
void instance_kernel_keep(struct instance *i);
int instance_kernel_hand_over(struct instance *i, struct sg_error *e);
void provider_frozen_kernels_drop(struct provider *p, uint64_t frozen_kernels);
/* Sets who removes the files that a freed stack or a dropped root leaves behind: it may take
 * long. */
void provider_discard(struct provider *p, void (*fn)(void *arg, int mount, const char *dir),
                      void *arg);
/* A pointer for the instance's owner; NULL at first. */
void instance_set_user(struct instance *i, void *user);
void *instance_user(const struct instance *i);
