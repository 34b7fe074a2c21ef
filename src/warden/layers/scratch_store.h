/* The scratch store, where the disks of sandboxes are. It is the first of these that can be had
 * (scratch_ops.h):
 *
 *   a directory of the state directory, if that has project quotas;
 *   a file system of the server's own in a file of the state directory: xfs, with project quotas,
 *   or btrfs.
 *
 * The file has no name and all its space from the
 * start: so nothing of it is left when the server ends, however it ends, and a host whose disk fills
 * up does not take sandboxes down. What is in the directory is removed, at the latest when the next server
 * starts. Nothing is needed after the server has ended; snapshots are elsewhere.
 *
 *   STATE/ (a file without a name) <- loop device <- xfs      s1/1/files  u1 w1 u2 w2 ...    a sandbox's scratch
 *                                                             s1/2/files  u1 w1              its branch's
 *                                                             s2/1/files  u1 w1              another's
 *
 * s1 and s2 are places (scratch_place.h): subvolumes, or directories with a project, each with a quota.
 * Every tenant has a limit for all its places together, its share. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/list.h"

struct scratch_ops;

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
    const struct scratch_ops *ops;
    int mount;      /* see attach.h; -1: it is a directory of the state directory */
    int top;        /* its topmost directory, open */
    int figures;    /* btrfs: its directory in sysfs */
    uint32_t maker; /* ids of the server's own: its projects have those after it */
    uint64_t bytes, n_places, n_shares, n_projects;
    struct list shares;
    struct list leaving; /* places that workers empty */
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    void *discard_arg;
};

/* Makes the scratch store and mounts it. -ENOSPC: too little is free. After an error, sandboxes have their
 * disks in memory. */
int scratch_store_open(const struct scratch_store_spec *spec, struct scratch_store **ret,
                       struct sg_error *e);
const char *scratch_store_kind(const struct scratch_store *s); /* for people */
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
    struct list places;
    uint64_t used; /* where the places' limits are lowered instead: at the last look */
    unsigned users;
};
int scratch_share_open(struct scratch_store *s, const char *tenant, uint32_t sandboxes,
                       struct scratch_share **ret, struct sg_error *e);
void scratch_share_release(struct scratch_share *h); /* NULL is allowed */
/* There is a sandbox with such a disk. */
int scratch_share_raise(struct scratch_share *h, uint64_t bytes, struct sg_error *e);
/* Sets the bounds of all shares anew. NULL is allowed. */
void scratch_store_share_out(struct scratch_store *s);
