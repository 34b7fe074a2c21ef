/* The memory for the output of all current runs together. A small amount per run is free; the rest
 * is limited, so that code which writes a lot and does not end cannot use up the server's
 * memory. */
#pragma once

#include "lib/base/base.h"

#define BUDGET_FREE (1024u * 1024)       /* bytes of each run that are not counted */
#define BUDGET_MAX  (256u * 1024 * 1024) /* counted bytes of all runs */

/* A run holds `bytes` from now on. *taken is the part of the budget that the run has: 0 at first
 * and at its end. False: there is no room for so much, and nothing has changed. */
bool budget_hold(size_t *taken, size_t bytes);
