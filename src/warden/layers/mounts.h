/* The file systems of one sandbox, as detached mounts that only descriptors refer to. */
#pragma once

#include "lib/base/err.h"
#include "warden/layers/layer_stack.h"
#include "warden/layers/template.h"

struct mounts_spec {
    const struct template *template;
    struct scratch_share *share;      /* for its scratch; NULL: a tmpfs */
    uint64_t disk_bytes, disk_inodes; /* 0: no limit (control builds) */
    bool allow_suid;                  /* control builds */
    /* For mounts_finish: */
    const struct lowers *lowers; /* the slot's */
    int world;                   /* its world, as world_mount made it; -1: the template alone */
    int layer;                   /* a directory over it, ids 0..65535 on disk; -1: none */
    int userns;                  /* of the sandbox */
    uint32_t first_id;           /* its root as a host id, which mounts the overlay */
    bool keep;                   /* the scratch is needed later: only map a clone of it */
    bool user_marks;             /* the overlay's marks are user.overlay.*: see wire/files.h */
    const struct stack *stack;   /* between layer and upper; NULL: none */
    struct late *late;           /* takes mounts to close when there is time; NULL: now */
    /* For mounts_make_root; mounts_finish sets them itself: */
    struct scratch *scratch;
    const char *upper;
};

/* Detached mounts that are no longer needed. They are closed later, because closing one makes the
 * kernel wait for an RCU grace period: up to half a millisecond. */
#define LATE_MAX 256
struct late {
    int fds[LATE_MAX];
    size_t n;
};
/* Takes a mount over; -1 is allowed. If there is no room it is closed now. */
void late_add(struct late *l, int *fd);
/* Closes one mount; false if there is none. */
bool late_close(struct late *l);

/* The lowest layers of a sandbox, with their ids mapped into the range of a slot:
 *
 *   without a world    the template
 *   with one           the fixtures of the template, and below them the world
 *
 * The mounts depend on nothing else, so a slot keeps them for its next sandbox. */
struct lowers {
    int template, world; /* -1: none */
};
#define LOWERS_NONE                 \
    {                               \
        .template = -1, .world = -1 \
    }

/* root is an overlay over the lowest layers. Its upper layer is on scratch, which is the
 * sandbox's disk. usr lies over its /usr: without a world a read-only overlay of the host's /usr;
 * with one the world's own /usr, which makes an overlay's slow search for files unnecessary there,
 * or -1 if the world has no /usr/local. Closing a detached mount makes the kernel wait for an RCU grace period,
 * so close them when there is time. */
struct layers {
    int root, usr;
    struct scratch *scratch;
    char upper[LAYER_NAME]; /* on scratch */
};

#define MOUNTS_NONE           \
    {                         \
        .root = -1, .usr = -1 \
    }

/* Makes the mounts in two halves, since half of the work can be done before the sandbox's user
 * namespace exists. */
int mounts_begin(const struct mounts_spec *spec, struct layers *l, struct sg_error *e);
int mounts_finish(const struct mounts_spec *spec, struct layers *l, struct sg_error *e);
void mounts_close(struct layers *l);
/* Makes a root only, over an upper layer that exists. */
int mounts_make_root(const struct mounts_spec *spec, int *ret, struct sg_error *e);
/* Like err_errno, and adds what the kernel says beyond errno. */
int mounts_mount_error(int fs, struct sg_error *e, const char *what);

/* Makes a read-only clone of a directory, with its ids 0..65535 mapped to those of userns. `name`
 * is for errors. */
int mounts_map_dir(int dir, const char *name, int userns, int *ret, struct sg_error *e);
/* The same, but it can be written. */
int mounts_map_writable(int dir, const char *name, int userns, int *ret, struct sg_error *e);
/* Opens the lowest layers. world: as in struct mounts_spec. userns: any user namespace whose ids
 * 0..65535 are the slot's. */
int mounts_open_lowers(const struct template *t, int world, int userns, struct lowers *ret,
                       struct sg_error *e);
void lowers_close(struct lowers *l);
