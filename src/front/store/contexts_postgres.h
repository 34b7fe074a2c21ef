/* How the rows of the database become those of contexts.h. For contexts_postgres.c. */
#pragma once

#include "front/store/dbworker.h"
#include "front/store/contexts.h"

/* What a call asked, as far as its answer needs it. */
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

/* What a statement selects for a context, beside the outcome: `PG_ROW("f.detail")`. */
#define PG_ROW(detail) "(" detail ").*, sandglass.ms(clock_timestamp())"

/* Each allocates what ret points to, which pg_reply_done frees. A database that answers what cannot
 * be is one that is not available. */
void pg_read_rows(const struct pg_call *call, const struct dbworker_rows *rows,
                  struct ctx_reply *ret);
/* One row, and what was kept with it. */
void pg_read_replaced(const struct pg_call *call, const struct dbworker_rows *rows,
                      struct ctx_reply *ret);
void pg_read_forgotten(const struct pg_call *call, const struct dbworker_rows *rows,
                       struct ctx_reply *ret);
void pg_read_paths(const struct pg_call *call, const struct dbworker_rows *rows,
                   struct ctx_reply *ret);
void pg_read_usage(const struct pg_call *call, const struct dbworker_rows *rows,
                   struct ctx_reply *ret);
void pg_reply_done(struct ctx_reply *reply);
