/* Turns rows of the database into replies of contexts.h. For contexts_postgres.c. */
#pragma once

#include "front/store/dbworker.h"
#include "front/store/contexts.h"

/* The parts of a call that are needed to read its answer. */
struct pg_call {
    ctx_done done;
    void *arg;
    void (*read)(const struct pg_call *call, const struct dbworker_rows *rows,
                 struct ctx_reply *ret);
    char id[ID_LEN + 1];         /* of the context, for errors */
    char path[CTX_NAME_MAX + 1]; /* the same */
    struct ctx_limits limits;
    size_t limit; /* of a list */
};

/* The columns that a statement selects for a context, after the outcome: `PG_ROW("f.detail")`. */
#define PG_ROW(detail) "(" detail ").*, sandglass.ms(clock_timestamp())"
/* A call of one of the schema's functions that answer with an outcome and a context. */
#define PG_CALL(call) "SELECT f.outcome, " PG_ROW("f.detail") " FROM sandglass." call " f"

/* Each of these allocates what ret points to; pg_reply_done frees it. If the database answers
 * nonsense, it counts as not available. */
void pg_read_rows(const struct pg_call *call, const struct dbworker_rows *rows,
                  struct ctx_reply *ret);
/* Reads one row, and the text kept with it. */
void pg_read_replaced(const struct pg_call *call, const struct dbworker_rows *rows,
                      struct ctx_reply *ret);
void pg_read_forgotten(const struct pg_call *call, const struct dbworker_rows *rows,
                       struct ctx_reply *ret);
void pg_read_paths(const struct pg_call *call, const struct dbworker_rows *rows,
                   struct ctx_reply *ret);
void pg_read_usage(const struct pg_call *call, const struct dbworker_rows *rows,
                   struct ctx_reply *ret);
void pg_reply_done(struct ctx_reply *reply);
