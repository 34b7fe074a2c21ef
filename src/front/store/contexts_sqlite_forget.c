/* Retention: deletes rows that are too old, a few in each call, so that the loop stands still for
 * only a millisecond or two, however many there are. */
#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"

/* Runs a deletion of rows from before a time, at most `limit`; counts the deleted rows. */
static int delete_some(struct ctx_sqlite *s, enum db_statement which, struct db_value before,
                       size_t limit, struct answer *a)
{
    int r = db_run(s->db, which, DB_WITH(before, db_number((int64_t)limit)), &a->reply.e);
    size_t n = r == 0 ? (size_t)db_changed(s->db) : 0;

    a->reply.n += n;
    a->reply.more = a->reply.more || n >= limit;
    return r;
}

static int forget_contexts(struct ctx_sqlite *s, int64_t before_ms, size_t limit, struct answer *a)
{
    struct db_value before = db_number(before_ms);
    int r = delete_some(s, DB_CTX_FORGET, before, limit, a);

    return r < 0 ? r : db_run(s->db, DB_NODE_FORGET, DB_WITH(before), &a->reply.e);
}

/* No index can tell which paths may go. So each call looks at `limit` paths, from where the last
 * call ended. */
static int forget_paths(struct ctx_sqlite *s, int64_t before_ms, const struct ctx_forget *q,
                        size_t limit, struct answer *a)
{
    struct db_value cursor = db_number(ctx_number(q->cursor));
    sqlite3_stmt *st;
    int r = db_first(s->db, DB_PATH_WINDOW, DB_WITH(cursor, db_number((int64_t)limit)), &st,
                     &a->reply.e);

    if (r <= 0)
        return r;
    int64_t last = sqlite3_column_int64(st, 0);
    bool full = sqlite3_column_int64(st, 1) >= (int64_t)limit;
    sqlite3_reset(st);
    r = db_run(s->db, DB_PATH_FORGET, DB_WITH(cursor, db_number(last), db_number(before_ms)),
               &a->reply.e);
    if (r < 0)
        return r;
    a->reply.n += (size_t)db_changed(s->db);
    a->reply.more = a->reply.more || full;
    a->reply.cursor = full ? (uint64_t)last : 0;
    return 0;
}

void ctx_sqlite_forget(struct ctx_store *base, const struct ctx_forget *q, ctx_done done, void *arg)
{
    struct ctx_sqlite *s = ctx_sqlite_of(base);
    struct answer *a = ctx_answer(done, arg);
    size_t limit = q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX;
    int64_t now = clock_wall_ms();
    char day[CTX_DAY_LEN + 1];
    int r = ctx_change_begin(s, false, a);

    if (r == 0 && q->context_keep_ms > 0)
        r = forget_contexts(s, now - ctx_number(q->context_keep_ms), limit, a);
    if (r == 0 && q->context_keep_ms > 0)
        r = forget_paths(s, now - ctx_number(q->context_keep_ms), q, limit, a);
    ctx_day(now - ctx_number(q->usage_keep_ms), day);
    if (r == 0 && q->usage_keep_ms > 0)
        r = delete_some(s, DB_DAY_FORGET, db_text(day), limit, a);
    if (r == 0 && q->usage_keep_ms > 0)
        r = delete_some(s, DB_TALK_FORGET, db_text(day), limit, a);
    ctx_change_end(s, a, r);
}
