/* The sandbox's disk. The root's upper layer is all its scratch space, and statfs of an overlay
 * answers for that. */
#pragma once

#include <stdint.h>

struct disk {
    uint64_t total, used; /* bytes */
    uint32_t full;        /* bit 0: no blocks left, bit 1: no inodes left */
};

/* All 0 if the kernel does not say. */
struct disk disk_look(void);
