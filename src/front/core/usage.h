/* What sandboxes use: counted here, told to the store by front/contexts/usage.c.
 *
 *   cpu_us         the control group's counter, which the warden reads: with each sample
 *                  (metrics.c), when the sandbox pauses and when it ends
 *   memory_mib_ms  memory without files at those moments, the mean of two of them for the time
 *                  between. While it runs: a paused one is not counted
 *   bytes, executions   DATA to and from the agent, cells and programs begun, of all calls but the
 *                  server's own (call.h); counted in link.c
 *   egress_up, egress_down   what its connections carried, as the guard tells when they end
 *   sandboxes      1 when it was made
 *
 * A sandbox has what it has used in all, and what of it was told. The difference goes to the
 * ledger: of living sandboxes when usage_gather says so, of one that ends at once. The ledger has
 * one entry for a (tenant, context), so it grows with contexts and not with time, however long the
 * store is away; beyond LEDGER_MAX entries, what is of contexts that have none yet counts for the
 * tenant alone.
 *
 *   sandbox --usage_gather, its end--> ledger --usage_take--> on its way --> told: forgotten
 *                                    ^                        |
 *                                    +----- usage_put_back ---+ the store said no
 *
 * A sandbox that is killed is out of the table before the warden has ended it. Its last figures
 * come with TELL_ENDED, before the answer to the order: until then it waits in a list.
 *
 * The guard may tell of a connection after its sandbox has ended: of the last ones it is remembered
 * whose they were.
 *
 * A front that is killed takes along what was not told: the ledger, and what was used since the
 * last gathering. The next one counts on from what the warden says that a sandbox has used so far,
 * so nothing is counted twice. */
#pragma once

#include "wire/warden.h"
#include "front/store/contexts.h"

#define LEDGER_MAX 16384

struct front;
struct sandbox;

struct sandbox_usage {
    struct ctx_usage total, told;
    uint64_t since_ns;            /* until when memory is counted; 0: it does not run */
    uint64_t cpu_us, memory;      /* as they were read last; memory in bytes */
    bool known;                   /* memory was read since it runs */
    struct sandbox *next, **link; /* of those that are to end; NULL: it is none */
};

/* It was made just now. */
void usage_made(struct sandbox *b);
/* It is an earlier front's: what it has used until now is not ours to count. */
void usage_taken_over(struct sandbox *b, const struct order_stats *now);
/* What the warden has read. */
void usage_sampled(struct sandbox *b, const struct order_stats *now);
/* The same, before it rests. */
void usage_paused(struct sandbox *b, const struct order_stats *now);
void usage_resumed(struct sandbox *b);

/* It was ordered to end; the order was answered. Between the two the sandbox must live. */
void usage_kill_ordered(struct sandbox *b);
void usage_kill_answered(struct sandbox *b);
/* It has ended. b NULL: one of those. */
void usage_ended(struct sandbox *b, const struct order_answer *a);

/* What a connection of sandbox `id` carried out and in, as the guard tells when it has ended. */
void usage_egress(struct front *f, const char *tenant, const char *id, uint64_t up, uint64_t down);

/* Moves what living sandboxes have used to the ledger. */
void usage_gather(struct front *f);
/* Takes up to max entries out of the ledger; how many there were. */
size_t usage_take(struct ctx_usage_add *ret, size_t max);
void usage_put_back(const struct ctx_usage_add *adds, size_t n);
