/* A tenant's share of a limited thing that all tenants use, such as connections or flows. How much
 * a tenant may have depends on what is free, so nothing is reserved for tenants that are not there.
 * One tenant alone can have four fifths, two that want all get four ninths each, and some is always
 * left for the next. */
#pragma once

#include "lib/base/base.h"

#define SHARE_FACTOR 4

/* Whether a tenant that has `own` of the `used` can have one more. */
static inline bool share_has_room(size_t own, size_t used, size_t max)
{
    return used < max && own < SHARE_FACTOR * (max - used);
}
