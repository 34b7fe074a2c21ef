/* Makes the database worker's connections, in a thread of its own, since names and greetings block.
 * The loop takes those that are ready and says when one was lost.
 *
 * A connection is ready when the schema is there and of this program's version, the session is set
 * up, and the database can be written. What is in the way is told twice: `trouble`, for callers,
 * without names, and a line for the log, once until it changes. */
#pragma once

#include <libpq-fe.h>

#include "front/store/dbworker.h"

#define DIAL_TROUBLE_MAX 200
#define DIAL_NOTE_MAX    480

struct dial;

/* Begins to make DBWORKER_CONNECTIONS connections. */
int dial_start(const char *conninfo, struct dial **ret, struct sg_error *e);
/* Readable when there is something new: dial_clear, then the three below. */
int dial_fd(const struct dial *d);
void dial_clear(struct dial *d);
/* One that is ready, or NULL. The caller's. */
PGconn *dial_take(struct dial *d);
/* Why there is no connection: "" if the first attempt still lasts. */
void dial_trouble(struct dial *d, char ret[DIAL_TROUBLE_MAX]);
/* False: there is no new line. */
bool dial_note(struct dial *d, char ret[DIAL_NOTE_MAX], bool *ret_bad);
/* One that was taken is gone: another is to be made. */
void dial_lost(struct dial *d);
