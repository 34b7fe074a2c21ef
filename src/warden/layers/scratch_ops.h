/* What differs between the file systems that the scratch store can be: how a place is made and how its bytes
 * are counted and limited. */
#pragma once

#include "warden/layers/scratch_place.h"
#include "warden/layers/scratch_store.h"

struct scratch_ops {
    const char *name;
    /* Makes the store: mount, if it is a file system of its own, top and bytes. */
    int (*open)(struct scratch_store *s, const struct scratch_store_spec *spec, struct sg_error *e);
    void (*close)(struct scratch_store *s);
    /* Makes a quota over all places of a tenant. NULL: the places' own limits are lowered instead. */
    int (*make_share)(struct scratch_store *s, uint64_t *ret_id, struct sg_error *e);
    /* Makes an empty directory of this name with a quota of its own. */
    int (*make_place)(struct scratch_share *h, const char *name, uint64_t *ret_id,
                      struct sg_error *e);
    int (*limit)(const struct scratch_store *s, uint64_t id, uint64_t bytes, struct sg_error *e);
    int (*used)(const struct scratch_store *s, uint64_t id, uint64_t *ret, struct sg_error *e);
    /* Of a place. NULL: statfs in a sandbox tells of its place alone. */
    int (*open_figures)(const struct scratch_store *s, uint64_t id, int ret[SCRATCH_PLACE_FIGURES],
                        struct sg_error *e);
    bool removes_whole; /* a worker can remove a place at once, whoever owns the files */
};

extern const struct scratch_ops scratch_projects; /* directories of the state directory */
extern const struct scratch_ops scratch_xfs, scratch_btrfs;

/* Takes the places of a server that was killed as they are, to remove them; only for directories that outlive
 * a server. */
int scratch_places_left(struct scratch_store *s, struct sg_error *e);
/* Removes directories of places that workers have emptied. */
void scratch_places_sweep(struct scratch_store *s);
/* Lowers or raises the limit of a place to what its tenant's share has left. */
int scratch_place_hold(struct scratch_place *p, struct sg_error *e);
