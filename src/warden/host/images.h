/* Files that are part of this program: embed.S puts them there. */
#pragma once

#include <stdint.h>

extern const uint8_t sg_agent_image[], sg_agent_image_end[];
extern const uint8_t sg_sudo_image[], sg_sudo_image_end[];

/* The kernels with their directories, as tools/pack-kernels packs them: a hash of what follows,
 * then for each a header, the path below the root directory, and the content. A directory's path
 * ends with a slash. The numbers are little-endian, and not aligned. */
#define KERNELS_HASH_LEN 32
struct kernels_entry {
    uint32_t path_len, len;
};
extern const uint8_t sg_kernels_image[], sg_kernels_image_end[];
