/* The file systems of one sandbox, as detached mounts that only descriptors refer to.
 *
 * Lower layers are clones of the template and of the host's /usr, with their ids mapped into the id
 * range of a slot. They depend on nothing else, so a slot keeps them for all the sandboxes it will
 * hold: dropping a detached mount makes the kernel wait for an RCU grace period. */
#pragma once

#include "base/err.h"
#include "warden/template.h"

struct lower_layers {
    int template, host_usr;
};

#define LOWER_LAYERS_NONE              \
    {                                  \
        .template = -1, .host_usr = -1 \
    }

/* userns: any user namespace whose ids 0..65535 are the slot's. */
int lower_layers_open(const struct template *t, int userns, struct lower_layers *ret,
                      struct sg_error *e);
void lower_layers_close(struct lower_layers *l);

struct layers_spec {
    const struct lower_layers *lower;
    int userns;                       /* of the sandbox */
    uint32_t first_id;                /* its root as a host id: who the overlays are mounted as */
    uint64_t disk_bytes, disk_inodes; /* 0: no limit (control builds) */
    bool allow_suid;                  /* control builds */
};

/* The overlay of the template over the host's /usr. Its upper layer is a tmpfs, which is the
 * sandbox's disk. */
int layers_build(const struct layers_spec *spec, int *ret_overlay, struct sg_error *e);
