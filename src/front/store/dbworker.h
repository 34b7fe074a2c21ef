/* The database worker: a process that has the connections to PostgreSQL.
 *
 * The front may not open sockets (front/main/confine.c), and libpq blocks: for names, for
 * connecting. So the warden starts this process, which has no other work, and gives both a socket
 * to each other (wire/worker.h). They speak over it, one message a request and one an answer
 * (dbworker_wire.h); several requests are under way at once, each on a connection of its own.
 *
 *   front: dbworker_call(statement, parameters) --> database worker: a free connection: the tenant
 * for row-level security and the prepared statement, sent together, one transaction --> front:
 * callback
 *
 *   database worker.c           the front's side        dbworker_process.c   the database worker's
 * loop: queue, deadlines dbworker_conn.c      one connection: a request, without blocking
 *   dbworker_dial.c      a thread that makes connections, and may block
 *   dbworker_migrate.c   the schema (migrations/), made or brought up to date
 *
 * A connection that breaks is made again, with growing pauses; what was under way then, or comes
 * while there is none, is answered -EAGAIN, and was either done whole or not at all. A statement
 * that failed because of a conflict is tried again before that is said. Nothing waits for longer
 * than 5 seconds. A schema that is newer than this program, or a database that cannot be written,
 * makes every call fail with a message that says so, until that has changed.
 *
 * If the database worker ends there is another soon, which is told where the database is again.
 * What had been sent to the old one is answered -EAGAIN; calls that come meanwhile wait for
 * DBWORKER_AWAY_MS, then they are refused until it is there.
 *
 * What a caller is told says neither where the database is nor who we are there: that is in the
 * log, and the password is nowhere. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"

struct dbworker;

#define DBWORKER_PARAMS_MAX  24
#define DBWORKER_CONNECTIONS 4
#define DBWORKER_CALLS_MAX   1024 /* under way at a time; beyond is answered -EAGAIN */
#define DBWORKER_AWAY_MS     2000

/* The front's side. log: from the loop, a line for the log. */
struct dbworker *dbworker_new(uv_loop_t *loop, void (*log)(bool bad, const char *line));
/* A socket to a database worker, taken over; the one before is over. */
void dbworker_set_socket(struct dbworker *c, int sock);
/* Once: where the database is, a connection string or URI of libpq. The result of trying is logged.
 */
void dbworker_connect(struct dbworker *c, const char *conninfo);
/* Not needed any more: hangs up. What is under way is answered -EAGAIN. Frees c, after the loop has
 * had a turn. */
void dbworker_dismiss(struct dbworker *c);

struct dbworker_rows {
    int r; /* 0, or -EAGAIN with e */
    struct sg_error e;
    size_t n, columns;
    const char *const *cells; /* n * columns, NULL for null, valid during the callback */
};
typedef void (*dbworker_done)(void *arg, const struct dbworker_rows *rows);
/* statement: SQL with $1...; equal texts are prepared once. tenant: whose rows it may see, or NULL
 * for all. params: texts, NULL for null. done comes from the loop, never before this returns. */
void dbworker_call(struct dbworker *c, const char *statement, const char *tenant,
                   const char *const *params, size_t n, dbworker_done done, void *arg);
