/* The scratch store: a file system of the server's own, on which the disks of sandboxes are.
 *
 * It is a btrfs in a file of the state directory. The file has no name and all its space from the
 * start: so nothing of it is left when the server ends, however it ends, and a host whose disk fills
 * up does not take sandboxes down. Nothing on it outlives the server; snapshots are elsewhere.
 *
 *   STATE/ (a file without a name) <- loop device <- btrfs    s1/1/files  u1 w1 u2 w2 ...    a sandbox's scratch
 *                                                             s1/2/files  u1 w1              its branch's
 *                                                             s2/1/files  u1 w1              another's
 *
 * s1 and s2 are places (scratch_place.h): subvolumes, each with a quota. Every tenant has a quota
 * over all its places, its share. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/list.h"

#define SCRATCH_STORE_AUTO UINT64_MAX

struct scratch_store_spec {
    int dir;        /* the state directory */
    uint64_t bytes; /* wanted, or SCRATCH_STORE_AUTO; it gets half of what is free at most */
    uint32_t maker; /* an id that nobody else has, for the process that makes the file system */
    /* Removes a directory, and all that is in it, some time later. first_id: of its files. */
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    void *discard_arg;
};

struct scratch_store {
    int mount;   /* detached */
    int top;     /* its topmost directory, open */
    int figures; /* its directory in sysfs */
    uint64_t bytes, n_places, n_shares;
    struct list shares;
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    void *discard_arg;
};

/* Makes the scratch store and mounts it. -ENOSPC: too little is free. After an error, sandboxes have their
 * disks in memory. */
int scratch_store_open(const struct scratch_store_spec *spec, struct scratch_store **ret,
                       struct sg_error *e);
/* Its file goes when no sandbox uses it any more. NULL is allowed. */
void scratch_store_close(struct scratch_store *s);

/* The share of a tenant. It is bounded by
 *
 *   the tenant's sandboxes times the largest disk that one of them had,
 *   four fifths of the scratch store, and
 *   four times what is free in it: so others always find some.
 *
 * The last one follows what happens once it is asked to. */
struct scratch_share {
    struct list link;
    struct scratch_store *store;
    uint64_t id;
    char tenant[32];
    uint32_t sandboxes;
    uint64_t most, limit; /* by the first of the bounds, and as it is set; 0: not yet */
    unsigned users;
};
int scratch_share_open(struct scratch_store *s, const char *tenant, uint32_t sandboxes,
                       struct scratch_share **ret, struct sg_error *e);
void scratch_share_release(struct scratch_share *h); /* NULL is allowed */
/* There is a sandbox with such a disk. */
int scratch_share_raise(struct scratch_share *h, uint64_t bytes, struct sg_error *e);
/* Sets the bounds of all shares anew. NULL is allowed. */
void scratch_store_share_out(struct scratch_store *s);

/* For scratch_place.c: quotas, by their numbers. */
int scratch_quota_limit(const struct scratch_store *s, uint64_t id, uint64_t bytes,
                        struct sg_error *e);
int scratch_quota_open_figure(const struct scratch_store *s, uint64_t id, const char *name);
int scratch_quota_used(const struct scratch_store *s, uint64_t id, uint64_t *ret,
                       struct sg_error *e);
