/* What process.c and start.c share. */
#pragma once

#include "warden/providers/process/process.h"
#include "warden/host/cgroup.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/domain.h"
#include "warden/layers/mounts.h"
#include "warden/host/netpath.h"
#include "inside/stage/stage.h"
#include "warden/layers/layer_stack.h"
#include "warden/layers/template.h"

/* What a slot keeps between the sandboxes it holds: making these again costs more than all the
 * rest. */
struct slot {
    struct cgroup *cgroup;
    int lower;                /* see mounts_open_lower; -1: not yet */
    struct cgroup_stats seen; /* its counters never go back: what was there before */
    struct instance *used_by;
    bool worn; /* has held a sandbox */
    uint64_t rested_ns;
    uint32_t next; /* in its queue */
};

#define SLOT_NONE UINT32_MAX
/* The longest there is first. */
struct slot_queue {
    uint32_t first, last, n;
};

struct provider {
    struct template template;
    struct domain domain;
    struct cgroup_place *place;
    unsigned omit;
    bool account;              /* of processor time */
    struct instance *next;     /* prepared ahead; or NULL */
    struct instance_spec last; /* what was asked for last, if the next can be made like it */
    bool have_last;
    uint32_t n_slots;
    uint64_t kernel_seq;   /* of the last request to the broker; names sandboxes and sets of frozen
                              kernels, too */
    struct instance *home; /* of the zygote; NULL: none */
    struct frozen_kernels_copies *frozen_kernels;
    void (*discard)(void *arg, int mount, const char *dir);
    void *discard_arg;
    struct late late; /* of roots that were made */
    /* Slots without a sandbox; one in which something would not die is in none of these. Haunted:
     * its sandbox has ended, and others still have much of the memory that is charged to its group:
     * while that is so it counts as a place in use, so that a tenant has no more than its places.
     */
    struct slot_queue cold, resting, haunted;
    struct slot slots[];
};

#define TWINS_MAX 128
#define ENDS_MAX  24

struct instance {
    struct provider *provider;
    uint32_t index; /* into slots */
    int channel, pidfd, userns;
    struct scratch *scratch; /* its disk; NULL without `line` */
    char upper[LAYER_NAME];  /* what it writes on, there */
    struct stack *stack;     /* what is mounted below it; NULL: nothing */
    struct stack *same;      /* in its place, next time; NULL: itself */
    struct {
        bool under_way; /* a new root is made, and perhaps sent */
        bool frozen;    /* the old upper layer is part of the new stack */
        char upper[LAYER_NAME];
        struct stack *stack;
    } move;
    int old_root; /* moved from, not sealed yet; -1: none */
    bool shares;  /* memory that is charged to its group may outlive it */
    void *user;
    bool spawning; /* asked for, not answered yet */
    bool frozen;   /* or asked to be */
    bool hunted;   /* to be ended: pid 1 did not die, its whole group has been killed */
    uint32_t pids;
    uint32_t cpus; /* as in struct stage_setup */
    uint64_t disk_bytes;
    int kernel_ends[3]; /* of the kernel that is asked for: control, output, errors */
    struct ends {
        int fds[ENDS_MAX];
        size_t n;
    } kernel_with; /* what goes along with the request for the next, gathered ahead; n 0: nothing */
    uint32_t kernel_doors;          /* of these */
    uint64_t kernel_asked;          /* request; 0: none */
    uint64_t copied_frozen_kernels; /* ... from which, 0: the zygote */
    int32_t copied_was;             /* ... and from which of its kernels */
    bool copied_last;
    /* Kernels that come are kept back until somebody has the sandbox. */
    bool keeps_kernel;
    int kept_kernel; /* pidfd; -1: none */
    int32_t kept_pid;
    uint64_t serial;      /* what the broker knows it by; 0: it does not */
    uint64_t hold_asked;  /* request to hold it, or to let it go; 0: none */
    int twins[TWINS_MAX]; /* pidfds: they must be gone before its groups are used again */
    size_t n_twins;
    struct netpath netpath; /* its way out */
    uint64_t end_deadline_ns;
    struct stage_reply reply; /* as far as it has come */
    size_t reply_len;
};

/* Index 0 of the domain's slots is its own. */
static inline uint32_t slot_number(const struct instance *i)
{
    return i->provider->domain.slots.first + i->index + 1;
}

/* places.c */
void places_init(struct provider *p);
int places_take(struct provider *p, uint32_t *ret, struct sg_error *e);
/* Its sandbox is gone. shares: memory that is charged to its group may have outlived it. */
int places_give(struct provider *p, uint32_t index, bool shares, struct sg_error *e);
/* start.c. Its root as a host id. */
uint32_t instance_first_id(const struct instance *i);
/* The spawner's answer to instance_begin; it must be taken before the next is asked for. */
int instance_await_spawned(struct instance *i, struct sg_error *e);
/* files.c. Lets go of its disk, whose files go with whoever has them last. */
void instance_files_done(struct instance *i);
/* kernels.c. True: none is left. */
bool instance_drop_dead_twins(struct instance *i);
/* Also forgets the kernel that was asked for. */
void instance_kill_twins(struct instance *i);
/* Before i is freed. */
void instance_forget_twins(struct instance *i);

/* kernels.c, for sets of frozen kernels.c and itself. Descriptors beside a request. */
void ends_close(struct ends *s);
struct twin_request;
struct twin_reply;
int broker_send(struct provider *p, const struct twin_request *q, const struct ends *s,
                struct sg_error *e);
int broker_judge(const struct twin_reply *reply, struct sg_error *e);
/* sets of frozen kernels.c. What the broker knows it by. */
uint64_t instance_serial(struct instance *i);
/* What the broker says of sets of frozen kernels. Descriptors that are taken become -1. */
int frozen_kernels_take_held(struct provider *p, const struct twin_reply *reply, int *fds, size_t n,
                             struct kernel_news *ret, struct sg_error *e);
void frozen_kernels_take_still(struct provider *p, const struct twin_reply *reply, int *fds,
                               size_t n, struct kernel_news *ret);
int frozen_kernels_take_went(struct provider *p, const struct twin_reply *reply,
                             struct kernel_news *ret, struct sg_error *e);
void frozen_kernels_take_lost(struct provider *p, uint64_t number, struct kernel_news *ret);
/* The kernel that the last of a set of frozen kernels has become is its own by now. */
void frozen_kernels_used_up(struct provider *p, uint64_t number, int32_t was);
/* All have ended with the broker. */
void frozen_kernels_gone(struct provider *p);
/* Of a sandbox that ends, those that do not outlive it. */
void frozen_kernels_kill_of(struct instance *i);
/* A pidfd of those that are to be waited for, the caller's; or -1. */
int frozen_kernels_wait_for(struct instance *i);
void frozen_kernels_forget(struct instance *i);
/* The sandbox's own word, in the channel. */
int instance_await_reply(struct instance *i, int channel_fd, struct sg_error *e);
