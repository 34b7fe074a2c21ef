#include "front/store/contexts_sqlite.h"

#include <string.h>

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

/* Cuts off what is beyond a page: one more was asked for, to know whether there is more. */
static void end_page(struct answer *a, size_t limit)
{
    a->reply.more = a->reply.n > limit;
    if (a->reply.more)
        a->reply.n = limit;
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
    ctx_take_rows(a, list_statement(q),
                  DB_WITH(db_text(q->tenant), db_text(q->conversation), db_text(q->path),
                          db_text(q->sandbox_id), db_text(statuses),
                          db_number(first ? INT64_MAX : q->before_ms),
                          db_text(first ? "" : q->before_id), db_number((int64_t)limit + 1)));
    end_page(a, limit);
    ctx_answer_send(a);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Notes how one path relates to another. */
static void relate(struct answer *a, enum db_statement which, const char *tenant,
                   const char *conversation, const char *path, const char *other)
{
    ctx_run(a, which,
            DB_WITH(db_text(tenant), db_text(conversation), db_text(path), db_text(other)));
}

void ctx_sqlite_branch(struct ctx_store *base, const char *tenant, const char *conversation,
                       const char *from, const char *to, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, true, done, arg);
    struct ctx_found active;

    if (ctx_find_active(a, tenant, conversation, to, &active))
        a->r = ctx_error_active(&a->reply.e, to);
    ctx_add_path(a, tenant, conversation, from);
    ctx_add_path(a, tenant, conversation, to);
    relate(a, DB_PATH_FROM, tenant, conversation, to, from);
    ctx_change_end(a);
}

void ctx_sqlite_merge(struct ctx_store *base, const char *tenant, const char *conversation,
                      const char *source, const char *target, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, true, done, arg);
    struct ctx_found active;

    if (ctx_find_active(a, tenant, conversation, source, &active)) {
        ctx_end_row(a, &active.row, CTX_TERMINATED, "");
        *ctx_add_row(a) = active.row;
    }
    ctx_add_path(a, tenant, conversation, source);
    ctx_add_path(a, tenant, conversation, target);
    relate(a, DB_PATH_INTO, tenant, conversation, source, target);
    ctx_change_end(a);
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
    struct db_rows rows = ctx_rows(
        a, DB_PATHS, DB_WITH(db_text(tenant), db_text(conversation), db_number(CTX_LIST_MAX + 1)));

    while (db_next(&rows) && a->reply.n < CTX_LIST_MAX)
        take_path(rows.st, &paths[a->reply.n++]);
    a->reply.more = rows.r > 0;
    a->r = db_done(&rows);
    a->reply.paths = a->items = paths;
    ctx_answer_send(a);
}

/* ---- calls of the server itself -------------------------------------------------------------- */

/* Ends the answer's rows from `first` on. */
static void end_rows(struct answer *a, size_t first, enum ctx_status status, const char *error)
{
    for (size_t i = first; i < a->reply.n; i++)
        ctx_end_row(a, &a->rows[i], status, error);
}

static void reap(struct answer *a, enum db_statement which, const char *node, const char *tenant,
                 int64_t before, size_t limit)
{
    ctx_take_rows(a, which,
                  DB_WITH(db_text(node), db_number(a->now_ms - CTX_NODE_DEAD_MS), db_text(tenant),
                          db_number(before), db_number((int64_t)limit)));
}

void ctx_sqlite_expire(struct ctx_store *base, const char *node, const char *tenant,
                       uint64_t lease_ms, size_t limit, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    if (limit > ROWS_MAX)
        limit = ROWS_MAX;
    reap(a, DB_CTX_EXPIRED, node, tenant, a->now_ms, limit);
    end_rows(a, 0, CTX_TERMINATED, "");
    size_t expired = a->reply.n;
    if (expired < limit)
        reap(a, DB_CTX_STUCK, node, tenant, a->now_ms - ctx_number(lease_ms), limit - expired);
    end_rows(a, expired, CTX_ERROR, CTX_NEVER_MADE);
    ctx_change_end(a);
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

void ctx_sqlite_recover(struct ctx_store *base, const char *node, const char *const *alive,
                        size_t n, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);
    AUTO(free_p) char *ids = list_text(alive, n);

    ctx_take_rows(a, DB_CTX_HALF_MADE, DB_WITH(db_text(node), db_number(ROWS_MAX)));
    end_rows(a, 0, CTX_ERROR, CTX_NEVER_MADE);
    size_t dead = a->reply.n;
    ctx_take_rows(a, DB_CTX_DEAD, DB_WITH(db_text(node), db_text(ids), db_number(ROWS_MAX)));
    for (size_t i = dead; i < a->reply.n; i++)
        ctx_lose_sandbox(a, a->rows[i].tenant, a->rows[i].id, a->rows[i].sandbox_id);
    ctx_change_end(a);
}

void ctx_sqlite_seen(struct ctx_store *base, const char *node, const char *url, ctx_done done,
                     void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_run(a, DB_NODE_SEEN, DB_WITH(db_text(node), db_text(url), db_number(a->now_ms)));
    ctx_change_end(a);
}

void ctx_sqlite_leave(struct ctx_store *base, const char *node, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_run(a, DB_CTX_LEFT, DB_WITH(db_text(node)));
    ctx_run(a, DB_NODE_LEFT, DB_WITH(db_text(node)));
    ctx_change_end(a);
}

/* ---- usage ----------------------------------------------------------------------------------- */

/* Adds usage. `to`: a day, or a context, for which the day is a parameter of its own. */
static void add_usage(struct answer *a, enum db_statement which, const char *tenant, const char *to,
                      const char *day, const struct ctx_usage *u)
{
#define NUMBER(name) db_number(ctx_number(u->name)),
    ctx_run(a, which,
            DB_WITH(db_text(tenant), db_text(to),
                    CTX_USAGE(NUMBER) db_number(ctx_number(UINT64_MAX)), db_text(day)));
#undef NUMBER
}

void ctx_sqlite_usage_add(struct ctx_store *base, const struct ctx_usage_add *adds, size_t n,
                          ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);
    char today[CTX_DAY_LEN + 1];

    ctx_day(a->now_ms, today);
    for (size_t i = 0; i < n; i++) {
        const struct ctx_usage_add *add = &adds[i];

        add_usage(a, DB_DAY_USED, add->tenant, today, NULL, &add->usage);
        add_usage(a, DB_TALK_USED, add->tenant, add->context, today, &add->usage);
        if (add->context[0])
            add_usage(a, DB_CTX_USED, add->tenant, add->context, NULL, &add->usage);
    }
    ctx_change_end(a);
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
    struct db_rows rows = ctx_rows(
        a, usage_statement(q),
        DB_WITH(db_text(q->tenant), db_text(q->from), db_text(q->to), db_number((int64_t)max + 1),
                db_text(q->conversation ? q->conversation : after), db_text(q->after)));

    while (a->reply.n <= max && db_next(&rows)) {
        struct ctx_usage_row *row = &used[a->reply.n++];

        db_column(rows.st, 0, row->day, sizeof(row->day));
        db_column(rows.st, 1, row->conversation, sizeof(row->conversation));
        ctx_take_usage(rows.st, 2, &row->usage);
    }
    a->r = db_done(&rows);
    end_page(a, max);
    a->reply.used = a->items = used;
    ctx_answer_send(a);
}
