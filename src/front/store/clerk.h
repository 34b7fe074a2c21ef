/* The clerk: a process that has the connections to PostgreSQL.
 *
 * The front may not open sockets (front/main/confine.c), and libpq blocks: for names, for
 * connecting. So the warden starts this process, which has no other work, and gives both a socket
 * to each other (wire/worker.h). They speak over it, one message a request and one an answer
 * (clerk_wire.h); several requests are under way at once, each on a connection of its own.
 *
 *   front: clerk_call(statement, parameters) --> clerk: a free connection: the tenant for row-level
 *   security and the prepared statement, sent together, one transaction --> front: callback
 *
 *   clerk.c           the front's side        clerk_process.c   the clerk's loop: queue, deadlines
 *   clerk_conn.c      one connection: a request, without blocking
 *   clerk_dial.c      a thread that makes connections, and may block
 *   clerk_migrate.c   the schema (migrations/), made or brought up to date
 *
 * A connection that breaks is made again, with growing pauses; what was under way then, or comes
 * while there is none, is answered -EAGAIN, and was either done whole or not at all. A statement
 * that failed because of a conflict is tried again before that is said. Nothing waits for longer
 * than 5 seconds. A schema that is newer than this program, or a database that cannot be written,
 * makes every call fail with a message that says so, until that has changed.
 *
 * If the clerk ends there is another soon, which is told where the database is again. What had been
 * sent to the old one is answered -EAGAIN; calls that come meanwhile wait for CLERK_AWAY_MS, then
 * they are refused until it is there.
 *
 * What a caller is told says neither where the database is nor who we are there: that is in the
 * log, and the password is nowhere. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"

struct clerk;

#define CLERK_PARAMS_MAX  24
#define CLERK_CONNECTIONS 4
#define CLERK_CALLS_MAX   1024 /* under way at a time; beyond is answered -EAGAIN */
#define CLERK_AWAY_MS     2000

/* The front's side. log: from the loop, a line for the log. */
struct clerk *clerk_new(uv_loop_t *loop, void (*log)(bool bad, const char *line));
/* A socket to a clerk, taken over; the one before is over. */
void clerk_set_socket(struct clerk *c, int sock);
/* Once: where the database is, a connection string or URI of libpq. The result of trying is logged.
 */
void clerk_connect(struct clerk *c, const char *conninfo);
/* Not needed any more: hangs up. What is under way is answered -EAGAIN. Frees c, after the loop has
 * had a turn. */
void clerk_dismiss(struct clerk *c);

struct clerk_rows {
    int r; /* 0, or -EAGAIN with e */
    struct sg_error e;
    size_t n, columns;
    const char *const *cells; /* n * columns, NULL for null, valid during the callback */
};
typedef void (*clerk_done)(void *arg, const struct clerk_rows *rows);
/* statement: SQL with $1...; equal texts are prepared once. tenant: whose rows it may see, or NULL
 * for all. params: texts, NULL for null. done comes from the loop, never before this returns. */
void clerk_call(struct clerk *c, const char *statement, const char *tenant,
                const char *const *params, size_t n, clerk_done done, void *arg);
