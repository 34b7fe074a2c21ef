/* Carries a file over to a new upper layer, so that it keeps its inode number.
 *
 * When a sandbox's upper layer is frozen, the sandbox goes on with an empty one. There the copy of
 * a process opens anew what the process had open for writing. The overlay would then copy the file
 * up, with the frozen file as its origin: from the second time on, the file would have another
 * inode number. So it is copied here, as the overlay does it, but with the origin that keeps the
 * number that is shown now (layer_stack_origin.h). The same goes for a sandbox that begins on a
 * stack, on any tmpfs.
 *
 * A file with several names (hard links) is copied without the others: it becomes a file of its
 * own, with its own number, as it would by the overlay.
 *
 * The sandbox stands still while this is done, and its programs chose the names, depths and
 * attributes. So all its files together have a budget. Beyond it, the overlay copies a file when it is
 * opened, in the time of whoever opens it. Such a file has another number from the second time on,
 * which few programs mind. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define CARRY_PARTS_MAX 64 /* parts of a path: a deeper file is left */

struct carry_budget {
    uint32_t files;
    uint32_t steps; /* system calls, about */
    uint64_t bytes; /* of data, and of attributes */
};
#define CARRY_BUDGET                                            \
    {                                                           \
        .files = 64, .steps = 1536, .bytes = 4u * 1024u * 1024u \
    }

/* The layers that an overlay has, oldest first. */
#define CARRY_LAYERS_MAX 64
struct carry_layer {
    int mount;
    const char *dir;
};
struct carry_stack {
    size_t n;
    struct carry_layer v[CARRY_LAYERS_MAX];
};

/* upper: a directory of scratch that no overlay has yet, or at least none that has looked anything
 * up in it. path: absolute, as seen inside, without links. Returns 0 and does nothing if the file
 * is there already, is no regular file, or is not in the stack; in the last case it was not open
 * for writing either. On an error nothing of the file is left in upper. The cost is taken from
 * *left; a file that costs more than that is left to the overlay. */
int layer_stack_carry(const struct carry_stack *from, int scratch, const char *upper,
                      const char *path, struct carry_budget *left, struct sg_error *e);
