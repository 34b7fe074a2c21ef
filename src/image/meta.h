/* A tree written as META: layout.h says how. The same tree gives the same bytes. */
#pragma once

#include "image/tree.h"

struct meta_blob {
    uint32_t blocks;
    uint8_t digest[IMAGE_DIGEST];
};

/* Writes the tree; inodes say by their layer which of the blobs they are in. id: what the image's UUID is made of.
 * ret_inodes: how many there are. */
int meta_write(struct tree *t, const struct meta_blob *blobs, size_t n,
               const uint8_t id[IMAGE_DIGEST], struct sink *out, uint64_t *ret_inodes,
               struct sg_error *e);
