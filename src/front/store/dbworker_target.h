/* The address of the database: the operator's connection string, with time limits added so that
 * nothing waits for long; and libpq's errors without the password. */
#pragma once

#include <libpq-fe.h>

#include "lib/base/err.h"

struct target;

/* Refuses a text that libpq cannot read. The error never quotes the text. */
int target_new(const char *conninfo, struct target **ret, struct sg_error *e);
void target_free(struct target *t);
/* Connects. Blocks for some seconds at most, plus what the name server takes. Never returns NULL,
 * but the connection may be broken. */
PGconn *target_connect(const struct target *t);
/* The first line of a libpq message; a fixed text in its place if it may contain a password. */
void target_scrub(const struct target *t, const char *message, char *ret, size_t cap);
