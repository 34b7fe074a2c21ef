/* The process provider: sandboxes made of namespaces, control groups, layers and filters
 * (src/warden).
 *
 * Nothing above this header knows how isolation is made: it gets a channel to an agent.
 *
 *   life of an instance:  create -> starting -> await -> running <-> frozen -> destroy -> gone
 *   destroy is complete or says why not: kill, thaw, wait, check that the control group is empty.
 * An instance that will not die keeps its slot for ever (its ids must not be reused) and is
 * reported.
 *
 * Creating and destroying come twice: as calls that wait, for the library, and in steps that do
 * not, for the server. An owner uses one way or the other. */
#pragma once

#include <sandglass.h>

#include "lib/base/err.h"
#include "wire/guard.h"

struct provider;
struct instance;
struct domain;
struct stack; /* warden/layers/layers.h */

/* Where the control groups of its instances are: names of warden/host/cgroup_place.h. */
struct provider_place {
    const char *server, *tenant;
};

/* place NULL: that of one-shots. omit: control builds only, see inside/stage/defences.h. */
int provider_open(uint32_t max_instances, const struct provider_place *place, unsigned omit,
                  struct provider **ret, struct sg_error *e);
/* Destroys the instances that are left, all at once. Tells of the first that would not go. NULL is
 * allowed. */
int provider_close(struct provider *p, struct sg_error *e);

struct instance_spec {
    struct sg_limits limits; /* all set */
    const char *hostname;
    const struct sg_mount *mounts;
    size_t n_mounts;
    const char *const *mount_roots; /* NULL-terminated */
    uint32_t mount_owner;           /* the id inside that stands for the owners of the sources */
    /* The socket is no channel but a line, over which channels are sent: see instance_connect. */
    bool line;
    bool twins; /* ... and asks for kernels on it */
    /* A directory between the template and the sandbox's own files, with ids 0..65535 on disk, or
     * NULL. It is only read during instance_finish. */
    const int *layer;
};

/* Returns while the sandbox is still entering its root. Its channel takes requests from now on, and
 * instance_await must be called before the first answer is read. */
int instance_create(struct provider *p, const struct instance_spec *spec, struct instance **ret,
                    struct sg_error *e);
/* The host's end of the channel; the caller takes it over, once. */
int instance_take_channel(struct instance *i);
/* Says whether the sandbox is up, or why not. */
int instance_await(struct instance *i, int channel_fd, struct sg_error *e);

struct instance_events {
    uint64_t oom_kills, pids_hits; /* since the last call, or since creation */
    uint64_t memory_peak;          /* since creation */
};
void instance_events(struct instance *i, struct instance_events *ret);
int instance_freeze(struct instance *i, bool on, struct sg_error *e);

/* SIGKILL to all of it, without waiting: instance_destroy, which must follow, then has less to wait
 * for. */
void instance_kill(struct instance *i);

/* Frees i in any case. */
int instance_destroy(struct instance *i, struct sg_error *e);

/* ---- in steps --------------------------------------------------------------------------------
 *
 *   instance_begin -> provider_fd readable -> instance_finish -> instance_fd readable ->
 *   instance_started -> running -> instance_end -> instance_pidfd readable -> instance_ended
 *
 * Between begin and finish no other instance of the provider can be begun. */

/* Of the memory of all instances together: a limit, 0: none; what they have in use, less what can
 * be taken back at once; how often the kernel killed because of that limit, or of one above. */
int provider_limit_memory(struct provider *p, uint64_t bytes, struct sg_error *e);
uint64_t provider_memory(const struct provider *p);
uint64_t provider_ooms(struct provider *p);
/* From now on instances have their processor time counted. */
void provider_account(struct provider *p);
int provider_fd(const struct provider *p);
/* For who looks whether its processes work (warden/host/domain.h). */
struct domain *provider_domain(struct provider *p);
/* A small piece of work that was put off; false if there is none. */
bool provider_idle(struct provider *p);
/* Gives back what one slot keeps for its next sandbox that has not been used since then; false if
 * there is none. */
bool provider_trim(struct provider *p, uint64_t before_ns);

/* All that does not depend on whose sandbox it becomes. */
int instance_begin(struct provider *p, struct instance **ret, struct sg_error *e);
/* All the rest. After an error, only instance_end makes sense. */
int instance_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e);
int instance_fd(const struct instance *i);
/* Says whether the sandbox is up, or why not; -EAGAIN: it has not said yet. */
int instance_started(struct instance *i, struct sg_error *e);
/* Sends the sandbox its end of a new channel; the one it had is over. Does not wait. */
int instance_connect(struct instance *i, int channel_fd, struct sg_error *e);

struct instance_stats {
    uint64_t oom_kills, pids_hits; /* since creation, if instance_events was never called */
    uint64_t cpu_usec;             /* since creation */
    uint64_t memory_bytes, memory_cache, memory_reclaimable;
    bool was_full; /* its own memory, since the last call; instance_stats only */
};
void instance_stats(struct instance *i, struct instance_stats *ret);
/* Without what has happened, which is 0: quick enough for the moment before it is killed. */
void instance_usage(struct instance *i, struct instance_stats *ret);
/* Asks for it; instance_frozen says when it is so. Thawing is done when it returns. */
int instance_freeze_ask(struct instance *i, bool on, struct sg_error *e);
bool instance_frozen(struct instance *i);
/* Where the files that the sandbox has changed are: as overlays have them, bottom first, the
 * sandbox's id 0 being first_id there. Valid as long as the sandbox, or the stack. With `line`
 * only. */
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

/* Readable when pid 1 of the sandbox has ended, and after that, when another process that it must
 * be waited for has. -1 before instance_finish. */
int instance_pidfd(const struct instance *i);
/* Whether pid 1 has ended by SIGKILL. */
bool instance_was_killed(const struct instance *i);
/* Kills. Call instance_ended when instance_pidfd becomes readable, and at instance_end_deadline.
 * siblings: sandboxes of the tenant that may want the processors meanwhile (cgroup.h, hurry). */
void instance_end(struct instance *i, uint32_t siblings);
uint64_t instance_end_deadline(const struct instance *i);
/* -EAGAIN: not yet. Otherwise i has been freed: 0, or it is lost. */
int instance_ended(struct instance *i, struct sg_error *e);

/* ---- the way out -----------------------------------------------------------------------------
 *
 * A sandbox can reach nothing. With a way out, whatever it sends to anywhere comes to two sockets,
 * which are for the guard (wire/guard.h). */

/* Which way this host offers; `why` says what is wrong with better ones, or is "". wish: 0, or the
 * only one that will do. */
#define NETWORK_WHY 320
int network_choose(enum egress_path wish, enum egress_path *ret, char why[NETWORK_WHY],
                   struct sg_error *e);

/* The larger part of the work, and nothing that the sandbox notices. Nothing if it was done. */
int instance_network_prepare(struct instance *i, enum egress_path path, struct sg_error *e);
bool instance_network_prepared(const struct instance *i);
/* Opens it, which prepares it, or closes it: then connecting fails at once, and nothing that is
 * under way goes on. */
int instance_network_open(struct instance *i, enum egress_path path, struct sg_error *e);
int instance_network_close(struct instance *i, struct sg_error *e);
/* They stay the instance's. */
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
 * Warm interpreters for sandboxes (inside/broker/twin.h), made one after the other by a process of
 * the provider's, from a zygote. With `line` and `twins` in their spec only. None of this waits. */

/* Starts that process, or another in its place. */
int provider_kernels_open(struct provider *p, struct sg_error *e);
int provider_kernels_fd(const struct provider *p);
/* A zygote, to replace any other. It sees the files of `home`, a sandbox that nobody else uses.
 * plain: see twin.h. Without, a host that cannot do it answers SG_ERR_UNSUPPORTED. */
int provider_zygote_ask(struct provider *p, struct instance *home, const char *imports, bool plain,
                        struct sg_error *e);
/* A kernel for the sandbox's agent. One at a time; -EALREADY. */
int instance_kernel_ask(struct instance *i, struct sg_error *e);

bool instance_has_kernel(const struct instance *i); /* or will have */
/* Asked for and not answered. */
bool instance_kernel_pending(const struct instance *i);

enum kernel_news_kind {
    NEWS_NONE,
    NEWS_ZYGOTE, /* there is one now; or with an error, there is none (any more) */
    NEWS_KERNEL, /* the sandbox's agent has it; or with an error, it has not */
    NEWS_GONE,   /* the process that makes them; all sets of frozen kernels are gone too */
    NEWS_STILL,  /* a sandbox stands still, and nothing is in the way: its files can be frozen */
    NEWS_HELD,   /* and its kernels were copied; or with -EBUSY it goes on; or they were not, and it
                    stands still if that was said */
    NEWS_WENT,   /* it goes on */
    NEWS_LOST,   /* a set of frozen kernels has ended */
};
#define NEWS_KERNELS_MAX 64
struct kernel_news {
    enum kernel_news_kind kind;
    struct instance *instance; /* KERNEL, STILL, HELD, WENT: NULL if it has ended meanwhile */
    uint64_t frozen_kernels;   /* HELD, LOST */
    int report;                /* HELD: a memfd, the caller's, or -1 */
    int written; /* STILL, HELD: a memfd, the caller's, or -1: see instance_files_freeze */
    int32_t kernels[NEWS_KERNELS_MAX]; /* HELD: that were copied */
    size_t n_kernels;
    uint64_t memory_bytes;
    uint32_t held_usec; /* WENT */
};
/* When provider_kernels_fd is readable: what it says. -EAGAIN: nothing more. */
int provider_kernels_take(struct provider *p, struct kernel_news *ret, struct sg_error *e);
/* When instance_fd of a running sandbox is readable: what its agent says. -EAGAIN: nothing more;
 * else it says what no agent says. */
enum line_news { LINE_WANTS_KERNEL, LINE_ROOT_DONE };
int instance_line_take(struct instance *i, enum line_news *ret, int *ret_code);
/* Tells its agent that there is none to be had. */
int instance_kernel_refuse(struct instance *i, struct sg_error *e);

/* ---- live fork ---------------------------------------------------------------------------------
 *
 * docs/internals/fork.md has the steps. Files: what a sandbox has written is frozen as the topmost
 * of a stack of layers (warden/layers/layers.h), and it goes on with an empty layer over them;
 * others can have the same stack. Kernels: sets of frozen kernels, copies that stand still, from
 * which kernels are made; they go with the provider. None of this waits. */

/* Whether this sandbox's files can be frozen: the host's kernel has what it takes. */
bool instance_can_freeze(const struct instance *i);
/* Freezing: makes the root that the sandbox will have, over what it has now. 0 with *ret_root -1:
 * nothing was written since the last time, so it can stay where it is. The stack is what is frozen,
 * and the caller's. layer as in struct instance_spec. written: paths of files that kernels have
 * open for writing, as NEWS_STILL brings them: they keep their inode numbers. */
int instance_files_freeze(struct instance *i, const int *layer, int written, struct stack **ret,
                          int *ret_root, struct sg_error *e);
/* A root over a stack, for a sandbox that is to have those files. */
int instance_files_take(struct instance *i, const struct stack *s, const int *layer, int written,
                        int *ret_root, struct sg_error *e);
/* Sends the agent the root that one of these made. LINE_ROOT_DONE follows. Takes the descriptor
 * over. */
int instance_root_send(struct instance *i, int root, bool clear, struct sg_error *e);
/* What came of it. It has to be told before the next; of one that did not move, nothing is left but
 * the caller's stack, whose top it writes on. */
void instance_files_moved(struct instance *i, bool moved);
/* After freezing and moving, when all that runs is in the new root: from now on the kernel itself
 * lets nobody write to the old. -EBUSY: somebody has a file open there for writing. As long as that
 * is so it cannot be frozen again. */
int instance_files_seal(struct instance *i, struct sg_error *e);
/* What it writes on: a directory, the caller's to close. */
int instance_open_upper(const struct instance *i);
/* In place of the stack it has, one that shows the same, taken over: counts when its root is made
 * next. */
void instance_files_swap(struct instance *i, struct stack *s);
const struct stack *instance_stack(const struct instance *i);

/* The set of frozen kernels's number is the caller's to remember; provider_frozen_kernels_drop ends
 * it. kernels: pids inside. keep: the sets of frozen kernels stay when the sandbox ends. NEWS_STILL
 * and NEWS_HELD follow, then the caller says go on. */
struct hold_spec {
    const int32_t *kernels;
    size_t n_kernels;
    bool keep;
};
int instance_hold(struct instance *i, const struct hold_spec *spec, uint64_t *ret_frozen_kernels,
                  struct sg_error *e);
int instance_go(struct instance *i, bool moved, struct sg_error *e);
/* A kernel from a set of frozen kernels. NEWS_KERNEL follows, when the agent has it. One at a time.
 */
int instance_kernel_copy(struct instance *i, uint64_t frozen_kernels, int32_t was, bool last,
                         struct sg_error *e);
/* What goes along with the next request for a kernel is there already when it comes. */
int instance_kernel_gather(struct instance *i, struct sg_error *e);
/* For a sandbox that nobody has yet: a kernel that comes is kept back, and there is no NEWS_KERNEL,
 * until instance_kernel_hand_over. That returns 1 if it was there: the agent has it now; 0: not
 * yet. */
void instance_kernel_keep(struct instance *i);
int instance_kernel_hand_over(struct instance *i, struct sg_error *e);
void provider_frozen_kernels_drop(struct provider *p, uint64_t frozen_kernels);
/* Where what a freed stack or a dropped root leaves is removed from: it may take long. */
void provider_discard(struct provider *p, void (*fn)(void *arg, int mount, const char *dir),
                      void *arg);
/* The owner's own, and NULL at first. */
void instance_set_user(struct instance *i, void *user);
void *instance_user(const struct instance *i);
