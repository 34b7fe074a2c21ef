/* Limits how many lines a second are written, with two buckets of tokens, one of them for errors
 * alone. A bucket holds the tokens of LOG_BURST seconds. */
#pragma once

#include "lib/base/base.h"

#define LOG_BURST 5

struct log_rate {
    double tokens[2]; /* [1] is for errors */
    uint64_t filled_ns, told_ns;
    uint64_t untold; /* suppressed lines that no line has told of yet */
    bool begun;
};

/* Whether a line may be written. a_second 0: there is no limit. A line that may not is counted. */
bool log_rate_take(struct log_rate *r, unsigned a_second, bool is_error, uint64_t now_ns);
/* How many lines were suppressed since the last call that said so, if a second has passed; 0:
 * nothing to tell. */
uint64_t log_rate_due(struct log_rate *r, uint64_t now_ns);
