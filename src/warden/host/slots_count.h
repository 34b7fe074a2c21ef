/* Counts who uses slots and control groups on this machine, for `sandglass doctor`. */
#pragma once

#include "lib/base/err.h"

/* Counts slots in use and stale slots. A slot that has groups and no owner is stale, whatever its
 * byte says. */
int slots_count(uint32_t *ret_used, uint32_t *ret_stale, struct sg_error *e);
