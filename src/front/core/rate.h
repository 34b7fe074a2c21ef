/* Rate limits: each key has a bucket of tokens that is filled at a steady rate.
 *
 * A key has one place in a table of fixed size. If two keys share a place, the one that comes next
 * starts with a full bucket. So the table may forget, but it never grows, and a limit is never
 * stricter than it says. */
#pragma once

#include "lib/base/base.h"

#define RATE_PLACES  1024u
#define RATE_KEY_MAX 47

struct rate_place {
    char key[RATE_KEY_MAX + 1];
    uint64_t last_ns;
    double tokens;
};

struct rate_table {
    struct rate_place places[RATE_PLACES];
};

/* Takes a token: true if there was one. `burst` is what a full bucket holds. */
bool rate_take(struct rate_table *t, const char *key, double per_second, double burst);
/* Returns true if there is a token, and leaves it there. */
bool rate_peek(struct rate_table *t, const char *key, double per_second, double burst);
