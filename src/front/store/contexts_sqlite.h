/* The parts that the files of the SQLite store of contexts share.
 *
 *   contexts_sqlite.c         opening, answers, one row from settle to its end
 *   contexts_sqlite_claim.c   get-or-create and replace, with the limits
 *   contexts_sqlite_many.c    lists, paths, expiry, usage
 *   contexts_sqlite_forget.c  retention
 *
 * A call does its work at once and puts the answer into a queue. The loop empties the queue after
 * it has polled for events: a call made while one event is handled is answered before the next
 * poll.
 *
 * Commits do not wait for the disk: a power cut ends every sandbox that a row speaks of anyway.
 * Only commits about the family of paths wait, since nobody could make that again. */
#pragma once

#include "front/store/contexts_common.h"
#include "front/store/db.h"
#include "lib/base/list.h"

/* A call, until it is answered. The first error stays: after it, no function below does anything. So
 * a call does all its steps, and its end looks at the error. */
struct answer {
    struct list link;
    struct ctx_sqlite *store;
    struct store *db; /* of the store */
    ctx_done done;
    void *arg;
    int r;          /* 0, or the first error, which is in reply.e */
    int64_t now_ms; /* of the call */
    struct ctx_reply reply;
    struct ctx_row *rows; /* the reply points to these */
    size_t cap;
    void *items; /* paths, usage, or the kept text, for the reply */
};

struct ctx_sqlite {
    struct ctx_store base;
    struct store *db;
    bool own; /* this store opened the database, in memory */
    struct list answers;
    uv_check_t check;
    uv_idle_t idle; /* keeps the loop from sleeping while answers are queued */
    unsigned handles;
};

/* A row, with the column that only this store needs. */
struct ctx_found {
    struct ctx_row row;
    int64_t making_ms;
};

/* A call that only reads. */
struct answer *ctx_answer(struct ctx_store *base, ctx_done done, void *arg);
/* Queues the answer. An error of the database itself becomes -EAGAIN. */
void ctx_answer_send(struct answer *a);

/* Begin and end a call that is one change. The end sends the answer. The change is made as a whole
 * or, after an error, not at all. */
struct answer *ctx_change(struct ctx_store *base, bool durable, ctx_done done, void *arg);
void ctx_change_end(struct answer *a);

/* db_run and db_rows for a call. */
void ctx_run(struct answer *a, enum db_statement which, const struct db_value *with);
struct db_rows ctx_rows(struct answer *a, enum db_statement which, const struct db_value *with);
/* Reads the columns of a usage, from column i on. Returns the column after them. */
int ctx_take_usage(sqlite3_stmt *st, int i, struct ctx_usage *ret);
/* Adds every row that the statement finds to the answer. */
void ctx_take_rows(struct answer *a, enum db_statement which, const struct db_value *with);
struct ctx_row *ctx_add_row(struct answer *a);
/* Adds the row, as it is now, to the answer. -ENOENT. */
void ctx_add_by_id(struct answer *a, const char *tenant, const char *id);
/* The same for a row that must be READY with this sandbox: -ESTALE. */
void ctx_add_if_ready(struct answer *a, const char *tenant, const char *id, const char *sandbox_id);
/* Finds the active row of a path. False: there is none, or an error. */
bool ctx_find_active(struct answer *a, const char *tenant, const char *conversation,
                     const char *path, struct ctx_found *ret);
/* Makes the row final, in the database and in `row`. */
void ctx_end_row(struct answer *a, struct ctx_row *row, enum ctx_status status, const char *error);
/* Takes the sandbox out of the row, if it has that sandbox. */
void ctx_lose_sandbox(struct answer *a, const char *tenant, const char *id, const char *sandbox_id);
/* Notes that the path exists. */
void ctx_add_path(struct answer *a, const char *tenant, const char *conversation, const char *path);
/* Limits a number to what the database can keep. */
int64_t ctx_number(uint64_t n);

#define CTX_NEVER_MADE "its server did not finish making its sandbox"

/* The operations of contexts.h that are in the other files. */
#define CTX_SQLITE(op) __typeof__(*((struct ctx_store_ops *)NULL)->op) ctx_sqlite_##op
CTX_SQLITE(claim);
CTX_SQLITE(replace);
CTX_SQLITE(list);
CTX_SQLITE(branch);
CTX_SQLITE(merge);
CTX_SQLITE(paths);
CTX_SQLITE(expire);
CTX_SQLITE(recover);
CTX_SQLITE(forget);
CTX_SQLITE(seen);
CTX_SQLITE(leave);
CTX_SQLITE(usage_add);
CTX_SQLITE(usage_get);
