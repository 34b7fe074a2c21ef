/* A domain: the user namespace F that owns a run of id slots, the pid namespace W in which its
 * sandboxes live, and the helper processes in them (inside/stage/stage.h, inside/broker/twin.h).
 * Each tenant has its own, so that whatever goes wrong in one domain cannot reach the ids or
 * processes of another. */
#pragma once

#include "lib/base/err.h"
#include "warden/host/child.h"
#include "warden/host/slots.h"

struct domain {
    struct slots slots; /* the first is F's own; each other is for a sandbox */
    int holder_pidfd, holder_sock;
    int spawner_pidfd, spawner_sock;
    int broker_pidfd, broker_sock; /* -1: none */
    int holder_pid;
};

/* Opens the program of the inside, in a memfd. */
int domain_program(struct sg_error *e);
/* Makes a domain with slots for max_sandboxes. */
int domain_open(uint32_t max_sandboxes, struct domain *ret, struct sg_error *e);
/* Opens the domain's user namespace, in which 0 is the first id of its own slot. */
int domain_open_userns(const struct domain *d, struct sg_error *e);
/* Starts the domain's broker (inside/broker/twin.h), which answers on broker_sock. Replaces a
 * broker that has ended. */
int domain_start_broker(struct domain *d, struct sg_error *e);
/* Sends SIGKILL to the helpers. W's first process is among them, so everything in W ends. Does not
 * wait. */
void domain_kill(struct domain *d);
/* Waits for the helpers' end and gives the slots back. The sandboxes' control groups must be gone
 * already. */
void domain_close(struct domain *d);

struct domain_child {
    int pidfd;
    int userns;
};
/* Clones a sandbox for the index-th slot (1..). The clone waits on its end of the channel for a
 * stage_setup. This is done in two halves, begin and finish, so that the caller can work meanwhile;
 * finish must follow before the next begin. */
struct domain_order {
    uint32_t index;
    unsigned omit;
    bool last;      /* no other sandbox will follow */
    int channel_fd; /* the sandbox's end; stays the caller's to close */
    const int *cgroup_fds;
    size_t n_cgroups;
};
int domain_spawn_begin(struct domain *d, const struct domain_order *order, struct sg_error *e);
/* Whether domain_spawn_finish would return without waiting. Answers to heartbeats do not count;
 * they are taken here. */
bool domain_spawn_ready(struct domain *d);
int domain_spawn_finish(struct domain *d, struct domain_child *ret, struct sg_error *e);
