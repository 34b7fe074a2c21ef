/* Which sandboxes a list is to show: the query of GET /v2/sandboxes, decoded. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* The filter `metadata`: pairs that all must match. It comes encoded three times; the query's own
 * decoding is the first, two are left. A NUL inside, a pair without "=", or an escape that is none
 * is an error. *ret is an object of strings. */
int filter_metadata(const char *text, json_t **ret, struct sg_error *e);
/* Every pair of `wanted` is in `metadata`, which may be NULL. */
bool filter_matches(const json_t *wanted, const json_t *metadata);
/* "running", "paused", "running,paused". */
int filter_states(const char *text, bool *ret_running, bool *ret_paused, struct sg_error *e);
/* RFC 3339 to microseconds since 1970; what is finer is cut. */
int filter_time(const char *text, int64_t *ret_us, struct sg_error *e);
