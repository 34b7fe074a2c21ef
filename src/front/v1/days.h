/* Days of the calendar, UTC, as "2026-11-15". */
#pragma once

#include "front/store/contexts.h"

struct days {
    char from[CTX_DAY_LEN + 1], to[CTX_DAY_LEN + 1]; /* both inclusive */
};

/* Reads the texts of a query; each is NULL if it was not given. The default is 30 days, up to `to`
 * or the day of now_ms. */
int days_parse(const char *from, const char *to, int64_t now_ms, struct days *ret,
               struct sg_error *e);
