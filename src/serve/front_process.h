/* The front: the process that speaks HTTP, and our end of the orders (order/order.h).
 *
 *            start                     first order, or READY_NS
 *   absent ---------> starting --------------------------------> ready
 *     ^                  |  it ends                                |  it ends
 *     +------------------+-----------------------------------------+
 *
 * It has an unprivileged user of its own, no capability, an empty environment, and no descriptor
 * but 0, 1, 2 and the orders' socket. When it ends it is started again: at once the first time,
 * then after a pause that grows to a second. One that ends again and again without becoming ready
 * is given up, and the server with it.
 *
 * Each front gets everything anew, from the listening sockets to the sandboxes that live. `turn`
 * numbers the fronts: an answer to an order of one that is gone is dropped. */
#pragma once

#include "order/order.h"
#include "serve/reactor.h"

#define FRONT_DEATHS_MAX 10

struct server;
struct tell; /* one that waits for room in the socket */

struct front_process {
    const char *program;
    uint32_t uid, gid;
    int pidfd, sock;
    struct event_source process, orders;
    struct timer timer; /* absent: when to start it; starting: when it counts as ready */
    uint32_t turn;
    bool ready, leaving; /* leaving: told to end, and not started again */
    unsigned n_deaths;   /* in a row, without having been ready */
    uint64_t deaths_since_ns, pause_ns;
    struct tell *queue, **queue_end;
};

/* Who asked, and for what. */
struct ticket {
    uint64_t seq;
    uint32_t turn; /* 0: nobody, it happened by itself */
};

/* Finds the user. */
int front_process_init(struct server *s, const char *program, struct sg_error *e);
int front_process_start(struct server *s, struct sg_error *e);
/* Tells it to finish; it is not started again. */
void front_process_drain(struct server *s);
bool front_process_lives(const struct server *s);
/* It cannot be kept alive. */
bool front_process_given_up(const struct server *s);
/* Kills it, waits, and forgets it. */
void front_process_end(struct server *s);

/* Whether an answer would still reach the one who asked. */
bool ticket_valid(const struct server *s, const struct ticket *t);
/* The descriptors stay the caller's. */
void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds);
/* a may be NULL: just 0. fd: -1 or one descriptor, which stays the caller's. */
void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd);
void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e);
