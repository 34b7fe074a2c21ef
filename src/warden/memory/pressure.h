/* Pressure: whether memory is about to be short, and what the server gives up then, before the
 * kernel kills anybody.
 *
 * Two figures are read: MemAvailable of the machine, and the memory that this server's control
 * group uses, less what the kernel can take back at once (cached files of the disk; not files of a
 * tmpfs, which are nowhere else). Stalls (PSI) are not read: a single tenant that thrashes within
 * its own limit raises them for all. Free is the smaller of what the budget has left and of what
 * the machine has available, less a fortieth of the machine for the kernel itself.
 *
 *   free, of the budget  state               what happens
 *   -------------------  ------------------  ------------------------------------------------------
 *   15 % and more        PRESSURE_NONE       pools, checkpoints and creates as they are asked for
 *   less than 15 %       PRESSURE_POOLS      pools are emptied, and not filled again
 *   less than 10 %       PRESSURE_KERNELS    and checkpoints lose their kernels, the oldest first,
 *                                            KERNELS_AT_ONCE at each look; their files stay
 *   less than 5 %        PRESSURE_CREATES    and no sandbox is let in: 503 with Retry-After
 *
 * A state is left when 3 % more than its own threshold is free, so that it does not flutter. The
 * warden looks once a second, and four times a second while less than 40 % is free. */
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
    uint64_t used;             /* by the server's control group */
    uint64_t limit;            /* of the budget */
};

/* The state that follows the state `now` after this reading. */
enum pressure_state pressure_judge(enum pressure_state now, const struct pressure_reading *r);
/* Reads MemTotal and MemAvailable from the text of /proc/meminfo. False: they are not in it. */
bool pressure_parse(const char *meminfo, struct pressure_reading *ret);

struct server;

/* How much memory this server has: that of the machine, or of the control group that it runs in. */
uint64_t pressure_machine(void);
/* Reads, acts on the new state, and sets the timer for the next look. */
void pressure_look(struct server *s);
void pressure_stop(struct server *s);
/* When the kernel last killed because all sandboxes together were at the budget's limit; 0: never.
 */
uint64_t pressure_full_ns(struct server *s);
