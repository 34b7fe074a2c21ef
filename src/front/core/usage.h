/* Counts what sandboxes use; front/contexts/usage.c reports it to the store.
 *
 *   cpu_us             the control group's counter. The warden reads it with each sample
 *                      (metrics.c), when the sandbox pauses and when it ends
 *   memory_mib_ms      memory without files, read at the same times: the mean of two readings,
 *                      times the time between. A paused sandbox does not count
 *   bytes, executions  DATA to and from the agent; cells and programs begun. Of all calls but the
 *                      server's own (call.h); counted in link.c
 *   egress_up, egress_down  what its connections carried; the guard reports it when they end
 *   sandboxes          1 when the sandbox is made
 *
 * Each sandbox has two sums: all that it has used, and the part that was reported. The difference
 * goes to the ledger: for living sandboxes at usage_gather, for one that ends at once. The ledger
 * has one entry for each (tenant, context). So it grows with contexts and not with time, however
 * long the store is away. When it has LEDGER_MAX entries, the usage of further contexts counts for
 * the tenant alone.
 *
 *   sandbox --usage_gather, its end--> ledger --usage_take--> under way --> stored: forgotten
 *                                        ^                        |
 *                                        +---- usage_put_back ----+ the store refused it
 *
 * A sandbox that is killed leaves the table before the warden has ended it. Its last figures come
 * with TELL_ENDED, before the answer to the order; until then the sandbox waits in a list.
 *
 * The guard may report a connection after its sandbox has ended. So the owners of the last
 * sandboxes that ended are remembered.
 *
 * A front that is killed loses what it had not reported: the ledger, and all usage since the last
 * gathering. The next front counts on from the warden's counters, so nothing is counted twice. */
#pragma once

#include "lib/base/list.h"
#include "wire/warden.h"
#include "front/store/contexts.h"

#define LEDGER_MAX 16384

struct front;
struct sandbox;

struct sandbox_usage {
    struct ctx_usage total, told;
    uint64_t since_ns;       /* memory is counted up to then; 0: not running */
    uint64_t cpu_us, memory; /* as last read; memory in bytes */
    bool known;              /* memory was read since the start or resume */
    struct list in_killed;   /* the list of killed ones */
};

/* The sandbox was just made. */
void usage_made(struct sandbox *b);
/* An earlier front made the sandbox: its usage so far is not ours to count. */
void usage_taken_over(struct sandbox *b, const struct order_stats *now);
/* The warden has read the sandbox's counters. */
void usage_sampled(struct sandbox *b, const struct order_stats *now);
/* The same, at a pause. */
void usage_paused(struct sandbox *b, const struct order_stats *now);
void usage_resumed(struct sandbox *b);

/* The warden was ordered to kill the sandbox; the order was answered. The sandbox object must live
 * between the two calls. */
void usage_kill_ordered(struct sandbox *b);
void usage_kill_answered(struct sandbox *b);
/* The sandbox has ended. b NULL: one whose kill was ordered; it is found by its id. */
void usage_ended(struct sandbox *b, const struct order_answer *a);

/* Counts the bytes that a connection of sandbox `id` carried out and in. The guard reports them
 * when the connection has ended. */
void usage_egress(struct front *f, const char *tenant, const char *id, uint64_t up, uint64_t down);

/* Moves the usage of living sandboxes to the ledger. */
void usage_gather(struct front *f);
/* Takes up to max entries out of the ledger, and returns how many. */
size_t usage_take(struct ctx_usage_add *ret, size_t max);
void usage_put_back(const struct ctx_usage_add *adds, size_t n);
