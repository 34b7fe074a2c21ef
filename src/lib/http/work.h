/* Work in slices: what decoding and parsing costs is shared out over the turns of a loop.
 *
 * The loop is one thread. Bytes that are cheap to send may be dear to read: 1.5 MB of gzip become
 * 1.5 GB, and whoever reads them to their end in one callback stops every tenant meanwhile. So no
 * callback does more than one bounded piece (WORK_PIECE) of such work. What is left is a `work`
 * that waits here, and the queue runs for WORK_TURN_NS in each turn of the loop, one piece at
 * least; then sockets, timers and the other processes have their turn. What has to be answered soon
 * and costs little (heads, small answers, messages of agents) is not in the queue, and so never
 * behind it.
 *
 * Parties take turns, and the works of one party among themselves: a thousand uploads of one tenant
 * get as much of the loop as one upload of another. A party is a number: of a tenant, of a sandbox,
 * or of a client's address as long as nobody knows more (http.h, http_req.party).
 *
 * Which decoder and parser is bounded how: docs/internals/front.md, "Bounded work". */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "lib/base/base.h"

#define WORK_PIECE    (64u * 1024)
#define WORK_MESSAGES 256     /* that are small */
#define WORK_TURN_NS  500000u /* of a turn of the loop */

/* Inside of whatever the work is for. */
struct work {
    /* One slice. It posts itself again if there is more; it may free itself. */
    void (*run)(struct work *w);
    struct work_party *party; /* not NULL: it waits */
    TAILQ_ENTRY(work) next;
};

struct works;
/* turn_ns 0: one slice a turn. */
struct works *works_new(uv_loop_t *loop, uint64_t turn_ns);
/* Nothing waits any more, or it is forgotten. The loop must turn once more after it. */
void works_free(struct works *q); /* NULL is allowed */
/* Waits for its turn, if it does not already. */
void work_post(struct works *q, struct work *w, uint64_t party);
/* Waits no more, if it did. */
void work_drop(struct works *q, struct work *w);
/* Of a name, such as a tenant's. */
uint64_t work_party_of(const char *name);
