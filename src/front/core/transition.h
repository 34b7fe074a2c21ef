/* Transitions of sandboxes, for lifecycle.c and making.c. */
#pragma once

#include "front/core/lifecycle.h"
#include "front/core/operation.h"

/* One transition under way, and who asked for it. */
struct transition {
    struct sandbox *sandbox;
    sandbox_done done;
    void *arg;
    uint64_t deadline_ns, timeout_ms;
    bool memory; /* with memory: kernels come along, or are kept */
    struct operation operation;
    uint64_t ordered_ns, answered_ns; /* ORDER_CREATE: sent, and answered */
    char snapshot[ID_LEN + 1];        /* CREATE: or "" */
    uint32_t flags;                   /* CREATE */
    bool starts;                      /* CREATE: the template's start command is to run */
    bool again;                       /* it was refused for want of room once */
    unsigned pending;                 /* handing out: orders that are not answered */
    int failed;                       /* and the code of one that was refused */
};

struct transition *transition_new(struct sandbox *b, sandbox_done done, void *arg);
void transition_end(struct transition *t, bool was_busy, int r, const struct sg_error *e);
/* The transition was refused for want of room, which sandboxes that wait have. True: they go, and then
 * `order` is called, to order it once more. */
bool transition_make_room(struct transition *t, const struct sg_error *e, void (*order)(void *t));
int transition_gone(struct sg_error *e); /* the sandbox has ended */
/* Whether one more sandbox of the tenant may run. */
int sandbox_check_room(struct front *f, const char *tenant, struct sg_error *e);
/* Sends the first requests to a new agent, in one write. */
void sandbox_greet(struct sandbox *b);
void sandbox_now_ended(struct sandbox *b);
