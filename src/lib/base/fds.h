/* How many descriptors this process has, and may have.
 *
 * Some are kept back for what must go on when all others are in use: to say so, to tell figures, to
 * end what is there. Whoever can be told to come again later takes none of these. */
#pragma once

#include "lib/base/base.h"

/* The limit, and how many are open. Both can be asked when none is left. */
uint64_t fds_max(void);
uint64_t fds_open(void);

enum fds_level {
    FDS_PLENTY,
    FDS_LOW,    /* less than twice of what is kept back: let go of what is not needed */
    FDS_SCARCE, /* only what is kept back is left */
    FDS_LAST,   /* half of that */
};
/* Cheap enough to be asked for each connection; on kernels before 6.2, which have to be asked for
 * each descriptor, it is not always of this very moment. */
enum fds_level fds_level(void);

/* As high as this process may. */
void fds_raise_limit(void);
