/* What the files of the SQLite store of contexts share.
 *
 *   contexts_sqlite.c        opening, answers, one row from settle to its end
 *   contexts_sqlite_claim.c  get-or-create and replace, with the limits
 *   contexts_sqlite_many.c   lists, paths, what expires, usage
 *
 * A call does its work at once and puts the answer into a queue, which the loop empties after it
 * has looked for events: whoever asks during one has the answer before the next.
 *
 * Commits do not wait for the disk: a power cut ends every sandbox that a row speaks of. Only the
 * family of paths, which nobody could make again, is waited for. */
#pragma once

#include "front/store/contexts_common.h"
#include "front/store/db.h"

struct answer {
    struct answer *next;
    ctx_done done;
    void *arg;
    struct ctx_reply reply;
    struct ctx_row *rows; /* what the reply points to */
    size_t cap;
    void *items; /* paths, usage, or what was kept */
};

struct ctx_sqlite {
    struct ctx_store base;
    struct store *db;
    bool own; /* the database is ours, in memory */
    struct answer *first, **last;
    uv_check_t check;
    uv_idle_t idle; /* keeps the loop from waiting while there are answers */
    unsigned handles;
};

/* A row and what only this store knows of it. */
struct ctx_found {
    struct ctx_row row;
    int64_t making_ms;
};

struct ctx_sqlite *ctx_sqlite_of(struct ctx_store *s);
struct answer *ctx_answer(ctx_done done, void *arg);
/* Queues it. r: what came of it; what the database says is made -EAGAIN. */
void ctx_answer_send(struct ctx_sqlite *s, struct answer *a, int r);

/* A change is between these two. Ending it sends the answer: all of it was done, or, r < 0,
 * nothing.
 */
int ctx_change_begin(struct ctx_sqlite *s, bool durable, struct answer *a);
void ctx_change_end(struct ctx_sqlite *s, struct answer *a, int r);

/* A statement with its first parameters, which are texts. */
int ctx_statement(struct ctx_sqlite *s, enum db_statement which, sqlite3_stmt **ret,
                  struct sg_error *e, size_t n, const char *const *texts);
#define CTX_STATEMENT(s, which, ret, e, ...)                                          \
    ctx_statement(s, which, ret, e, ARRAY_SIZE(((const char *const[]){__VA_ARGS__})), \
                  (const char *const[]){__VA_ARGS__})
/* The row that the statement stands on. */
void ctx_take_row(sqlite3_stmt *st, int64_t now_ms, struct ctx_found *ret);
/* The columns of a usage, of which the first is i. The one after them. */
int ctx_take_usage(sqlite3_stmt *st, int i, struct ctx_usage *ret);
/* Adds every row that the statement finds. */
int ctx_take_rows(struct ctx_sqlite *s, sqlite3_stmt *st, int64_t now_ms, struct answer *a);
struct ctx_row *ctx_add_row(struct answer *a);
/* Adds the row as it is now. -ENOENT. */
int ctx_add_by_id(struct ctx_sqlite *s, const char *tenant, const char *id, int64_t now_ms,
                  struct answer *a);
/* The active row of a path. -ENOENT. */
int ctx_find_active(struct ctx_sqlite *s, const char *tenant, const char *conversation,
                    const char *path, int64_t now_ms, struct ctx_found *ret, struct sg_error *e);
/* Makes it final, in the database and in `row`. */
int ctx_end_row(struct ctx_sqlite *s, struct ctx_row *row, enum ctx_status status,
                const char *error, struct sg_error *e);
/* Notes that there is such a path. */
int ctx_add_path(struct ctx_sqlite *s, const char *tenant, const char *conversation,
                 const char *path, int64_t now_ms, struct sg_error *e);
/* A number as the database can keep it. */
int64_t ctx_number(uint64_t n);
uint64_t ctx_column_u64(sqlite3_stmt *st, int i);

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
