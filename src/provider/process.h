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

#include "base/err.h"
#include "egress/wire.h"

struct provider;
struct instance;

/* omit: control builds only, see warden/stage/layers.h. */
int provider_open(uint32_t max_instances, unsigned omit, struct provider **ret, struct sg_error *e);
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

/* From now on instances have their processor time counted. */
void provider_account(struct provider *p);
int provider_fd(const struct provider *p);
/* Gives back what one unused slot keeps for its next sandbox; false if none keeps anything. */
bool provider_trim(struct provider *p);

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
    uint64_t memory_bytes, memory_cache;
};
void instance_stats(struct instance *i, struct instance_stats *ret);
/* Without what has happened, which is 0: quick enough for the moment before it is killed. */
void instance_usage(struct instance *i, struct instance_stats *ret);
/* Asks for it; instance_frozen says when it is so. Thawing is done when it returns. */
int instance_freeze_ask(struct instance *i, bool on, struct sg_error *e);
bool instance_frozen(struct instance *i);
/* Where the files that the sandbox has changed are: its upper layer, as an overlay has it, with the
 * sandbox's id 0 as *ret_first_id. -1 without `line`. */
int instance_upper(const struct instance *i, uint32_t *ret_first_id);

/* Readable when pid 1 of the sandbox has ended, and after that, when another process that it must
 * be waited for has. -1 before instance_finish. */
int instance_pidfd(const struct instance *i);
/* Kills. Call instance_ended when instance_pidfd becomes readable, and at instance_end_deadline. */
void instance_end(struct instance *i);
uint64_t instance_end_deadline(const struct instance *i);
/* -EAGAIN: not yet. Otherwise i has been freed: 0, or it is lost. */
int instance_ended(struct instance *i, struct sg_error *e);

/* ---- the way out -----------------------------------------------------------------------------
 *
 * A sandbox can reach nothing. With a way out, whatever it sends to anywhere comes to two sockets,
 * which are for the guard (egress/wire.h). */

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
 * Warm interpreters for sandboxes (warden/twin/twin.h), made one after the other by a process of
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
    NEWS_GONE,   /* the process that makes them */
};
struct kernel_news {
    enum kernel_news_kind kind;
    struct instance *instance; /* NEWS_KERNEL: NULL if it has ended meanwhile */
};
/* When provider_kernels_fd is readable: what it says. -EAGAIN: nothing more. */
int provider_kernels_take(struct provider *p, struct kernel_news *ret, struct sg_error *e);
/* When instance_fd of a running sandbox is readable: 0, its agent asks for a kernel; -EAGAIN; else
 * it says what no agent says. */
int instance_kernel_wanted(struct instance *i);
/* Tells its agent that there is none to be had. */
int instance_kernel_refuse(struct instance *i, struct sg_error *e);
