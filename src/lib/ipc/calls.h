/* Calls over a link (link.h): messages that are answered. */
#pragma once

#include "lib/ipc/link.h"

struct ipc_call {
    uint64_t seq;       /* 0: this place in the table is free */
    void (*done)(void); /* of the type that the owner gave it */
    void *arg;
    uint64_t due_ns; /* clock_ns() */
};

/* Like ipc_link_send; fills in seq. `answer` is called later, unless this fails. */
int ipc_link_call(struct ipc_link *l, const struct ipc_out *out, void (*done)(void), void *arg);
/* When to call ipc_link_expire, by clock_ns(); UINT64_MAX: never. */
uint64_t ipc_link_due(const struct ipc_link *l);
void ipc_link_expire(struct ipc_link *l);
