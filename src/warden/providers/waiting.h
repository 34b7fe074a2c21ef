/* Calls of a provider that wait: those of the library. A server waits for nothing, and none of this
 * is part of it. The owner of an instance uses these, or the steps of provider.h. */
#pragma once

#include "warden/providers/provider.h"

struct instance_events {
    uint64_t oom_kills, pids_hits; /* since the last call, or since creation */
    uint64_t memory_peak;          /* since creation */
};

struct provider_waiting {
    const struct provider_ops *ops; /* of the same provider */
    /* Returns while the sandbox is still starting. Its channel takes requests from now on; call
     * `await` before the first answer is read. */
    int (*create)(struct provider *p, const struct instance_spec *spec, struct instance **ret,
                  struct sg_error *e);
    /* The host's end of the channel. It becomes the caller's; call this once. */
    int (*take_channel)(struct instance *i);
    /* Says whether the sandbox is up, or why not. */
    int (*await)(struct instance *i, int channel_fd, struct sg_error *e);
    void (*events)(struct instance *i, struct instance_events *ret);
    int (*pause)(struct instance *i, bool on, struct sg_error *e);
    /* Sends SIGKILL to all processes of the sandbox, and does not wait. destroy must follow, and
     * then has less to wait for. */
    void (*kill)(struct instance *i);
    /* Frees i in any case. */
    int (*destroy)(struct instance *i, struct sg_error *e);
};

/* Those of the library's provider. */
extern const struct provider_waiting provider_waiting;
