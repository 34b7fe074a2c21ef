/* Makes the database worker's connections, in a thread of its own, since resolving names and
 * connecting block. The loop takes the connections that are ready, and reports those that it lost.
 *
 * A connection is ready when the schema is there in this program's version, the session is set up,
 * and the database can be written. An obstacle is told in two ways: `trouble` is for callers,
 * without names; a line goes to the log, once until it changes. */
#pragma once

#include <libpq-fe.h>

#include "front/store/dbworker.h"

#define DIAL_TROUBLE_MAX 200
#define DIAL_NOTE_MAX    480

struct dial;

/* Begins to make DBWORKER_CONNECTIONS connections. */
int dial_start(const char *conninfo, struct dial **ret, struct sg_error *e);
/* Readable when there is news: call dial_clear, then the three functions below. */
int dial_fd(const struct dial *d);
void dial_clear(struct dial *d);
/* A connection that is ready, now the caller's; or NULL. */
PGconn *dial_take(struct dial *d);
/* Why there is no connection; "" while the first attempt lasts. */
void dial_trouble(struct dial *d, char ret[DIAL_TROUBLE_MAX]);
/* The newest line for the log. False: there is no new line. */
bool dial_note(struct dial *d, char ret[DIAL_NOTE_MAX], bool *ret_bad);
/* Reports that a connection which was taken is lost: another is to be made. */
void dial_lost(struct dial *d);
