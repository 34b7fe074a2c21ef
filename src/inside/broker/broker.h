/* Shared by the parts of the broker: see twin.h. */
#pragma once

#include "inside/broker/hold.h"
#include "inside/broker/kernel.h"

#define BROKER_CONTROL_FD 3

struct broker {
    struct zygote zygote;
    struct chute chute;
    uint64_t zygote_seq; /* sequence number of the TWIN_ZYGOTE that is not answered yet; 0: none */
    struct list pairs;
    struct list holds;          /* at most one for each sandbox */
    struct list frozen_kernels; /* all sets; the sandboxes of some still stand still */
    struct seccomp_prog filter;
    int children; /* signalfd */
    int own_pidns;
};

/* Completes the reply to a request, and sends it. e: of a negative r. */
void broker_answer(const struct twin_request *q, int r, const struct sg_error *e,
                   struct twin_reply *reply, const int *fds, size_t n);

/* broker_fork.c: live fork. */
void broker_hold(struct broker *b, const struct twin_request *q, const int *fds);
void broker_go(struct broker *b, const struct twin_request *q);
void broker_drop(struct broker *b, const struct twin_request *q);
/* Makes a kernel from a set of frozen kernels. */
int broker_make_copy(struct broker *b, const struct twin_request *q, const int *fds,
                     struct kernel *ret, uint64_t *ret_tid, struct sg_error *e);
/* A process ended that belongs to no pair. Returns true if it was a frozen kernel; its set is then
 * lost. */
bool broker_frozen_kernels_lost(struct broker *b, pid_t pid);
/* Lets sandboxes go on that have stood still for too long. */
void broker_look_at_holds(struct broker *b);
uint64_t broker_holds_deadline(const struct broker *b); /* of the hold that ends first; 0: none */
/* A thread stopped that nobody waits for any more, because it did not stop in time. It goes on. */
void broker_loose(struct broker *b, pid_t pid, int status);
