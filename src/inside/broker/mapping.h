/* Memory that a process shares: mappings of which a copy would not get its own.
 *
 * A private mapping shares too what the process has not written to. Of a file that is no harm, the
 * sandbox's are frozen; but a file in memory that has no name (memfd) is written to by whoever has
 * its descriptor, and nobody freezes it. */
#pragma once

#include "lib/base/err.h"
#include "inside/broker/procfs.h"

struct mapping {
    uint64_t start, end;
    int prot;
    bool shared;
    bool writable;  /* or can become so */
    bool anonymous; /* of no file that anybody could open */
    bool memory;    /* of a file in memory that has no name, or of System V */
    char name[PROCFS_PATH_MAX];
};

/* Calls fn for each mapping that is shared, and for private ones of memory. Its result, if not 0,
 * ends that and is returned. */
int mapping_each(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg);
