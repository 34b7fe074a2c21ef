/* The logs of sandboxes that have ended, for those who come to look why. Bounded in bytes and time.
 */
#pragma once

#include "front/box.h"

#define PAST_BYTES (8u * 1024 * 1024)
#define PAST_MS    (10 * 60 * 1000)

/* Takes the log out of a box that has ended. */
void past_keep(struct box *b);
/* NULL: there is none of that tenant, or not any more. */
const struct box_log *past_log(const char *tenant, const char *id);
