/* One connection of the database worker, and the request that it works on. Never blocks: the loop
 * polls the connection's socket and calls conn_continue.
 *
 * A request is one round trip and one transaction: libpq's pipeline mode makes one transaction of
 * everything that is sent before a sync. The connection sends the tenant, for row-level security,
 * then the statement. It prepares each of them along the way if it has not done so yet. */
#pragma once

#include <libpq-fe.h>

#include "front/store/dbworker.h"
#include "front/store/dbworker_wire.h"
#include "lib/base/list.h"

#define CONN_STATEMENTS_MAX 64 /* prepared statements; further ones are sent unprepared */

struct request {
    uint64_t seq;
    char *message; /* has the texts below */
    const char *statement, *tenant;
    const char *params[DBWORKER_PARAMS_MAX];
    int n;
    uint64_t came_ns;
    unsigned tries;
    struct list link;
};
/* Takes over a whole message. NULL: the message is no request. */
struct request *request_read(struct wire_in *in);
void request_free(struct request *q);

/* The parts that a request was sent in: a result comes for each, in this order. */
enum conn_step { STEP_PREPARE_TENANT, STEP_TENANT, STEP_PREPARE, STEP_RUN, STEP_MAX_ };

struct conn {
    PGconn *pg; /* NULL: not connected now */
    struct request *q;
    uint64_t deadline_ns; /* of q */
    bool flush;           /* some of the request is not sent yet */
    enum conn_step steps[STEP_MAX_];
    size_t n_steps, step;
    PGresult *rows, *failure; /* of q, once it has ended: one of the two */
    char *prepared[CONN_STATEMENTS_MAX];
    size_t n_prepared;
};

/* Takes over a connection that was made (dbworker_dial.h). False: the connection is broken
 * already. */
bool conn_open(struct conn *c, PGconn *pg);
void conn_close(struct conn *c);
/* Begins request q, which stays the caller's. `prepare` is false behind a pooler that gives each
 * transaction another connection, where a prepared statement would not be found again. -EPIPE: the
 * connection broke. */
int conn_begin(struct conn *c, struct request *q, bool prepare, uint64_t deadline_ns);
/* The events to poll for. */
short conn_events(const struct conn *c);
/* 1: q has ended; call conn_end when the results are used. 0: not yet. -EPIPE: the connection
 * broke. */
int conn_continue(struct conn *c);
void conn_end(struct conn *c);
