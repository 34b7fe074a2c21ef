/* The sandbox's disk. All its space is in the upper layer of the root, and statfs of an overlay
 * answers for that layer. */
#pragma once

#include <stdint.h>

struct disk {
    uint64_t total, used; /* bytes */
    uint32_t full;        /* bit 0: no blocks left, bit 1: no inodes left */
};

/* All fields are 0 if the kernel does not say. */
struct disk disk_look(void);
