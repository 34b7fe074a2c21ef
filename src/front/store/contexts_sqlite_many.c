#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"

#define ROWS_MAX 4096 /* of expire and recover; further rows wait for the next call */

/* ---- lists ----------------------------------------------------------------------------------- */

/* "creating,ready". A search in this text is safe: no status's name is a part of another's. */
static void join_statuses(unsigned statuses, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = '\0';
    for (unsigned i = 0; i < CTX_STATUS_MAX_; i++)
        if (statuses & (1u << i))
            n += (size_t)snprintf(ret + n, cap - n, "%s,", ctx_status_text((enum ctx_status)i));
}

/* Picks the statement with the narrowest index that fits. */
static enum db_statement list_statement(const struct ctx_list *q)
{
    if (q->sandbox_id)
        return DB_CTX_LIST_SANDBOX;
    if (q->conversation)
        return DB_CTX_LIST_TALK;
    return (q->statuses & ~CTX_ACTIVE) == 0 ? DB_CTX_LIST_ACTIVE : DB_CTX_LIST;
}

void ctx_sqlite_list(struct ctx_store *base, const struct ctx_list *q, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    size_t limit = q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX;
    bool first = q->before_ms == 0;
    char statuses[64];

    join_statuses(q->statuses, statuses, sizeof(statuses));
    int r =
        ctx_take_rows(a, list_statement(q),
                      DB_WITH(db_text(q->tenant), db_text(q->conversation), db_text(q->path),
                              db_text(q->sandbox_id), db_text(statuses),
                              db_number(first ? INT64_MAX : q->before_ms),
                              db_text(first ? "" : q->before_id), db_number((int64_t)limit + 1)),
                      clock_wall_ms());
    if (r == 0 && a->reply.n > limit) {
        a->reply.n = limit;
        a->reply.more = true;
    }
    ctx_answer_send(a, r);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Notes how one path relates to another. */
static int relate(struct answer *a, enum db_statement which, const char *tenant,
                  const char *conversation, const char *path, const char *other)
{
    return ctx_run(a, which,
                   DB_WITH(db_text(tenant), db_text(conversation), db_text(path), db_text(other)));
}

void ctx_sqlite_branch(struct ctx_store *base, const char *tenant, const char *conversation,
                       const char *from, const char *to, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int64_t now = clock_wall_ms();
    struct ctx_found active;
    int r = ctx_change_begin(a, true);

    if (r == 0) {
        r = ctx_find_active(a, tenant, conversation, to, now, &active);
        if (r == 0)
            r = ctx_error_active(&a->reply.e, to);
        else if (r == -ENOENT)
            r = 0;
    }
    if (r == 0)
        r = ctx_add_path(a, tenant, conversation, from, now);
    if (r == 0)
        r = ctx_add_path(a, tenant, conversation, to, now);
    if (r == 0)
        r = relate(a, DB_PATH_FROM, tenant, conversation, to, from);
    ctx_change_end(a, r);
}

/* Ends the active row of a path, if there is one, and adds it to the answer. */
static int end_active(struct answer *a, const char *tenant, const char *conversation,
                      const char *path, int64_t now)
{
    struct ctx_found found;
    int r = ctx_find_active(a, tenant, conversation, path, now, &found);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = ctx_end_row(a, &found.row, CTX_TERMINATED, "");
    if (r == 0)
        *ctx_add_row(a) = found.row;
    return r;
}

void ctx_sqlite_merge(struct ctx_store *base, const char *tenant, const char *conversation,
                      const char *source, const char *target, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int64_t now = clock_wall_ms();
    int r = ctx_change_begin(a, true);

    if (r == 0)
        r = end_active(a, tenant, conversation, source, now);
    if (r == 0)
        r = ctx_add_path(a, tenant, conversation, source, now);
    if (r == 0)
        r = ctx_add_path(a, tenant, conversation, target, now);
    if (r == 0)
        r = relate(a, DB_PATH_INTO, tenant, conversation, source, target);
    ctx_change_end(a, r);
}

static void take_path(sqlite3_stmt *st, struct ctx_path *ret)
{
    char status[16];

    db_column(st, 0, ret->path, sizeof(ret->path));
    db_column(st, 1, ret->parent, sizeof(ret->parent));
    db_column(st, 2, ret->merged_into, sizeof(ret->merged_into));
    ret->created_ms = sqlite3_column_int64(st, 3);
    db_column(st, 4, ret->context, sizeof(ret->context));
    db_column(st, 5, status, sizeof(status));
    if (!ctx_status_parse(status, &ret->status))
        ret->status = CTX_TERMINATED;
}

void ctx_sqlite_paths(struct ctx_store *base, const char *tenant, const char *conversation,
                      ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    struct ctx_path *paths = xcalloc(CTX_LIST_MAX, sizeof(*paths));
    sqlite3_stmt *st;
    int r = db_query(a->db, DB_PATHS,
                     DB_WITH(db_text(tenant), db_text(conversation), db_number(CTX_LIST_MAX + 1)),
                     &st, &a->reply.e);

    if (r == 0) {
        while ((r = db_step(a->db, st, &a->reply.e)) > 0 && a->reply.n < CTX_LIST_MAX)
            take_path(st, &paths[a->reply.n++]);
        a->reply.more = r > 0;
        sqlite3_reset(st);
    }
    a->items = paths;
    a->reply.paths = paths;
    ctx_answer_send(a, r < 0 ? r : 0);
}

/* ---- calls of the server itself -------------------------------------------------------------- */

/* Ends the answer's rows from `first` on. */
static int end_rows(struct answer *a, size_t first, enum ctx_status status, const char *error)
{
    int r = 0;

    for (size_t i = first; r == 0 && i < a->reply.n; i++)
        r = ctx_end_row(a, &a->rows[i], status, error);
    return r;
}

static int reap(struct answer *a, enum db_statement which, const char *node, const char *tenant,
                int64_t before, size_t limit, int64_t now)
{
    return ctx_take_rows(a, which,
                         DB_WITH(db_text(node), db_number(now - CTX_NODE_DEAD_MS), db_text(tenant),
                                 db_number(before), db_number((int64_t)limit)),
                         now);
}

void ctx_sqlite_expire(struct ctx_store *base, const char *node, const char *tenant,
                       uint64_t lease_ms, size_t limit, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int64_t now = clock_wall_ms();
    int r = ctx_change_begin(a, false);

    if (limit > ROWS_MAX)
        limit = ROWS_MAX;
    if (r == 0)
        r = reap(a, DB_CTX_EXPIRED, node, tenant, now, limit, now);
    if (r == 0)
        r = end_rows(a, 0, CTX_TERMINATED, "");
    size_t expired = a->reply.n;
    if (r == 0 && expired < limit)
        r = reap(a, DB_CTX_STUCK, node, tenant, now - ctx_number(lease_ms), limit - expired, now);
    if (r == 0)
        r = end_rows(a, expired, CTX_ERROR, CTX_NEVER_MADE);
    ctx_change_end(a, r);
}

/* ["id", ...] */
static char *list_text(const char *const *ids, size_t n)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(16 + n * (ID_LEN + 4));
    struct json j = {.out = &text};

    jw_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        jw_string(&j, ids[i]);
    jw_array_end(&j);
    return strbuf_detach(&text, NULL);
}

/* Takes the sandbox out of the rows whose sandbox does not live any more. */
static int lose_dead(struct answer *a, const char *node, const char *alive)
{
    size_t first = a->reply.n;
    int r =
        ctx_take_rows(a, DB_CTX_DEAD, DB_WITH(db_text(node), db_text(alive), db_number(ROWS_MAX)),
                      clock_wall_ms());

    for (size_t i = first; r == 0 && i < a->reply.n; i++) {
        const struct ctx_row *row = &a->rows[i];

        r = ctx_lose_sandbox(a, row->tenant, row->id, row->sandbox_id);
    }
    return r;
}

void ctx_sqlite_recover(struct ctx_store *base, const char *node, const char *const *alive,
                        size_t n, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    AUTO(free_p) char *ids = list_text(alive, n);
    int r = ctx_change_begin(a, false);

    if (r == 0)
        r = ctx_take_rows(a, DB_CTX_HALF_MADE, DB_WITH(db_text(node), db_number(ROWS_MAX)),
                          clock_wall_ms());
    if (r == 0)
        r = end_rows(a, 0, CTX_ERROR, CTX_NEVER_MADE);
    if (r == 0)
        r = lose_dead(a, node, ids);
    ctx_change_end(a, r);
}

void ctx_sqlite_seen(struct ctx_store *base, const char *node, const char *url, ctx_done done,
                     void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int r = ctx_change_begin(a, false);

    if (r == 0)
        r = ctx_run(a, DB_NODE_SEEN,
                    DB_WITH(db_text(node), db_text(url), db_number(clock_wall_ms())));
    ctx_change_end(a, r);
}

void ctx_sqlite_leave(struct ctx_store *base, const char *node, ctx_done done, void *arg)
{
    static const enum db_statement statements[] = {DB_CTX_LEFT, DB_NODE_LEFT};
    struct answer *a = ctx_answer(base, done, arg);
    int r = ctx_change_begin(a, false);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(statements); i++)
        r = ctx_run(a, statements[i], DB_WITH(db_text(node)));
    ctx_change_end(a, r);
}

/* ---- usage ----------------------------------------------------------------------------------- */

/* Adds usage. `to`: a day, or a context, for which the day is a parameter of its own. */
static int add_usage(struct answer *a, enum db_statement which, const char *tenant, const char *to,
                     const char *day, const struct ctx_usage *u)
{
#define NUMBER(name) db_number(ctx_number(u->name)),
    return ctx_run(a, which,
                   DB_WITH(db_text(tenant), db_text(to),
                           CTX_USAGE(NUMBER) db_number(ctx_number(UINT64_MAX)), db_text(day)));
#undef NUMBER
}

void ctx_sqlite_usage_add(struct ctx_store *base, const struct ctx_usage_add *adds, size_t n,
                          ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    char today[CTX_DAY_LEN + 1];
    int r = ctx_change_begin(a, false);

    ctx_day(clock_wall_ms(), today);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct ctx_usage_add *add = &adds[i];

        r = add_usage(a, DB_DAY_USED, add->tenant, today, NULL, &add->usage);
        if (r == 0)
            r = add_usage(a, DB_TALK_USED, add->tenant, add->context, today, &add->usage);
        if (r == 0 && add->context[0])
            r = add_usage(a, DB_CTX_USED, add->tenant, add->context, NULL, &add->usage);
    }
    ctx_change_end(a, r);
}

static enum db_statement usage_statement(const struct ctx_usage_query *q)
{
    if (q->by == USAGE_BY_DAY)
        return q->conversation ? DB_TALK_DAYS : DB_DAYS;
    return q->conversation ? DB_TALK : DB_TALKS;
}

void ctx_sqlite_usage_get(struct ctx_store *base, const struct ctx_usage_query *q, ctx_done done,
                          void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    size_t max = q->by == USAGE_BY_DAY ? CTX_DAYS_MAX : CTX_LIST_MAX;
    struct ctx_usage_row *used = xcalloc(max + 1, sizeof(*used));
    const char *after = q->after ? q->after : "";
    sqlite3_stmt *st;
    int r = db_query(a->db, usage_statement(q),
                     DB_WITH(db_text(q->tenant), db_text(q->from), db_text(q->to),
                             db_number((int64_t)max + 1),
                             db_text(q->conversation ? q->conversation : after), db_text(q->after)),
                     &st, &a->reply.e);

    if (r == 0) {
        while (a->reply.n <= max && (r = db_step(a->db, st, &a->reply.e)) > 0) {
            struct ctx_usage_row *row = &used[a->reply.n++];

            db_column(st, 0, row->day, sizeof(row->day));
            db_column(st, 1, row->conversation, sizeof(row->conversation));
            ctx_take_usage(st, 2, &row->usage);
        }
        sqlite3_reset(st);
    }
    if (a->reply.n > max) {
        a->reply.n = max;
        a->reply.more = true;
    }
    a->items = used;
    a->reply.used = used;
    ctx_answer_send(a, r < 0 ? r : 0);
}
