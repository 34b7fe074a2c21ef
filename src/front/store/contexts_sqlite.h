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

struct answer {
    struct list link;
    struct ctx_sqlite *store;
    struct store *db; /* of the store */
    ctx_done done;
    void *arg;
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

struct answer *ctx_answer(struct ctx_store *base, ctx_done done, void *arg);
/* Queues the answer. r: the result of the call; an error of the database itself becomes -EAGAIN. */
void ctx_answer_send(struct answer *a, int r);

/* Begin and end one change. The end sends the answer. The change is made as a whole or, if r is
 * negative, not at all. */
int ctx_change_begin(struct answer *a, bool durable);
void ctx_change_end(struct answer *a, int r);

/* db_run and db_first, with the error in the answer. */
int ctx_run(struct answer *a, enum db_statement which, const struct db_value *with);
int ctx_first(struct answer *a, enum db_statement which, const struct db_value *with,
              sqlite3_stmt **ret);
/* Reads the columns of a usage, from column i on. Returns the column after them. */
int ctx_take_usage(sqlite3_stmt *st, int i, struct ctx_usage *ret);
/* Adds every row that the statement finds to the answer. */
int ctx_take_rows(struct answer *a, enum db_statement which, const struct db_value *with,
                  int64_t now_ms);
struct ctx_row *ctx_add_row(struct answer *a);
/* Adds the row, as it is now, to the answer. -ENOENT. */
int ctx_add_by_id(struct answer *a, const char *tenant, const char *id, int64_t now_ms);
/* Finds the active row of a path. -ENOENT. */
int ctx_find_active(struct answer *a, const char *tenant, const char *conversation,
                    const char *path, int64_t now_ms, struct ctx_found *ret);
/* Makes the row final, in the database and in `row`. */
int ctx_end_row(struct answer *a, struct ctx_row *row, enum ctx_status status, const char *error);
/* Takes the sandbox out of the row, if it has that sandbox. */
int ctx_lose_sandbox(struct answer *a, const char *tenant, const char *id, const char *sandbox_id);
/* Notes that the path exists. */
int ctx_add_path(struct answer *a, const char *tenant, const char *conversation, const char *path,
                 int64_t now_ms);
/* Limits a number to what the database can keep. */
int64_t ctx_number(uint64_t n);

#define CTX_NEVER_MADE "its server did not finish making its sandbox"

void ctx_sqlite_claim(struct ctx_store *s, const struct ctx_claim *q, ctx_done done, void *arg);
void ctx_sqlite_replace(struct ctx_store *s, const char *tenant, const char *id,
                        const char *sandbox_id, const char *node, const struct ctx_limits *limits,
                        ctx_done done, void *arg);
void ctx_sqlite_list(struct ctx_store *s, const struct ctx_list *q, ctx_done done, void *arg);
void ctx_sqlite_branch(struct ctx_store *s, const char *tenant, const char *conversation,
                       const char *from, const char *to, ctx_done done, void *arg);
void ctx_sqlite_merge(struct ctx_store *s, const char *tenant, const char *conversation,
                      const char *source, const char *target, ctx_done done, void *arg);
void ctx_sqlite_paths(struct ctx_store *s, const char *tenant, const char *conversation,
                      ctx_done done, void *arg);
void ctx_sqlite_expire(struct ctx_store *s, const char *node, const char *tenant, uint64_t lease_ms,
                       size_t limit, ctx_done done, void *arg);
void ctx_sqlite_recover(struct ctx_store *s, const char *node, const char *const *alive, size_t n,
                        ctx_done done, void *arg);
void ctx_sqlite_forget(struct ctx_store *s, const struct ctx_forget *q, ctx_done done, void *arg);
void ctx_sqlite_seen(struct ctx_store *s, const char *node, const char *url, ctx_done done,
                     void *arg);
void ctx_sqlite_leave(struct ctx_store *base, const char *node, ctx_done done, void *arg);
void ctx_sqlite_usage_add(struct ctx_store *s, const struct ctx_usage_add *adds, size_t n,
                          ctx_done done, void *arg);
void ctx_sqlite_usage_get(struct ctx_store *s, const struct ctx_usage_query *q, ctx_done done,
                          void *arg);
