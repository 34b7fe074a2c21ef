/* The depot: a file system of the server's own, on which the disks of sandboxes are.
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

struct depot;

struct depot_spec {
    int dir;        /* the state directory */
    uint64_t bytes; /* wanted; it gets half of what is free at most */
    uint32_t maker; /* an id that nobody else has, for the process that makes the file system */
};

/* Makes the depot and mounts it. -ENOSPC: too little is free. After an error, sandboxes have their
 * disks in memory. */
int depot_open(const struct depot_spec *spec, struct depot **ret, struct sg_error *e);
/* Its file goes when no sandbox uses it any more. NULL is allowed. */
void depot_close(struct depot *s);
uint64_t depot_size(const struct depot *s);
/* Its topmost directory, which stays the depot's. */
int depot_top(const struct depot *s);

#define DEPOT_NAME 24

/* One scratch. */
struct depot_place {
    uint64_t id;
    char name[DEPOT_NAME]; /* in the depot's topmost directory, for removal */
};

/* Makes an empty place, and a detached mount of the directory for files in it, which belongs to
 * `owner`. bytes: its limit; 0: none. */
int depot_make(struct depot *s, uint64_t bytes, uint32_t owner, struct depot_place *ret,
               int *ret_mount, struct sg_error *e);
/* Sets the limit to what is there already and so much more. */
int depot_grow(struct depot *s, const struct depot_place *p, uint64_t bytes, struct sg_error *e);
/* Opens three files with a number each: bytes in use, bytes that are in memory and not on disk yet,
 * and the limit. What was removed counts until the file system has written that down: half a minute,
 * or until the room is needed. */
#define DEPOT_FIGURES 3
int depot_open_figures(const struct depot *s, const struct depot_place *p, int ret[DEPOT_FIGURES],
                       struct sg_error *e);
