/* How many lines a second: two buckets of tokens, one of them for errors alone. A bucket holds what
 * LOG_BURST seconds bring. */
#pragma once

#include "lib/base/base.h"

#define LOG_BURST 5

struct log_rate {
    double tokens[2]; /* of errors: [1] */
    uint64_t filled_ns, told_ns;
    uint64_t untold; /* suppressed, and nobody knows */
    bool begun;
};

/* Whether a line may be written; a_second 0: each may. One that may not is counted. */
bool log_rate_take(struct log_rate *r, unsigned a_second, bool is_error, uint64_t now_ns);
/* How many were suppressed since that was last told, if a second has passed; 0: nothing to tell. */
uint64_t log_rate_due(struct log_rate *r, uint64_t now_ns);
