/* How often something may happen: a bucket of tokens for each key, filled at a steady rate.
 *
 * A key has one place in a table of fixed size. One that meets another in its place starts with a
 * full bucket: the table forgets, it never grows, and a limit is never stricter than it says. */
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
/* True if there is one, and leaves it. */
bool rate_peek(struct rate_table *t, const char *key, double per_second, double burst);
