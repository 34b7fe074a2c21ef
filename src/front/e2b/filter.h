/* Which sandboxes a list shows: the query of GET /v2/sandboxes, decoded. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Reads the filter `metadata`: pairs that must all match. Clients encode it three times; the
 * query's own decoding is the first, and two are left. A NUL inside, a pair without "=", or an
 * invalid escape is an error. *ret is an object of strings. */
int filter_metadata(const char *text, json_t **ret, struct sg_error *e);
/* Whether `metadata`, which may be NULL, has every pair of `wanted`. */
bool filter_matches(const json_t *wanted, const json_t *metadata);
/* "running", "paused", "running,paused". */
int filter_states(const char *text, bool *ret_running, bool *ret_paused, struct sg_error *e);
/* Turns an RFC 3339 time into microseconds since 1970; finer digits are cut. */
int filter_time(const char *text, int64_t *ret_us, struct sg_error *e);
