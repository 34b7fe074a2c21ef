/* What runs that are not over have gathered, all of them together. A little is anybody's; of more
 * there is only so much, so that code which says a lot and does not end cannot use up the memory of
 * the server. */
#pragma once

#include "lib/base/base.h"

#define BUDGET_FREE (1024u * 1024)       /* of each run: not counted */
#define BUDGET_MAX  (256u * 1024 * 1024) /* of all */

/* A run has `bytes` from now on; *taken is what it has taken, 0 at first and at its end. False:
 * there is no room for so much, and nothing has changed. */
bool budget_hold(size_t *taken, size_t bytes);
