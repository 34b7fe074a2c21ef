/* The directories of a root that mounts go on.
 *
 * Below them is what programs inside wrote, if the root has files of an earlier sandbox: nothing is
 * followed there. A link that leads out of the root would lead into the domain's, whose /proc shows
 * all its sandboxes. /dev, /proc, /usr and /usr/local are covered as long as anything runs, and
 * cannot be changed from inside; /run and /run/shm can. */
#pragma once

#include "lib/base/err.h"

struct places {
    int dev, proc, usr, local, shm;
};
#define PLACES_NONE        \
    {                      \
        -1, -1, -1, -1, -1 \
    }

/* Each is a directory, and no link leads to it; or e says which is none. */
int places_open(int root, struct places *ret, struct sg_error *e);
void places_done(struct places *p);

/* Nothing runs yet: those that can be changed from inside are made directories again. What was
 * there in their place gets another name beside them ("run.1"). */
int places_mend(int root, struct sg_error *e);
