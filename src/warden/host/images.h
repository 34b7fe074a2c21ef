/* Files that are embedded in this program, by embed.S. */
#pragma once

#include <stdint.h>

extern const uint8_t sg_agent_image[], sg_agent_image_end[];
extern const uint8_t sg_sudo_image[], sg_sudo_image_end[];

/* The default template, with the kernels, as tools/pack-template packs it: a hash of the rest, then
 * for each file a header, its path below the root directory, and its content, which is the target
 * of a symbolic link. Mode 0: the path is a pattern for files of the host; these entries are
 * together, before the kernels, so that nobody need go through all to find them. Numbers are
 * little-endian, and not aligned. */
#define TEMPLATE_HASH_LEN 32
#define TEMPLATE_FIXTURE  0x80000000u /* in a mode: what every sandbox has, whatever its world */
struct template_entry {
    uint32_t path_len, len;
    uint32_t mode, uid, gid;
};
extern const uint8_t sg_template_image[], sg_template_image_end[];
