/* The scratch store: a file system of the server's own, on which the disks of sandboxes are.
 *
 * It is a btrfs in a file of the state directory. The file has no name and all its space from the
 * start: so nothing of it is left when the server ends, however it ends, and a host whose disk fills
 * up does not take sandboxes down. Nothing on it outlives the server; snapshots are elsewhere.
 *
 *   STATE/ (a file without a name) <- loop device <- btrfs    s1/files  u1 w1 u2 w2 ...    a sandbox's
 *                                                             s2/files  u1 w1              scratch each
 *
 * A scratch (layer_stack.h) is the directory of a subvolume. Its limit is that of its qgroup, its files have the
 * host's ids, of the slot that wrote them, and it is removed as a whole by a files worker. */
#pragma once

#include "lib/base/err.h"

struct scratch_store;

struct scratch_store_spec {
    int dir;        /* the state directory */
    uint64_t bytes; /* wanted; it gets half of what is free at most */
    uint32_t maker; /* an id that nobody else has, for the process that makes the file system */
};

/* Makes the scratch store and mounts it. -ENOSPC: too little is free. After an error, sandboxes have their
 * disks in memory. */
int scratch_store_open(const struct scratch_store_spec *spec, struct scratch_store **ret,
                       struct sg_error *e);
/* Its file goes when no sandbox uses it any more. NULL is allowed. */
void scratch_store_close(struct scratch_store *s);
uint64_t scratch_store_size(const struct scratch_store *s);
/* Its topmost directory, which stays the scratch store's. */
int scratch_store_top(const struct scratch_store *s);

#define SCRATCH_STORE_NAME 24

/* One scratch. */
struct scratch_store_place {
    uint64_t id;
    char name[SCRATCH_STORE_NAME]; /* in the scratch store's topmost directory, for removal */
};

/* Makes an empty place, and a detached mount of the directory for files in it, which belongs to
 * `owner`. bytes: its limit; 0: none. */
int scratch_store_make(struct scratch_store *s, uint64_t bytes, uint32_t owner,
                       struct scratch_store_place *ret, int *ret_mount, struct sg_error *e);
/* Sets the limit to what is there already and so much more. */
int scratch_store_grow(struct scratch_store *s, const struct scratch_store_place *p, uint64_t bytes,
                       struct sg_error *e);
/* Opens three files with a number each: bytes in use, bytes that are in memory and not on disk yet,
 * and the limit. What was removed counts until the file system has written that down: half a minute,
 * or until the room is needed. */
#define SCRATCH_STORE_FIGURES 3
int scratch_store_open_figures(const struct scratch_store *s, const struct scratch_store_place *p,
                               int ret[SCRATCH_STORE_FIGURES], struct sg_error *e);
