/* Merges several layers into one, so that stacks stay low; and removes layers that nobody uses.
 *
 * The layers lie next to each other in a stack, on one scratch. The new layer shows, over whatever
 * is below them, what they show together:
 *
 *   the uppermost that has a name     below it in the run       the new layer
 *   anything but a directory          anything                  that, as a hard link: no data is
 *                                                               copied. Whiteouts too, unless in a
 *                                                               directory that is opaque
 *   directory, opaque                 anything                  its own, opaque
 *   directory                         directory                 both, with the looks of the upper;
 *                                                               opaque if the lower one is
 *   directory                         not a directory           its own, opaque
 *   directory                         nothing                   its own
 *
 * The old layers stay as they are, for overlays are mounted on them. But a hard link is visible
 * through them: a file has one link more as long as both layers are there. And for a copy of a file
 * with two links an overlay no longer shows the file's inode number (layer_stack_origin.h). So two
 * kinds of files are copied, not linked: those that are kept as origins, and those that a running
 * sandbox has copied up and may have open.
 *
 * A sandbox made these trees: they have any depth and any names. One descriptor per layer goes down
 * and up again, so depth costs no descriptors. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

struct layer_stack_merge {
    int scratch;
    const char *const *dirs; /* bottom first */
    size_t n;
    const int *uppers; /* upper layers of all running sandboxes over one of them */
    size_t n_uppers;
    const char *aside; /* its name while it is being made */
    const char *name;  /* its name when it is complete: must be free */
};

/* Makes the merged layer completely, or leaves nothing of it. It may take long, so a child does it.
 * -EAGAIN: a sandbox copied up one of the files meanwhile; try again later. */
int layer_stack_merge(const struct layer_stack_merge *m, struct sg_error *e);
/* Removes a layer, an upper layer or a work directory that no overlay uses, but not the origins
 * that are kept. It may be missing. */
int layer_stack_remove(int scratch, const char *dir, struct sg_error *e);
/* Removes a directory that is no layer, with all that is in it. */
int layer_remove_tree(int at, const char *dir, struct sg_error *e);
