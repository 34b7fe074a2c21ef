/* The process provider: sandboxes made of namespaces, control groups, layers and filters
 * (src/warden).
 *
 * Nothing above this header knows how isolation is made: it gets a channel to an agent.
 *
 *   life of an instance:  create -> starting -> await -> running <-> frozen -> destroy -> gone
 *   destroy is complete or says why not: kill, thaw, wait, check that the control group is empty.
 * An instance that will not die keeps its slot for ever (its ids must not be reused) and is
 * reported. */
#pragma once

#include <sandglass.h>

#include "base/err.h"

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
