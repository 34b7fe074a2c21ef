/* What differs between two stacks of layers, as overlays over them show it: names that are new, that
 * are gone, and that are something else. Only directories in layers that one side alone has are
 * listed, so it takes as long as there are changes, whatever lies below.
 *
 * Two files are the same if type, mode, owner, size and time are; contents are not read. Of a
 * directory its time does not count, and of one that is gone nothing in it is named. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

struct layer_diff_side {
    const int *dirs; /* bottom first */
    size_t n;
};

struct layer_diff {
    struct layer_diff_side of, against;
    bool owners; /* ids are comparable */
    int list;    /* as of FILES_DIFF */
};
int layer_diff_write(const struct layer_diff *d, struct sg_error *e);
