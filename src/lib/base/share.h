/* A tenant's share of something that all use and that has an end: connections, flows. What is free
 * decides, so nothing has to be divided among tenants that are not there. One alone can have four
 * fifths of it, two that want all four ninths each, and there is always some left for who comes
 * next. */
#pragma once

#include "lib/base/base.h"

#define SHARE_FACTOR 4

/* Whether one who has `own` of the `used` can have another. */
static inline bool share_has_room(size_t own, size_t used, size_t max)
{
    return used < max && own < SHARE_FACTOR * (max - used);
}
