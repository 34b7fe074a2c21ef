/* How many descriptors this process has, and how many it may have.
 *
 * Some descriptors are kept back for work that must go on when all others are in use: to report the
 * shortage, to answer with figures, to end sandboxes. Requests that can be told to come again later
 * get none of these. */
#pragma once

#include "lib/base/base.h"

/* The limit, and how many are open. Both work even when no descriptor is left. */
uint64_t fds_max(void);
uint64_t fds_open(void);

enum fds_level {
    FDS_PLENTY,
    FDS_LOW,    /* less than twice the reserve is left: let go of what is not needed */
    FDS_SCARCE, /* only the reserve is left */
    FDS_LAST,   /* half of the reserve is left */
};
/* Cheap enough to call for each connection. Kernels before 6.2 make counting slow, so there the
 * answer may be a little old. */
enum fds_level fds_level(void);

/* Raises the limit as high as this process may. */
void fds_raise_limit(void);
