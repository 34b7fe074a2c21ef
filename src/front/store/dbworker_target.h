/* Where the database is: what an operator wrote, with what it needs so that nothing waits for long,
 * and errors of libpq without the password. */
#pragma once

#include <libpq-fe.h>

#include "lib/base/err.h"

struct target;

/* Refused if libpq cannot read it. The error never quotes it. */
int target_new(const char *conninfo, struct target **ret, struct sg_error *e);
void target_free(struct target *t);
/* Blocks, for some seconds at most and a name server's patience. Never NULL, but maybe broken. */
PGconn *target_connect(const struct target *t);
/* The first line of a message of libpq; without it, if a password may be in there. */
void target_scrub(const struct target *t, const char *message, char *ret, size_t cap);
