/* Memory that a process shares: mappings of which a copy would not get its own.
 *
 * A private mapping also shares the pages that the process has not written to. For a file of the
 * sandbox this does no harm, because those files are frozen. But a file in memory without a name
 * (memfd) can be written by everybody who has its descriptor, and nobody freezes it. */
#pragma once

#include "lib/base/err.h"
#include "inside/broker/procfs.h"

struct mapping {
    uint64_t start, end;
    int prot;
    bool shared;
    bool writable;  /* or can be made writable */
    bool anonymous; /* not of a file that anybody could open */
    bool memory;    /* of a file in memory without a name (memfd), or System V shared memory */
    char name[PROCFS_PATH_MAX];
};

/* Calls fn for each shared mapping, and for private mappings of files in memory. If fn returns
 * anything but 0, the walk ends and returns that. */
int mapping_each(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg);
