/* The directories of a root that other mounts are attached to.
 *
 * If the root has the files of an earlier sandbox, programs inside wrote what is there, so nothing
 * is followed: a link out of the root would lead into the domain's root, whose /proc shows all
 * sandboxes of the domain. /dev, /proc, /sys, /usr and /usr/local are covered by mounts as long as
 * anything runs, and cannot be changed from inside; /run and /run/shm can, and so can /usr and
 * /usr/local of a world whose cover is gone. */
#pragma once

#include "lib/base/err.h"

enum place { PLACE_DEV, PLACE_PROC, PLACE_SYS, PLACE_USR, PLACE_LOCAL, PLACE_SHM, PLACE_MAX_ };
struct places {
    int fd[PLACE_MAX_]; /* PLACES_NONE: -1 */
};
#define PLACES_NONE                \
    {                              \
        {                          \
            -1, -1, -1, -1, -1, -1 \
        }                          \
    }

/* Opens all of them, /usr and /usr/local only if something is to lie there: in a world, root may
 * remove them. Each must be a directory that is reached without a link; otherwise e names the one
 * that is not. */
int places_open(int root, bool with_usr, struct places *ret, struct sg_error *e);
void places_done(struct places *p);

/* Call it while nothing runs in the root. Makes directories again of those that programs could
 * change. Whatever stands in the place of one gets another name beside it ("run.1"). */
int places_mend(int root, struct sg_error *e);
