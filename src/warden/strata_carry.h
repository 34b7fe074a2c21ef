/* Taking a file along to a new upper layer.
 *
 * A sandbox's upper layer is frozen and it goes on with an empty one. What a process has open for
 * writing, its copy opens anew there, and the overlay would copy it up, with the frozen file as its
 * origin: the file would have another inode number from the second time on. So it is copied here,
 * as the overlay does it, but with the origin that keeps the number that is shown now
 * (strata_origin.h). The same goes for a sandbox that begins on a stack, on any tmpfs.
 *
 * A file with several names (hard links) is copied without: it becomes one of its own, with its own
 * number, as it would by the overlay. */
#pragma once

#include "warden/strata.h"

/* upper: a directory of scratch that no overlay has yet, or none that has looked anything up in it.
 * path: absolute, inside, without links. 0 with nothing done: it is there already, it is no regular
 * file, or it is not in the stack; then it was not open for writing either. Else nothing of the
 * file is left in upper. *room: how many bytes may be copied, less what was; one that is larger is
 * left to the overlay. */
int strata_carry(const struct stack *from, const struct scratch *scratch, const char *upper,
                 const char *path, uint64_t *room, struct sg_error *e);
