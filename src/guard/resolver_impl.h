/* The parts of the resolver:
 *
 *   resolver.c           questions of callers            resolver_flight.c   questions under way
 *   resolver_query.c     one question to one server      resolver_cache.c    answers that are kept
 *   resolver_servers.c   which servers to ask */
#pragma once

#include "guard/resolver.h"
#include "guard/resolver_cache.h"
#include "guard/resolver_query.h"

#define RESOLVER_SERVERS  4
#define RESOLVER_TRIES    4
#define RESOLVER_TRY_NS   1500000000ull /* after that the next server is asked too */
#define RESOLVER_GRACE_NS 1000000000ull /* for the second family once one has addresses */
/* Questions under way at once. Above the first number the oldest one gives up: a sandbox that asks
 * for names that nobody answers hurts itself. */
#define RESOLVER_FLIGHTS     768
#define RESOLVER_FLIGHTS_MAX 1024

struct resolver {
    struct guard *guard;
    struct net_addr servers[RESOLVER_SERVERS];
    size_t n_servers;
    size_t preferred; /* index of the server that answered last */
    struct resolver_cache *cache;
    struct map flights; /* that are under way, the oldest first */
    size_t n_flights;
    bool gone; /* freed when the last flight has ended */
};

/* resolver_servers.c */
int resolver_servers_read(struct resolver *r, const char *servers, struct sg_error *e);

/* ---- resolver_flight.c: a question under way, for all who ask it ----------------------------- */

struct waiter {
    struct flight *flight; /* NULL: not waiting */
    struct list link;
    struct resolver_query *query;
    void (*done)(struct waiter *w, int r, const struct dns_answer *a);
};

/* Begins to wait for a flight: one that is under way for the same question, or a new one. -errno:
 * none can be begun. */
int flight_wait(struct resolver *r, const char *name, uint16_t type, struct waiter *w);
/* Stops waiting: done is not called. A flight that nobody waits for ends. */
void flight_leave(struct waiter *w);
