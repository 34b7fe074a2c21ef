/* Tells whether the sandbox's memory limit was the end of a process. Linux says only that it died of
 * SIGKILL; but the sandbox's group counts how often Linux has killed for want of memory, and knows
 * whether the limit was reached. The kill must have come while the process ran, and each counts for one
 * process: so nobody is told of memory because another process died of it. Kills because the tenant's
 * or the machine's memory ran out are not the limit's doing, and nothing is said of these.
 *
 * v2 counts how often the limit was reached. v1 has the peak, which the warden takes back every few
 * seconds, when it looks for itself (was_full in warden/host/cgroup.h): so a limit that was reached a
 * moment before counts, and one that the warden has just looked at is missed. */
#pragma once

#include <stdint.h>

struct agent;

struct memory_mark {
    uint64_t kills, full; /* full: v2 */
};

/* Where the counters stand. All 0 if the agent cannot see the group. */
struct memory_mark memory_look(const struct agent *a);
/* A process that ran since the mark died of SIGKILL, and the agent did not send it: the limit in bytes,
 * if that was its end; else 0. */
uint64_t memory_ended(struct agent *a, const struct memory_mark *since);
