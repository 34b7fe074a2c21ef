/* The front: the process that speaks HTTP (a child program), and our end of the orders
 * (wire/warden.h).
 *
 * A server whose first fronts all end before they are ready gives up: it has no sandbox to lose.
 * Later it goes on trying, and what runs goes on. An answer to an order of one that is gone is
 * dropped. */
#pragma once

#include "wire/warden.h"
#include "warden/processes/child_program.h"

/* Who asked, and for what. */
struct ticket {
    uint64_t seq;
    uint32_t turn; /* of the front; 0: nobody, it happened by itself */
};

/* Finds user and program. */
int front_process_init(struct server *s, const char *program, struct sg_error *e);
/* Tells it to finish; it is not started again. */
void front_process_drain(struct server *s);

/* Whether an answer would still reach the one who asked. */
bool ticket_valid(const struct server *s, const struct ticket *t);
/* The descriptors stay the caller's. */
void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds);
/* a may be NULL: just 0. fd: -1 or one descriptor, which stays the caller's. */
void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd);
void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e);
