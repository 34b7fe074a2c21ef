/* Pressure: whether memory is about to be short, and what is let go of then, before the kernel
 * kills anybody.
 *
 * Read are MemAvailable of the machine, and what this server's group has in use less what the
 * kernel can take back at once (files of the disk in memory; not those of a tmpfs, which are
 * nowhere else). Stalls (PSI) are not looked at: one tenant that thrashes in its own limit raises
 * them for all. What is free is the smaller of what the budget has left and of what the machine has
 * available, less a fortieth of it for the kernel itself.
 *
 *   free, of the budget   state               what happens
 *   -------------------  ------------------  ------------------------------------------------------
 *   15 % and more        PRESSURE_NONE       pools, checkpoints and creates as they are asked for
 *   less than 15 %       PRESSURE_POOLS      pools are emptied, and not filled again
 *   less than 10 %       PRESSURE_KERNELS    and checkpoints' kernels are let go, the oldest first,
 *                                            KERNELS_AT_ONCE at each look; their files stay
 *   less than 5 %        PRESSURE_CREATES    and no sandbox is let in: 503 with Retry-After
 *
 * A state is left when 3 % more than its own are free, so that it does not flutter. It is looked at
 * each second, and four times a second when less than 40 % are free. */
#pragma once

#include "lib/base/base.h"

enum pressure_state {
    PRESSURE_NONE,
    PRESSURE_POOLS,
    PRESSURE_KERNELS,
    PRESSURE_CREATES,
    PRESSURE_MAX_
};

#define KERNELS_AT_ONCE 4

struct pressure_reading {
    uint64_t total, available; /* of the machine */
    uint64_t used;             /* of the group */
    uint64_t limit;            /* of the budget */
};

/* The state that follows `now` after a reading. */
enum pressure_state pressure_judge(enum pressure_state now, const struct pressure_reading *r);
/* MemTotal and MemAvailable, of the text of /proc/meminfo. False: they are not there. */
bool pressure_parse(const char *meminfo, struct pressure_reading *ret);

struct server;

/* What is there for this server: of the machine, or of the control group that it was put into. */
uint64_t pressure_machine(void);
/* Reads, and acts on it. Also sets the timer for the next look. */
void pressure_look(struct server *s);
void pressure_stop(struct server *s);
/* When the kernel last killed because all sandboxes together were at the budget's limit; 0: never.
 */
uint64_t pressure_full_ns(struct server *s);
