/* One layer for several, so that stacks stay low; and the removal of those that nobody uses.
 *
 * The layers are neighbours in a stack, on one scratch. The new one shows, over whatever is below
 * them, what they show together:
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
 * The layers themselves stay as they are, for overlays are mounted on them. But a hard link is seen
 * through them: files have a link more as long as both are there, and of a file with two links an
 * overlay shows the inode number no more in place of its copy's (layer_stack_origin.h). So what is
 * kept as an origin, and what some running sandbox has copied up and may have open, is copied, not
 * linked.
 *
 * Trees are a sandbox's: of any depth and any names. A descriptor for each layer goes down and up
 * again, so depth costs none. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

struct layer_stack_merge {
    int scratch;
    const char *const *dirs; /* bottom first */
    size_t n;
    const int *uppers; /* the upper layers of all running sandboxes that are over one of them */
    size_t n_uppers;
    const char *aside; /* what to call it while it is made */
    const char *name;  /* and then: must be free */
};

/* Whole, or nothing of it is left. It may take long: for a child. -EAGAIN: a sandbox copied up one
 * of the files meanwhile; later is fine. */
int layer_stack_merge(const struct layer_stack_merge *m, struct sg_error *e);
/* Removes a layer, an upper layer or a work directory that no overlay has, but not the origins
 * that are kept. A missing one is fine. */
int layer_stack_remove(int scratch, const char *dir, struct sg_error *e);
