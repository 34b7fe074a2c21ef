/* What the parts of the broker share: see twin.h. */
#pragma once

#include "inside/broker/hold.h"
#include "inside/broker/kernel.h"

#define BROKER_CONTROL_FD 3

struct broker {
    struct zygote zygote;
    struct chute chute;
    uint64_t zygote_seq; /* of the request that is not answered; 0: none */
    struct pair *pairs;
    struct hold *holds;                    /* at most one of a sandbox */
    struct frozen_kernels *frozen_kernels; /* the sandboxes of some of them are held */
    struct seccomp_prog filter;
    int children; /* signalfd */
    int own_pidns;
};

/* Completes the reply to a request, and sends it. */
void broker_answer(const struct twin_request *q, int r, const struct sg_error *e,
                   struct twin_reply *reply, const int *fds, size_t n);

/* broker_fork.c: live fork. */
void broker_hold(struct broker *b, const struct twin_request *q, const int *fds);
void broker_go(struct broker *b, const struct twin_request *q);
void broker_drop(struct broker *b, const struct twin_request *q);
/* A kernel from a set of frozen kernels. */
int broker_make_copy(struct broker *b, const struct twin_request *q, const int *fds,
                     struct kernel *ret, uint64_t *ret_tid, struct sg_error *e);
/* A process that is none of the kernels has ended: true if it was one of a set of frozen kernels.
 */
bool broker_frozen_kernels_lost(struct broker *b, pid_t pid);
/* Lets go what was held too long. */
void broker_look_at_holds(struct broker *b);
uint64_t broker_holds_deadline(const struct broker *b); /* 0: none */
/* A stop that nobody waited for: of one that did not stop in time. It goes on. */
void broker_loose(struct broker *b, pid_t pid, int status);
