/* Files that are embedded in this program, by embed.S. */
#pragma once

#include <stdint.h>

extern const uint8_t sg_agent_image[], sg_agent_image_end[];
extern const uint8_t sg_sudo_image[], sg_sudo_image_end[];

/* The kernels with their directories, as tools/pack-kernels packs them: a hash of the rest, then
 * for each file a header, its path below the root directory, and its content. The path of a
 * directory ends with a slash. Numbers are little-endian, and not aligned. */
#define KERNELS_HASH_LEN 32
struct kernels_entry {
    uint32_t path_len, len;
};
extern const uint8_t sg_kernels_image[], sg_kernels_image_end[];
