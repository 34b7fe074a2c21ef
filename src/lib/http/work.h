/* Work in slices: spreads the cost of decoding and parsing over the turns of a loop.
 *
 * The loop is one thread. Bytes that are cheap to send may be expensive to read: 1.5 MB of gzip
 * become 1.5 GB, and a callback that reads them to their end stops every tenant meanwhile. So no
 * callback does more than one bounded piece (WORK_PIECE) of such work. The rest is a `work` that
 * waits in a queue. The queue runs for WORK_TURN_NS in each turn of the loop, one piece at least;
 * then sockets, timers and the other processes have their turn. Things that are cheap and must be
 * answered soon (heads, small answers, messages of agents) do not go through the queue, and so
 * never wait for it.
 *
 * Parties take turns, and the works of one party among themselves: a thousand uploads of one tenant
 * get as much of the loop as one upload of another. A party is a number: that of a tenant, of a
 * sandbox, or of a client's address as long as nothing more is known (http.h, http_req.party).
 *
 * docs/internals/front.md, "Bounded work", says how each decoder and parser is bounded. */
#pragma once

#include <uv.h>

#include "lib/base/list.h"

#define WORK_PIECE    (64u * 1024)
#define WORK_MESSAGES 256     /* small messages in one slice */
#define WORK_TURN_NS  500000u /* time for the queue in a turn of the loop */

/* A member of the struct that the work is for. */
struct work {
    /* Does one slice. It posts itself again if there is more; it may free itself. */
    void (*run)(struct work *w);
    struct work_party *party; /* not NULL: the work waits */
    struct list link;
};

struct works;
/* turn_ns 0: one slice a turn. */
struct works *works_new(uv_loop_t *loop, uint64_t turn_ns);
/* Forgets all work that waits. The loop must turn once more after it. */
void works_free(struct works *q); /* NULL is allowed */
/* Makes the work wait for its turn, unless it does already. */
void work_post(struct works *q, struct work *w, uint64_t party);
/* Takes the work out of the queue, if it waits. */
void work_drop(struct work *w);
/* The number of a party, from a name such as a tenant's id. */
uint64_t work_party_of(const char *name);
