/* sandglass-image: workers that turn hostile image layers into worlds.
 *
 *   layer ──unpack──► BLOB, LIST      LISTs ──write──► META      META ──check──► the host's kernel
 *
 * The host's kernel will parse META, so who reads a stranger's tar does not write it: `unpack` says in
 * plain records what the tar said, and puts contents into BLOB; `write`, which never sees the tar, makes a
 * file system of the records; `check`, which has seen neither, walks it once before it is ever mounted. A
 * worker that was taken over can at worst make an odd LIST or META, and the next one refuses what is not
 * in the form that its predecessor writes.
 *
 *   input   the layer's bytes: decompressed, counted, hashed        records LIST, written and read
 *   tar     headers; pax: extended headers                          tree    the files of a world, in memory
 *   path    names in a layer                                        merge   LISTs onto a tree: whiteouts, links
 *   attrs   extended attributes                                     layout  what goes where in META
 *   sink    a file that is written in order, and hashed             meta    META, written; check: META, read
 *
 * wire/image.h is how they are started and what they answer; docs/internals/worlds.md has the formats. */
#pragma once

#include "lib/base/err.h"
#include "wire/image.h"

#define IMAGE_NAME_MAX 255u   /* of one part of a path */
#define IMAGE_ID_MAX   65534u /* the owner of what is anybody's above: a sandbox has 65,536 ids */

struct image_limits {
    uint64_t bytes, ratio, entries, path, depth, xattrs;
};
#define IMAGE_LIMITS                                                                      \
    {                                                                                     \
        .bytes = IMAGE_BYTES_MAX, .ratio = IMAGE_RATIO_MAX, .entries = IMAGE_ENTRIES_MAX, \
        .path = IMAGE_PATH_MAX, .depth = IMAGE_DEPTH_MAX, .xattrs = IMAGE_XATTRS_MAX      \
    }

/* Each fills the report's figures. Descriptors as in wire/image.h. */
int image_unpack(int layer, int blob, int list, const struct image_limits *limits,
                 struct image_report *ret, struct sg_error *e);
int image_write(int meta, const int *lists, const uint64_t *blocks, size_t n,
                const struct image_limits *limits, struct image_report *ret, struct sg_error *e);
int image_check(const uint8_t *meta, size_t len, const uint64_t *blocks, size_t n,
                struct image_report *ret, struct sg_error *e);

/* Gives up what a worker does not need: all calls but reading, writing and memory, and more than
 * so much memory and processor time. */
int image_confine(uint64_t memory, unsigned cpu_s, struct sg_error *e);

static inline uint64_t image_blocks(uint64_t bytes)
{
    return bytes / IMAGE_BLOCK + (bytes % IMAGE_BLOCK > 0);
}
