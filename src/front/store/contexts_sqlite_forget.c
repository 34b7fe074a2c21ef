/* Retention: deletes rows that are too old, a few in each call, so that the loop stands still for
 * only a millisecond or two, however many there are. */
#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"

/* Runs a deletion of rows from before a time, at most `limit`; counts the deleted rows. */
static int delete_some(struct answer *a, enum db_statement which, struct db_value before,
                       size_t limit)
{
    int r = ctx_run(a, which, DB_WITH(before, db_number((int64_t)limit)));
    size_t n = r == 0 ? (size_t)db_changed(a->db) : 0;

    a->reply.n += n;
    a->reply.more = a->reply.more || n >= limit;
    return r;
}

static int forget_contexts(struct answer *a, int64_t before_ms, size_t limit)
{
    struct db_value before = db_number(before_ms);
    int r = delete_some(a, DB_CTX_FORGET, before, limit);

    return r < 0 ? r : ctx_run(a, DB_NODE_FORGET, DB_WITH(before));
}

/* No index can tell which paths may go. So each call looks at `limit` paths, from where the last
 * call ended. */
static int forget_paths(struct answer *a, int64_t before_ms, const struct ctx_forget *q,
                        size_t limit)
{
    struct db_value cursor = db_number(ctx_number(q->cursor));
    sqlite3_stmt *st;
    int r = ctx_first(a, DB_PATH_WINDOW, DB_WITH(cursor, db_number((int64_t)limit)), &st);

    if (r <= 0)
        return r;
    int64_t last = sqlite3_column_int64(st, 0);
    bool full = sqlite3_column_int64(st, 1) >= (int64_t)limit;
    sqlite3_reset(st);
    r = ctx_run(a, DB_PATH_FORGET, DB_WITH(cursor, db_number(last), db_number(before_ms)));
    if (r < 0)
        return r;
    a->reply.n += (size_t)db_changed(a->db);
    a->reply.more = a->reply.more || full;
    a->reply.cursor = full ? (uint64_t)last : 0;
    return 0;
}

void ctx_sqlite_forget(struct ctx_store *base, const struct ctx_forget *q, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    size_t limit = q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX;
    int64_t now = clock_wall_ms();
    char day[CTX_DAY_LEN + 1];
    int r = ctx_change_begin(a, false);

    if (r == 0 && q->context_keep_ms > 0)
        r = forget_contexts(a, now - ctx_number(q->context_keep_ms), limit);
    if (r == 0 && q->context_keep_ms > 0)
        r = forget_paths(a, now - ctx_number(q->context_keep_ms), q, limit);
    ctx_day(now - ctx_number(q->usage_keep_ms), day);
    if (r == 0 && q->usage_keep_ms > 0)
        r = delete_some(a, DB_DAY_FORGET, db_text(day), limit);
    if (r == 0 && q->usage_keep_ms > 0)
        r = delete_some(a, DB_TALK_FORGET, db_text(day), limit);
    ctx_change_end(a, r);
}
