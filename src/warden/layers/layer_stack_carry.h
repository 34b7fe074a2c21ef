/* Taking a file along to a new upper layer.
 *
 * A sandbox's upper layer is frozen and it goes on with an empty one. What a process has open for
 * writing, its copy opens anew there, and the overlay would copy it up, with the frozen file as its
 * origin: the file would have another inode number from the second time on. So it is copied here,
 * as the overlay does it, but with the origin that keeps the number that is shown now
 * (layer_stack_origin.h). The same goes for a sandbox that begins on a stack, on any tmpfs.
 *
 * A file with several names (hard links) is copied without: it becomes one of its own, with its own
 * number, as it would by the overlay.
 *
 * All sandboxes wait while this is done, and names, depths and attributes are those of one of them.
 * So there is a budget for all files of one sandbox together: of what is beyond it, the overlay
 * takes care when it is opened, in the time of whoever opens it. Such a file has another number
 * from the second time on, which few mind. */
#pragma once

#include "warden/layers/layer_stack.h"

#define CARRY_PARTS_MAX 64 /* of a path: one that is deeper is left */

struct carry_budget {
    uint32_t files;
    uint32_t steps; /* system calls, about */
    uint64_t bytes; /* of data, and of attributes */
};
#define CARRY_BUDGET                                            \
    {                                                           \
        .files = 64, .steps = 1536, .bytes = 4u * 1024u * 1024u \
    }

/* upper: a directory of scratch that no overlay has yet, or none that has looked anything up in it.
 * path: absolute, inside, without links. 0 with nothing done: it is there already, it is no regular
 * file, or it is not in the stack; then it was not open for writing either. Else nothing of the
 * file is left in upper. What it cost is taken from *left; one that costs more is left to the
 * overlay. */
int layer_stack_carry(const struct stack *from, const struct scratch *scratch, const char *upper,
                      const char *path, struct carry_budget *left, struct sg_error *e);
