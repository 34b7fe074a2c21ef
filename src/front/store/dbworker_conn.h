/* One connection of the database worker, and the request that it works on. Never blocks: the loop
 * polls its socket and calls conn_continue.
 *
 * A request is one round trip, and one transaction: in libpq's pipeline mode all that is sent
 * before a sync is. Sent are the tenant, for row-level security, then the statement; each is
 * prepared in the same breath if this connection has not got it yet. */
#pragma once

#include <libpq-fe.h>

#include "front/store/dbworker.h"
#include "front/store/dbworker_wire.h"

#define CONN_STATEMENTS_MAX 64 /* prepared; further ones are sent as they are */

struct request {
    uint64_t seq;
    char *message; /* that the texts below are in */
    const char *statement, *tenant;
    const char *params[DBWORKER_PARAMS_MAX];
    int n;
    uint64_t came_ns;
    unsigned tries;
    struct request *next;
};
/* Takes a whole message. NULL: it is none. */
struct request *request_read(struct wire_in *in);
void request_free(struct request *q);

/* What a request has been sent as: a result comes for each, in this order. */
enum conn_step { STEP_PREPARE_TENANT, STEP_TENANT, STEP_PREPARE, STEP_RUN, STEP_MAX_ };

struct conn {
    PGconn *pg; /* NULL: there is none here now */
    struct request *q;
    uint64_t deadline_ns; /* of q */
    bool flush;           /* not everything is sent */
    enum conn_step steps[STEP_MAX_];
    size_t n_steps, step;
    PGresult *rows, *failure; /* of q, when it has ended: one of them */
    char *prepared[CONN_STATEMENTS_MAX];
    size_t n_prepared;
};

/* Takes a connection that was made (dbworker_dial.h). False: it broke already. */
bool conn_open(struct conn *c, PGconn *pg);
void conn_close(struct conn *c);
/* c->q stays the caller's. `prepare` false: for poolers that give each transaction another
 * connection, where what was prepared is not found again. -EPIPE: it broke. */
int conn_begin(struct conn *c, struct request *q, bool prepare, uint64_t deadline_ns);
/* What to poll for. */
short conn_events(const struct conn *c);
/* 1: q has ended (conn_end when the results are used). 0: not yet. -EPIPE: it broke. */
int conn_continue(struct conn *c);
void conn_end(struct conn *c);
