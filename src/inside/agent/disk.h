/* The sandbox's disk. All its space is in the upper layer of the root, and statfs of an overlay
 * answers for that layer. If that is a subvolume in the scratch store, it answers for all of that, and the
 * kernel's counters of the place tell. */
#pragma once

#include <stdint.h>

#include "inside/stage/stage.h"

struct disk {
    uint64_t total, used; /* bytes */
    uint32_t full;        /* bit 0: no blocks left, bit 1: no inodes left */
};

/* Files with bytes in use, in use but not on disk yet, and the limit. Each is a number in text. Takes
 * them over, in place of those that it has. */
void disk_use_figures(const int fds[STAGE_FIGURES]);
/* All fields are 0 if the kernel does not say. */
struct disk disk_look(void);
