/* Memory that a process shares: mappings of which a copy would not get its own. */
#pragma once

#include "base/err.h"
#include "warden/twin/sight.h"

struct mapping {
    uint64_t start, end;
    int prot;
    bool writable;  /* or can become so */
    bool anonymous; /* of no file that anybody could open */
    char name[SIGHT_PATH_MAX];
};

/* Calls fn for each mapping that is shared. Its result, if not 0, ends that and is returned. */
int mapping_each_shared(int dir, int (*fn)(const struct mapping *m, void *arg), void *arg);
