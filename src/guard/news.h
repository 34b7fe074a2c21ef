/* Tells the front, without being asked, of connections that ended or were refused (ASK_NEWS,
 * wire/guard.h). News are gathered for EGRESS_NEWS_MS.
 *
 * The guard never waits for the front. If there is no front or it does not read, news that do not
 * fit are dropped, but their bytes are kept: they are added to the last entry of the same sandbox,
 * or replace an entry that has no bytes, or go with the next entry of that sandbox. */
#pragma once

#include "guard/guard.h"

/* record_decision calls this for each decision. A guard that never had a front gathers nothing. */
void news_gather(struct sandbox *s, const struct decision *d);
