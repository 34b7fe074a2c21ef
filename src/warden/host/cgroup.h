/* Control groups of a sandbox, v1 and v2 behind one interface chosen at run time.
 *
 *   <hierarchy>/sandglass/<server>/<tenant>/<slot>
 *
 * <slot> is the sandbox's id slot. Its groups are made with the slot and removed when it is given
 * back or swept. v1 groups are reused by the next sandbox in the slot: making and removing memory
 * groups is what grows the kernel's slabs. <server> and <tenant> are a place (cgroup_place.h): they
 * have limits of their own, and the processors are shared out by tenant before they are by sandbox.
 * v1's device rules are the same for all sandboxes: they are those of `sandglass` itself. */
#pragma once

#include <sandglass.h>

#include "lib/base/err.h"

#define CGROUP_FDS_MAX  6
#define CGROUP_TOPS_MAX 6
#define CGROUP_CROWD    32 /* siblings that are many */
#define CGROUP_PATH_MAX 64 /* <server>/<tenant>/<slot> */

struct cgroup;
struct cgroup_place;

struct cgroup_stats {
    uint64_t memory_peak;
    uint64_t oom_kills; /* since the group was made */
    uint64_t pids_hits; /* forks refused by the limit, since the group was made */
};

/* Of this moment. */
struct cgroup_usage {
    uint64_t cpu_usec;                   /* since set_limits; 0 if it is not counted (account) */
    uint64_t memory_bytes, memory_cache; /* all that is charged; of that, files, the disk's too */
    /* Of the cache, what can be taken back at once: files of the disk, and none of a tmpfs. */
    uint64_t memory_reclaimable;
};

struct cgroup_doors {
    int fds[CGROUP_FDS_MAX];
    size_t n;
};
void cgroup_doors_close(struct cgroup_doors *d);

struct cgroup_ops {
    const char *name; /* "v1", "v2" */
    bool reusable;    /* a group can serve one sandbox after the other */
    /* Makes the groups with device rules in place. The limits come later. */
    int (*create)(const char *place, uint32_t slot, struct cgroup **ret, struct sg_error *e);
    /* Descriptors to write "0" to, each of which moves the writer into one hierarchy's group. */
    int (*open_doors)(struct cgroup *c, struct cgroup_doors *ret, struct sg_error *e);
    /* A list of the processes in it, one pid a line, as whoever reads it sees them. */
    int (*open_members)(struct cgroup *c, int *ret, struct sg_error *e);
    int (*set_limits)(struct cgroup *c, const struct sg_limits *l, struct sg_error *e);
    /* Before open_doors, if usage is to tell the processor time too. */
    int (*account)(struct cgroup *c, struct sg_error *e);
    /* Asks for it; frozen() says when it is so. Thawing is done when it returns. */
    int (*freeze)(struct cgroup *c, bool on, struct sg_error *e);
    bool (*frozen)(struct cgroup *c);
    void (*stats)(struct cgroup *c, struct cgroup_stats *ret);
    void (*usage)(struct cgroup *c, struct cgroup_usage *ret);
    /* Whether its own limit of memory, and none above it, stood in the way since the last call. v1
     * tells of a peak alone, also of one that files of the disk made; it begins anew. */
    bool (*was_full)(struct cgroup *c);
    /* What is in it is about to end. Who ends holds locks of the kernel that every mount and every
     * other end wait for: one that gets a hundredth of a processor would hold up all tenants. So
     * among many siblings it weighs as much as all of them, until set_limits. */
    void (*hurry)(struct cgroup *c, uint32_t siblings);
    /* SIGKILL to everything in it, thawed. */
    void (*kill)(struct cgroup *c);
    bool (*empty)(struct cgroup *c);
    /* Removes the groups; they must be empty. Frees c. */
    int (*destroy)(struct cgroup *c, struct sg_error *e);
    /* `sandglass` of each hierarchy that has groups of sandboxes, memory's first, -1 for one that
     * is not there. With `make` they are made, and are the same for all calls: not to be closed. */
    int (*tops)(bool make, int ret[CGROUP_TOPS_MAX], struct sg_error *e);
    /* Of a directory in one hierarchy, left by a crash: kills and thaws. False: nothing was there.
     */
    bool (*strike)(int dir);
    /* Of a place in the hierarchy of memory. */
    int (*hand_down)(int dir, const char *where, struct sg_error *e);
    int (*limit_memory)(int dir, uint64_t bytes);
    void (*memory)(int dir, struct cgroup_usage *ret);
    /* How often the kernel killed because of the limit of this group and no other; *watch is -1 at
     * first, and closed by the caller. */
    uint64_t (*ooms)(int dir, int *watch, uint64_t so_far);
    const char *limit_file;
    /* All `sandglass` groups, if they are empty; with the lock of the one of memory. */
    void (*remove_tops)(void);
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

/* Common head of both implementations. */
struct cgroup {
    const struct cgroup_ops *ops;
};

/* The hierarchy of this host: v1 if memory is a v1 controller, else v2. Found once. */
const struct cgroup_ops *cgroup_host(struct sg_error *e);
int cgroup_create(struct cgroup_place *place, uint32_t slot, struct cgroup **ret,
                  struct sg_error *e);
/* Freezes and waits until it is so. */
int cgroup_freeze(struct cgroup *c, bool on, struct sg_error *e);
/* Shared by the implementations. */
struct cgroup_mount {
    char path[256];
};
/* The mount point of a v1 controller, or of v2 when controller is NULL. -ENOENT if there is none.
 */
int cgroup_find_mount(const char *controller, struct cgroup_mount *ret);
/* Signals every process listed in the file; returns how many there were. */
int cgroup_kill_listed(int dirfd, const char *procs_file);
/* The list of processes of a group, opened for reading. */
int cgroup_open_procs(int dirfd, int *ret, struct sg_error *e);
/* Adds one file of a group, opened for writing. */
int cgroup_doors_add(struct cgroup_doors *d, int dirfd, const char *file, struct sg_error *e);
/* The number after `key ` in a flat-keyed file, or 0. */
uint64_t cgroup_read_key(int dirfd, const char *file, const char *key);
uint64_t cgroup_read_u64(int dirfd, const char *file);
/* The same of several keys: the file is read once. */
void cgroup_read_keys(int dirfd, const char *file, size_t n, const char *const keys[],
                      uint64_t ret[]);
/* <mount>/sandglass of a controller (NULL: v2); -ENOENT if it is not there and not to be made. */
int cgroup_open_top(const char *controller, bool make, struct sg_error *e);
/* Locks a directory for as long as it is open, so that no sweep removes it (cgroup_place.h).
 * -ENOENT: one just has. */
#define CGROUP_TRIES 100
int cgroup_hold(int fd);
/* cgroup_open_top, made and held. */
int cgroup_hold_top(const char *controller, struct sg_error *e);
/* mkdir of a path below a top; whatever is missing above it is made. */
int cgroup_mkdir(int top, const char *path);
/* rmdir of a place in all hierarchies. The directory that the lock is of goes last: whoever waits
 * for it finds that it is gone. False: something is in it. */
bool cgroup_remove_path(const int tops[CGROUP_TOPS_MAX], const char *path);
/* rmdir, retried for a moment while the last process is still leaving. */
int cgroup_rmdir(int parent_fd, const char *name);
