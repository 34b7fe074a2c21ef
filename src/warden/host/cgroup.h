/* Control groups of a sandbox: v1 and v2 behind one interface, chosen at run time.
 *
 *   <hierarchy>/sandglass/<server>/<tenant>/<slot>
 *
 * <slot> is the sandbox's id slot. Its groups are made with the slot, and removed when the slot is
 * given back or swept. The next sandbox in the slot reuses v1 groups, because making and removing
 * memory groups grows the kernel's slabs. <server> and <tenant> form a place (cgroup_place.h):
 * these groups have limits of their own, and the processors are shared out among tenants first, and
 * then among the sandboxes of each. Under v1 all sandboxes have the same device rules, those of
 * `sandglass` itself. */
#pragma once

#include <sandglass.h>

#include "lib/base/err.h"

#define CGROUP_FDS_MAX  6
#define CGROUP_TOPS_MAX 6
#define CGROUP_CROWD    32 /* so many siblings are a crowd: see hurry */
#define CGROUP_PATH_MAX 64 /* <server>/<tenant>/<slot> */

struct cgroup;
struct cgroup_place;

struct cgroup_stats {
    uint64_t oom_kills; /* since the group was made */
    uint64_t pids_hits; /* forks refused by the limit, since the group was made */
};

/* Usage at this time. */
struct cgroup_usage {
    uint64_t cpu_usec;                   /* since set_limits; 0 without `account` */
    uint64_t memory_bytes, memory_cache; /* all that is charged; files in it */
    /* The part of the cache that the kernel can take back at once: files of the disk, none of a
     * tmpfs. */
    uint64_t memory_reclaimable;
};

struct cgroup_doors {
    int fds[CGROUP_FDS_MAX];
    size_t n;
};
void cgroup_doors_close(struct cgroup_doors *d);

/* Names and operations that differ between v1 and v2. A group has a directory in each hierarchy.
 * v2 has one hierarchy, which is number 0, as memory's is in v1. */
struct cgroup_ops {
    const char *name; /* "v1", "v2" */
    bool reusable;    /* a group can serve one sandbox after the other */
    const char *const *hierarchies;
    int n_groups;      /* hierarchies in which every group has a directory */
    int pids, freezer; /* their hierarchies */
    const char *limit_file, *usage_file, *peak_file, *oom_file;
    const char *freeze_file, *frozen_text, *thawed_text;
    const char *const *stat_keys; /* cache, inactive and active files */
    /* Puts the device rules in place, if each group has its own; else NULL. */
    int (*prepare)(struct cgroup *c, struct sg_error *e);
    /* Opens one descriptor per hierarchy; whoever writes "0" to it moves itself into the group. */
    int (*open_doors)(struct cgroup *c, struct cgroup_doors *ret, struct sg_error *e);
    int (*set_limits)(struct cgroup *c, const struct sg_limits *l, struct sg_error *e);
    /* Makes usage count processor time too. Call it before open_doors. */
    int (*account)(struct cgroup *c, struct sg_error *e);
    bool (*frozen)(struct cgroup *c);
    void (*usage)(struct cgroup *c, struct cgroup_usage *ret);
    /* Whether the group reached its own memory limit, not one above it, since the last call. v1
     * only knows that the peak reached the limit, even if files of the disk caused it; the call
     * resets the peak. */
    bool (*was_full)(struct cgroup *c);
    /* Speeds up the end of the group's processes. An ending process holds locks of the kernel that
     * every mount and every other ending process wait for; if it got a hundredth of a processor, it
     * would hold up all tenants. So a group among many siblings gets the weight of all of them
     * together, until set_limits. */
    void (*hurry)(struct cgroup *c, uint32_t siblings);
    /* Thaws the group and sends SIGKILL to everything in it. */
    void (*kill)(struct cgroup *c);
    bool (*empty)(struct cgroup *c);
    /* Opens the group `sandglass` of each hierarchy that has groups of sandboxes, memory's first;
     * -1 where there is none. With `make`, missing ones are made, every call returns the same
     * descriptors, and the caller must not close them. */
    int (*tops)(bool make, int ret[CGROUP_TOPS_MAX], struct sg_error *e);
    /* Kills and thaws a group that a crash has left; dir is its directory in one hierarchy. False:
     * nothing was in it. */
    bool (*strike)(int dir);
    /* For a place; dir is its directory in the hierarchy of memory. */
    int (*hand_down)(int dir, const char *where, struct sg_error *e);
    int (*limit_memory)(int dir, uint64_t bytes);
    /* How often the kernel killed because of the limit of this group and no other. *watch is -1 at
     * first; the caller closes it. */
    uint64_t (*ooms)(int dir, int *watch, uint64_t so_far);
    /* Removes all `sandglass` groups, if they are empty, under the lock of memory's. */
    void (*remove_tops)(void);
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

struct cgroup {
    const struct cgroup_ops *ops;
    char path[CGROUP_PATH_MAX]; /* below `sandglass` */
    int dir[CGROUP_TOPS_MAX];   /* in each hierarchy; -1: it has none of its own there */
    bool hurried;               /* v1 */
    uint64_t ooms;              /* v2: kills that was_full knows of */
};

/* The hierarchy of this host: v1 if memory is a v1 controller, else v2. Found once. */
const struct cgroup_ops *cgroup_host(struct sg_error *e);
/* Makes the groups, with device rules in place. set_limits sets the limits later. */
int cgroup_create(struct cgroup_place *place, uint32_t slot, struct cgroup **ret,
                  struct sg_error *e);
/* Opens the list of the group's processes, one pid a line, in the pid namespace of the reader. */
int cgroup_open_members(struct cgroup *c, int *ret, struct sg_error *e);
/* Freezing is only asked for; frozen() says when it is done. Thawing is done on return. */
int cgroup_ask_freeze(struct cgroup *c, bool on, struct sg_error *e);
void cgroup_stats(struct cgroup *c, struct cgroup_stats *ret);
/* Removes the groups; they must be empty. Frees c. */
int cgroup_destroy(struct cgroup *c, struct sg_error *e);
/* Memory of a group; dir is its directory in the hierarchy of memory. */
void cgroup_memory(const struct cgroup_ops *ops, int dir, struct cgroup_usage *ret);

/* ---- shared by the implementations ----------------------------------------------------------- */

int cgroup_open_group(struct cgroup *c, int top, int hierarchy, struct sg_error *e);
int cgroup_not_limited(const struct cgroup *c, int r, struct sg_error *e);
struct cgroup_mount {
    char path[256];
};
/* The mount point of a v1 controller, or of v2 when controller is NULL. -ENOENT if there is none.
 */
int cgroup_find_mount(const char *controller, struct cgroup_mount *ret);
/* Signals every process listed in the file; returns how many there were. */
int cgroup_kill_listed(int dirfd, const char *procs_file);
/* Opens one file of a group for writing, and adds it to the doors. */
int cgroup_doors_add(struct cgroup_doors *d, int dirfd, const char *file, struct sg_error *e);
/* The number after `key ` in a flat-keyed file, or 0. */
uint64_t cgroup_read_key(int dirfd, const char *file, const char *key);
uint64_t cgroup_read_u64(int dirfd, const char *file);
int cgroup_put_u64(int dirfd, const char *file, uint64_t v);
/* The same for several keys: reads the file once. */
void cgroup_read_keys(int dirfd, const char *file, size_t n, const char *const keys[],
                      uint64_t ret[]);
/* Opens <mount>/sandglass of a controller (NULL: v2). -ENOENT: it does not exist, and `make` is
 * false. */
int cgroup_open_top(const char *controller, bool make, struct sg_error *e);
/* Locks a directory for as long as it is open, so that no sweep removes it (cgroup_place.h).
 * -ENOENT: a sweep has just removed it. */
#define CGROUP_TRIES 100
int cgroup_hold(int fd);
/* Like cgroup_open_top with `make`, and locks the directory (cgroup_hold). */
int cgroup_hold_top(const char *controller, struct sg_error *e);
/* Makes a directory below a top, and the missing ones above it. */
int cgroup_mkdir(int top, const char *path);
/* Removes a place from all hierarchies. The directory that carries the lock goes last: whoever
 * waits for the lock then finds the directory gone. False: something is in it. */
bool cgroup_remove_path(const int tops[CGROUP_TOPS_MAX], const char *path);
/* rmdir, retried for a short time while the last process is still leaving. */
int cgroup_rmdir(int parent_fd, const char *name);
