/* What the front is told of connections without asking (ASK_NEWS, wire/guard.h): those that ended
 * or were refused, gathered for EGRESS_NEWS_MS.
 *
 * It waits for nobody. With a front that does not read, or none, what does not fit is left out but
 * for its bytes: they go to the last entry of the same sandbox, in place of an entry that has none,
 * or with the next of that sandbox. */
#pragma once

#include "guard/guard.h"

/* From record_decision, for each. A guard that never had a front gathers nothing. */
void news_gather(struct sandbox *s, const struct decision *d);
