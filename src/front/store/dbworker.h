/* The database worker: a process that has the connections to PostgreSQL.
 *
 * The front may not open sockets (front/main/confine.c), and libpq blocks while it resolves names
 * and connects. So the warden starts this process, which has no other work, and gives it and the
 * front a socket to each other (wire/worker.h). Each request and each answer is one message on that
 * socket (dbworker_wire.h). Several requests are under way at once, each on a connection of its
 * own. The socket is no link (lib/ipc/link.h): a message may need several packets, and calls that
 * were not sent yet outlive the database worker.
 *
 *   front                       database worker                          PostgreSQL
 *   dbworker_call(statement,    takes a free connection, sends tenant    runs both in one
 *     parameters)         --->  (row-level security) and prepared  --->  transaction
 *                               statement together                           |
 *   callback              <---  answer                             <---------+
 *
 *   dbworker.c           the front's side
 *   dbworker_process.c   the database worker's loop: queue, deadlines
 *   dbworker_conn.c      one connection: a request, without blocking
 *   dbworker_dial.c      a thread that makes connections, and may block
 *   dbworker_target.c    the address, with time limits; errors without the password
 *   dbworker_migrate.c   the schema (migrations/), made or brought up to date
 *   dbworker_wire.c      messages between the front and the database worker
 *
 * The database worker replaces a broken connection, with growing pauses between attempts. Requests
 * that were on that connection, or that come while there is none, are answered -EAGAIN; each was
 * done as a whole or not at all. A statement that failed because of a conflict is tried again
 * before the failure is told. No request waits for longer than 5 seconds. If the schema is newer
 * than this program, or the database cannot be written, every call fails with a message that says
 * so, until that has changed.
 *
 * If the database worker ends, the warden soon starts another, and the front tells it again where
 * the database is. Calls that were sent to the old one are answered -EAGAIN. Calls that come
 * meanwhile wait for DBWORKER_AWAY_MS; after that they are refused until the new one is there.
 *
 * Errors for callers name neither the address of the database nor our user there. Both are in the
 * log; the password is nowhere. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"

struct dbworker;

#define DBWORKER_PARAMS_MAX  24
#define DBWORKER_CONNECTIONS 4
#define DBWORKER_CALLS_MAX   1024 /* calls under way at a time; further ones are answered -EAGAIN */
#define DBWORKER_AWAY_MS     2000

/* The front's side. log: called from the loop, with a line for the log. */
struct dbworker *dbworker_new(uv_loop_t *loop, void (*log)(bool bad, const char *line));
/* Takes over a socket to a database worker, in place of the one before. */
void dbworker_set_socket(struct dbworker *c, int sock);
/* Called once: where the database is, as a connection string or URI of libpq. The outcome of
 * connecting goes to the log. */
void dbworker_connect(struct dbworker *c, const char *conninfo);
/* Hangs up, when the database is not needed any more. Calls under way are answered -EAGAIN. Frees c
 * after the loop has had a turn. */
void dbworker_dismiss(struct dbworker *c);

struct dbworker_rows {
    int r; /* 0, or -EAGAIN with e */
    struct sg_error e;
    size_t n, columns;
    const char *const *cells; /* n * columns, NULL for null, valid during the callback */
};
typedef void (*dbworker_done)(void *arg, const struct dbworker_rows *rows);
/* statement: SQL with $1...; equal texts are prepared once. tenant: whose rows the statement may
 * see, or NULL for all. params: texts, or NULL for null. done is called from the loop, never before
 * dbworker_call returns. */
void dbworker_call(struct dbworker *c, const char *statement, const char *tenant,
                   const char *const *params, size_t n, dbworker_done done, void *arg);
