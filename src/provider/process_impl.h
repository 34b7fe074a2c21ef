/* What process.c and start.c share. */
#pragma once

#include "provider/process.h"
#include "warden/cgroup.h"
#include "warden/domain.h"
#include "warden/netpath.h"
#include "warden/stage/stage.h"
#include "warden/template.h"

/* What a slot keeps between the sandboxes it holds: making these again costs more than all the
 * rest. */
struct slot {
    struct cgroup *cgroup;
    int lower;                /* see layers_open_lower; -1: not yet */
    struct cgroup_stats seen; /* its counters never go back: what was there before */
    struct instance *used_by;
    bool worn; /* has held a sandbox */
    bool lost; /* something in it would not die */
};

struct provider {
    struct template template;
    struct domain domain;
    unsigned omit;
    bool account;              /* of processor time */
    struct instance *next;     /* prepared ahead; or NULL */
    struct instance_spec last; /* what was asked for last, if the next can be made like it */
    bool have_last;
    uint32_t n_slots;
    uint64_t kernel_seq; /* of the last request to the broker */
    uint32_t rotor; /* where to look for a free slot: round robin rests an id range before reuse */
    struct slot slots[];
};

#define TWINS_MAX 128

struct instance {
    struct provider *provider;
    uint32_t index; /* into slots */
    int channel, pidfd, userns;
    int upper;     /* see instance_upper */
    bool spawning; /* asked for, not answered yet */
    bool frozen;   /* or asked to be */
    bool hunted;   /* to be ended: pid 1 did not die, its whole group has been killed */
    uint32_t pids;
    uint64_t disk_bytes;
    int kernel_ends[3];    /* of the kernel that is asked for: control, output, errors */
    uint64_t kernel_asked; /* request; 0: none */
    int twins[TWINS_MAX];  /* pidfds: they must be gone before its groups are used again */
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

/* start.c. Its root as a host id. */
uint32_t instance_first_id(const struct instance *i);
/* The spawner's answer to instance_begin; it must be taken before the next is asked for. */
int instance_await_spawned(struct instance *i, struct sg_error *e);
/* kernels.c. True: none is left. */
bool instance_drop_dead_twins(struct instance *i);
/* Also forgets the kernel that was asked for. */
void instance_kill_twins(struct instance *i);
/* The sandbox's own word, in the channel. */
int instance_await_reply(struct instance *i, int channel_fd, struct sg_error *e);
