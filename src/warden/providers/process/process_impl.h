/* Shared by the files of the process provider. */
#pragma once

#include "lib/base/list.h"
#include "warden/providers/process/process.h"
#include "warden/host/cgroup.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/domain.h"
#include "warden/layers/mounts.h"
#include "warden/host/netpath.h"
#include "inside/stage/stage.h"
#include "warden/layers/layer_stack.h"
#include "warden/layers/world.h"
#include "warden/layers/template.h"

/* A slot keeps these from one sandbox to the next: making them again costs more than all the rest
 * of a start. */
struct slot {
    struct cgroup *cgroup;
    struct lowers lowers;     /* LOWERS_NONE: not yet */
    struct world *world;      /* that they are of; NULL: none */
    struct cgroup_stats seen; /* counters at its last sandbox's end: they only grow */
    struct instance *used_by;
    bool worn; /* has held a sandbox */
    uint64_t rested_ns;
    uint32_t next; /* in its queue */
};

#define SLOT_NONE UINT32_MAX
/* The slot that has been in it longest is first. */
struct slot_queue {
    uint32_t first, last, n;
};

/* A world that is mounted. Its users are instances, and slots that keep clones of it. */
struct world {
    struct list link;
    char id[ID_LEN + 1];
    int mount;
    unsigned users;
    uint64_t rested_ns; /* without users: since when */
};

struct provider {
    struct provided head;
    struct template template;
    struct list worlds;
    struct domain domain;
    struct cgroup_place *place;
    unsigned omit;
    bool account;          /* count processor time */
    struct instance *next; /* for waiting.c: prepared ahead, or NULL */
    struct sg_limits last; /* those of the last one, if the next can be made like it */
    bool have_last;
    uint32_t n_slots;
    uint64_t kernel_seq;   /* last request to the broker; numbers sandboxes and frozen kernels */
    struct instance *home; /* of the zygote; NULL: none */
    struct list frozen_kernels; /* of frozen_kernels.c */
    struct scratch_share *share;
    void (*discard)(void *arg, int mount, uint32_t first_id, const char *dir);
    void (*discard_mount)(void *arg, int mount);
    void *discard_arg;
    bool strict;
    bool user_marks;
    struct late late; /* mounts of roots that were made, to close later */
    /* Slots without a sandbox. A slot in which something would not die is in none of these queues.
     * A haunted slot's sandbox has ended, but others still use much of the memory that is charged
     * to its group. While that is so the slot counts as in use, so that a tenant has no more memory
     * than its number of slots allows. */
    struct slot_queue cold, resting, haunted;
    struct slot slots[];
};

#define TWINS_MAX 128
#define ENDS_MAX  24

struct instance {
    struct provided head;
    struct provider *provider;
    uint32_t index; /* into slots */
    int channel, pidfd, userns;
    struct scratch *scratch; /* its disk; NULL without `line` */
    char upper[LAYER_NAME];  /* its upper layer, on scratch */
    struct world *world;     /* NULL: it sees the host's /usr */
    bool bare;               /* with a world: its /usr is written to, and has no cover */
    struct stack *stack;     /* mounted below upper; NULL: nothing */
    struct stack *same;      /* for the next root: instance_files_swap; NULL: stack */
    struct {
        bool under_way; /* a new root is made, and perhaps sent */
        bool frozen;    /* the old upper layer is part of the new stack */
        char upper[LAYER_NAME];
        struct scratch *scratch; /* that it is on: the sandbox's, or one that will be */
        struct stack *stack;
    } move;
    int old_root;  /* the root it moved from, not sealed yet; -1: none */
    bool shares;   /* memory that is charged to its group may outlive it */
    bool spawning; /* the spawner has not answered yet */
    bool frozen;   /* or asked to be */
    bool hunted;   /* pid 1 did not die: its whole group has been killed */
    uint32_t pids;
    uint32_t cpus; /* as in struct stage_setup */
    uint64_t disk_bytes;
    int kernel_ends[3]; /* of the kernel under way: control, output, errors */
    struct ends {
        int fds[ENDS_MAX];
        size_t n;
    } kernel_with; /* descriptors for the next request for a kernel, opened ahead; n 0: none */
    uint32_t kernel_doors;          /* how many of these are doors */
    uint64_t kernel_asked;          /* the request; 0: none */
    uint64_t copied_frozen_kernels; /* the set it copies from; 0: the zygote */
    int32_t copied_was;             /* which kernel of that set */
    bool copied_last;
    /* A kernel that comes is kept back until the sandbox has an owner. */
    bool keeps_kernel;
    bool loads;      /* the kernel that is kept is to be a zygote */
    int kept_kernel; /* pidfd; -1: none */
    int32_t kept_pid;
    uint64_t serial;      /* its number at the broker; 0: unknown there */
    uint64_t hold_asked;  /* request to hold it, or to let it go on; 0: none */
    int twins[TWINS_MAX]; /* pidfds: must end before its groups are used again */
    size_t n_twins;
    struct netpath netpath; /* its way out */
    uint64_t end_deadline_ns;
    struct stage_reply reply; /* the part that has arrived so far */
    size_t reply_len;
};

/* The first of the domain's slots, index 0, is the domain's own. */
static inline uint32_t slot_number(const struct instance *i)
{
    return i->provider->domain.slots.first + i->index + 1;
}

/* places.c */
void places_init(struct provider *p);
int places_take(struct provider *p, uint32_t *ret, struct sg_error *e);
/* The slot's sandbox is gone. shares: memory that is charged to its group may have outlived it. */
int places_give(struct provider *p, uint32_t index, bool shares, struct sg_error *e);
bool places_trim(struct provider *p, uint64_t before_ns);
/* Closes what the slot keeps of the template, or of a world. */
void places_drop_lowers(struct provider *p, struct slot *s);

/* worlds.c */
/* Mounts the world, unless it is mounted already and may be shared. */
int worlds_use(struct provider *p, const struct world_source *from, struct world **ret,
               struct sg_error *e);
void worlds_release(struct world *w); /* NULL is allowed */
/* Drops a world that nobody has used since then; false: there is none. */
bool worlds_trim(struct provider *p, uint64_t before_ns);
void worlds_close(struct provider *p);
/* The capabilities, each in the file of its name; fork is in frozen_kernels.c. */
extern const struct provider_helpers process_helpers;
extern const struct provider_network process_network;
extern const struct provider_kernels process_kernels;
extern const struct provider_files process_files;
extern const struct provider_fork process_fork;
/* Operations of the core that are not in process.c: in probe.c, */
int provider_probe(struct sg_error *e);
/* in start.c, */
int instance_begin(struct provider *p, struct instance **ret, struct sg_error *e);
int instance_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e);
int instance_started(struct instance *i, struct sg_error *e);
int instance_take_reply(struct instance *i, int channel_fd, struct sg_error *e);
/* in steps.c, */
int instance_connect(struct instance *i, int channel_fd, struct sg_error *e);
void instance_usage(struct instance *i, struct instance_stats *ret);
void instance_stats(struct instance *i, struct instance_stats *ret);
int instance_pidfd(const struct instance *i);
bool instance_was_killed(const struct instance *i);
void instance_end(struct instance *i, uint32_t siblings);
int instance_ended(struct instance *i, struct sg_error *e);
/* in process.c, */
int instance_destroy(struct instance *i, struct sg_error *e);
/* in kernels.c. */
int instance_line_take(struct instance *i, enum line_news *ret, int *ret_code);
/* In start.c. The sandbox's root as a host id. */
uint32_t instance_first_id(const struct instance *i);
/* Takes the spawner's answer to instance_begin; call it before the next sandbox is asked for. */
int instance_await_spawned(struct instance *i, struct sg_error *e);
/* In files.c. */
int instance_mount(struct instance *i, int dir, const char *target, bool readonly,
                   struct sg_error *e);
/* In files.c. Releases the sandbox's disk; its files go with their last user. */
void instance_files_done(struct instance *i);
/* In kernels.c. Forgets the sandbox's kernels that have ended; true: none is left. */
bool instance_drop_dead_twins(struct instance *i);
/* Kills the sandbox's kernels, and forgets the one that was asked for. */
void instance_kill_twins(struct instance *i);
/* Call it before i is freed. */
void instance_forget_twins(struct instance *i);

/* In files.c. */
bool instance_python_changed(const struct instance *i);

/* In kernels.c, also for frozen_kernels.c. Closes the descriptors of a request. */
void ends_close(struct ends *s);
struct twin_request;
struct twin_reply;
int broker_send(struct provider *p, const struct twin_request *q, const struct ends *s,
                struct sg_error *e);
int broker_judge(const struct twin_reply *reply, struct sg_error *e);
/* In frozen_kernels.c. The number by which the broker knows the sandbox; gives it one if need
 * be. */
uint64_t instance_serial(struct instance *i);
/* Take the broker's replies about frozen kernels. Descriptors that are taken become -1 in fds. */
int frozen_kernels_take_held(struct provider *p, const struct twin_reply *reply, int *fds, size_t n,
                             struct kernel_news *ret, struct sg_error *e);
void frozen_kernels_take_still(struct provider *p, const struct twin_reply *reply, int *fds,
                               size_t n, struct kernel_news *ret);
int frozen_kernels_take_went(struct provider *p, const struct twin_reply *reply,
                             struct kernel_news *ret, struct sg_error *e);
void frozen_kernels_take_lost(struct provider *p, uint64_t number, struct kernel_news *ret);
/* The frozen kernel `was` of a set has itself become a sandbox's kernel, in place of a last copy:
 * removes it from the set. */
void frozen_kernels_used_up(struct provider *p, uint64_t number, int32_t was);
/* The broker has ended, and all frozen kernels with it. */
void frozen_kernels_gone(struct provider *p);
/* The sandbox ends: kills its frozen kernels, except those that are to outlive it. */
void frozen_kernels_kill_of(struct instance *i);
/* A pidfd, the caller's, of a frozen kernel that must be waited for; or -1. */
int frozen_kernels_wait_for(struct instance *i);
void frozen_kernels_forget(struct instance *i);
