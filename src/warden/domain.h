/* A domain: the user namespace F that owns a run of id slots, the pid namespace W in which its
 * sandboxes live, and the helper processes in them (stage.h, twin.h). One per tenant: whatever goes
 * wrong in one domain cannot reach the ids or processes of another. */
#pragma once

#include "base/err.h"
#include "warden/slots.h"

struct domain {
    struct slots slots; /* the first is F's own; each further one is for a sandbox */
    int holder_pidfd, holder_sock;
    int spawner_pidfd, spawner_sock;
    int broker_pidfd, broker_sock; /* -1: none */
    int holder_pid;
};

/* Room for max_sandboxes. */
int domain_open(uint32_t max_sandboxes, struct domain *ret, struct sg_error *e);
/* Starts the broker of kernels (twin/twin.h), which answers on broker_sock. One that has ended is
 * replaced. */
int domain_start_broker(struct domain *d, struct sg_error *e);
/* SIGKILL to the helpers, and with W's first process to all in W; nothing is waited for. */
void domain_kill(struct domain *d);
/* Waits for them and gives the slots back. The sandboxes' control groups must be gone already. */
void domain_close(struct domain *d);

struct domain_child {
    int pidfd;
    int userns;
};
/* Clones a sandbox for the index-th slot (1..). It waits on its end of the channel for a
 * stage_setup. In two halves, so that the caller can work meanwhile; the second must follow before
 * the next first. */
struct domain_order {
    uint32_t index;
    unsigned omit;
    bool last;      /* no other will follow */
    int channel_fd; /* the sandbox's end; stays the caller's to close */
    const int *cgroup_fds;
    size_t n_cgroups;
};
int domain_spawn_begin(struct domain *d, const struct domain_order *order, struct sg_error *e);
/* Whether the second half would not wait. */
bool domain_spawn_ready(struct domain *d);
int domain_spawn_finish(struct domain *d, struct domain_child *ret, struct sg_error *e);
