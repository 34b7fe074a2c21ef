/* The front: the process that speaks HTTP (a child program), and the warden's end of the orders
 * (wire/warden.h).
 *
 * If a server's first fronts all end before they are ready, the server gives up: it has no sandbox
 * to lose. Later it goes on trying, and its sandboxes go on running. An answer to an order of a
 * front that is gone is dropped. */
#pragma once

#include "wire/warden.h"
#include "warden/processes/child_program.h"

/* Which order of which front is to be answered. */
struct ticket {
    uint64_t seq;
    uint32_t turn; /* of the front; 0: no front ordered it */
};

/* Looks up the front's user and program. */
int front_process_init(struct server *s, const char *program, struct sg_error *e);
/* Tells the front to finish; it will not be started again. */
void front_process_drain(struct server *s);

/* Whether the front that gave the order is still there. */
bool ticket_valid(const struct server *s, const struct ticket *t);
/* The descriptors stay the caller's. */
void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds);
/* a may be NULL: the answer is just 0. fd: -1, or one descriptor, which stays the caller's. */
void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd);
void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e);
