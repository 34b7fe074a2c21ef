/* A domain: the user namespace F that owns a run of id slots, the pid namespace W in which its
 * sandboxes live, and the helper processes in them (stage.h, twin.h). One per tenant: whatever goes
 * wrong in one domain cannot reach the ids or processes of another. */
#pragma once

#include "lib/base/err.h"
#include "warden/host/child.h"
#include "warden/host/slots.h"

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

/* Its helper processes, for who looks whether they live and work. */
enum domain_helper { HELPER_HOLDER, HELPER_SPAWNER, HELPER_BROKER, HELPER_MAX_ };
/* Its process id; 0: there is none. */
int domain_helper_pid(const struct domain *d, enum domain_helper h);
/* Sends it a heartbeat. The broker's answer comes with its others, as news of no kind. */
void domain_beat(struct domain *d, enum domain_helper h);
/* Takes what holder or spawner have answered to heartbeats: whether there was any. Of the spawner's
 * other answers none is taken. */
bool domain_beat_answered(struct domain *d, enum domain_helper h);
/* Kills it (a holder: all of W); or has it go on, if it was stopped. */
void domain_helper_kill(struct domain *d, enum domain_helper h);
void domain_helper_continue(struct domain *d, enum domain_helper h);
/* The holder has ended, or is about to: everything in W ends. */
bool domain_holder_gone(const struct domain *d);
/* It has ended: how. Reaps it. */
void domain_helper_ended(struct domain *d, enum domain_helper h, struct child_exit *ret);

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
/* Whether the second half would not wait. Answers to heartbeats do not count, and are taken. */
bool domain_spawn_ready(struct domain *d);
int domain_spawn_finish(struct domain *d, struct domain_child *ret, struct sg_error *e);
