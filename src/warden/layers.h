/* The file systems of one sandbox, as detached mounts that only descriptors refer to. */
#pragma once

#include "base/err.h"
#include "warden/template.h"

struct layers_spec {
    const struct template *template;
    int lower;                        /* of the sandbox's slot: see layers_open_lower */
    int userns;                       /* of the sandbox */
    uint32_t first_id;                /* its root as a host id: who the overlay is mounted as */
    uint64_t disk_bytes, disk_inodes; /* 0: no limit (control builds) */
    bool allow_suid;                  /* control builds */
};

/* root is an overlay over the template whose upper layer is a tmpfs, the sandbox's disk; usr is a
 * read-only overlay of the host's /usr. */
struct layers {
    int root, usr;
    int scratch; /* the tmpfs; of no further use, but closing it takes a while: see below */
};

int layers_build(const struct layers_spec *spec, struct layers *ret, struct sg_error *e);
void layers_close(struct layers *l);

/* The template with its ids mapped into the range of a slot. It depends on nothing else, so a slot
 * keeps it for all the sandboxes it will hold: dropping a detached mount makes the kernel wait for
 * an RCU grace period. userns: any user namespace whose ids 0..65535 are the slot's. */
int layers_open_lower(const struct template *t, int userns, int *ret, struct sg_error *e);
