/* Retention: deletes rows that are too old, a few in each call, so that the loop stands still for
 * only a millisecond or two, however many there are. */
#include "front/store/contexts_sqlite.h"

/* Runs a deletion of rows from before a time, at most `limit`; counts the deleted rows. */
static void delete_some(struct answer *a, enum db_statement which, struct db_value before,
                        size_t limit)
{
    ctx_run(a, which, DB_WITH(before, db_number((int64_t)limit)));
    size_t n = a->r == 0 ? (size_t)db_changed(a->db) : 0;

    a->reply.n += n;
    a->reply.more = a->reply.more || n >= limit;
}

/* No index can tell which paths may go. So each call looks at `limit` paths, from where the last
 * call ended. */
static void forget_paths(struct answer *a, struct db_value before, const struct ctx_forget *q,
                         size_t limit)
{
    struct db_value cursor = db_number(ctx_number(q->cursor));
    struct db_rows row = ctx_rows(a, DB_PATH_WINDOW, DB_WITH(cursor, db_number((int64_t)limit)));

    if (!db_next(&row)) {
        a->r = row.r;
        return;
    }
    int64_t last = sqlite3_column_int64(row.st, 0);
    bool full = sqlite3_column_int64(row.st, 1) >= (int64_t)limit;
    db_done(&row);
    ctx_run(a, DB_PATH_FORGET, DB_WITH(cursor, db_number(last), before));
    if (a->r < 0)
        return;
    a->reply.n += (size_t)db_changed(a->db);
    a->reply.more = a->reply.more || full;
    a->reply.cursor = full ? (uint64_t)last : 0;
}

void ctx_sqlite_forget(struct ctx_store *base, const struct ctx_forget *q, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);
    size_t limit = q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX;
    char day[CTX_DAY_LEN + 1];

    if (q->context_keep_ms > 0) {
        struct db_value before = db_number(a->now_ms - ctx_number(q->context_keep_ms));

        delete_some(a, DB_CTX_FORGET, before, limit);
        ctx_run(a, DB_NODE_FORGET, DB_WITH(before));
        forget_paths(a, before, q, limit);
    }
    if (q->usage_keep_ms > 0) {
        ctx_day(a->now_ms - ctx_number(q->usage_keep_ms), day);
        delete_some(a, DB_DAY_FORGET, db_text(day), limit);
        delete_some(a, DB_TALK_FORGET, db_text(day), limit);
    }
    ctx_change_end(a);
}
