#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"

static struct ctx_sqlite *sqlite_of(struct ctx_store *s)
{
    return CONTAINER_OF(s, struct ctx_sqlite, base);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer *ctx_answer(struct ctx_store *base, ctx_done done, void *arg)
{
    struct ctx_sqlite *s = sqlite_of(base);

    return NEW(struct answer, .store = s, .db = s->db, .done = done, .arg = arg,
               .now_ms = clock_wall_ms());
}

static void deliver(struct answer *a)
{
    a->reply.rows = a->rows;
    a->done(a->arg, &a->reply);
    free(a->rows);
    free(a->items);
    free(a);
}

/* Calls that the callbacks make are answered in the loop's next turn. */
static void deliver_all(struct ctx_sqlite *s)
{
    struct list answers = {0};

    list_move(&s->answers, &answers);
    uv_check_stop(&s->check);
    uv_idle_stop(&s->idle);
    for (struct answer *a; (a = LIST_POP(struct answer, &answers, link));)
        deliver(a);
}

static void on_check(uv_check_t *check)
{
    deliver_all(check->data);
}

static void on_idle(uv_idle_t *idle UNUSED)
{
}

/* Whether contexts.h lists the error; every other one is the database's trouble. */
static bool is_ours(int r)
{
    return r == -EDQUOT || r == -ENOENT || r == -EEXIST || r == -ESTALE;
}

void ctx_answer_send(struct answer *a)
{
    struct ctx_sqlite *s = a->store;

    if (a->r < 0 && !is_ours(a->r)) {
        struct sg_error why = a->reply.e;

        a->r = ctx_error_unavailable(&a->reply.e, why.message);
    }
    a->reply.r = a->r;
    if (a->r < 0)
        a->reply.n = 0;
    if (list_empty(&s->answers)) {
        uv_check_start(&s->check, on_check);
        uv_idle_start(&s->idle, on_idle);
    }
    list_append(&s->answers, &a->link);
}

struct answer *ctx_change(struct ctx_store *base, bool durable, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);

    a->r = db_begin_soon(a->db, durable, &a->reply.e);
    return a;
}

void ctx_change_end(struct answer *a)
{
    a->r = db_end(a->db, a->r, &a->reply.e);
    ctx_answer_send(a);
}

/* ---- rows ------------------------------------------------------------------------------------ */

int64_t ctx_number(uint64_t n)
{
    const uint64_t most = 1ull << 53; /* any program that reads the file can hold that number */

    return (int64_t)(n < most ? n : most);
}

static uint64_t column_u64(sqlite3_stmt *st, int i)
{
    int64_t n = sqlite3_column_int64(st, i);

    return n < 0 ? 0 : (uint64_t)n;
}

void ctx_run(struct answer *a, enum db_statement which, const struct db_value *with)
{
    if (a->r == 0)
        a->r = db_run(a->db, which, with, &a->reply.e);
}

struct db_rows ctx_rows(struct answer *a, enum db_statement which, const struct db_value *with)
{
    return a->r < 0 ? (struct db_rows){.r = a->r} : db_rows(a->db, which, with, &a->reply.e);
}

int ctx_take_usage(sqlite3_stmt *st, int i, struct ctx_usage *ret)
{
#define TAKE(name) ret->name = column_u64(st, i++);
    CTX_USAGE(TAKE)
#undef TAKE
    return i;
}

/* Reads the statement's current row. */
static struct ctx_found take_row(sqlite3_stmt *st, int64_t now_ms)
{
    struct ctx_found found = {.row.now_ms = now_ms};
    struct ctx_row *row = &found.row;
    char status[16];
    int i = 0;

    db_column(st, i++, row->id, sizeof(row->id));
    db_column(st, i++, row->tenant, sizeof(row->tenant));
    db_column(st, i++, row->conversation, sizeof(row->conversation));
    db_column(st, i++, row->path, sizeof(row->path));
    db_column(st, i++, row->parent, sizeof(row->parent));
    db_column(st, i++, row->sandbox_id, sizeof(row->sandbox_id));
    db_column(st, i++, row->template_id, sizeof(row->template_id));
    db_column(st, i++, status, sizeof(status));
    if (!ctx_status_parse(status, &row->status))
        row->status = CTX_ERROR;
    row->created_ms = sqlite3_column_int64(st, i++);
    found.making_ms = sqlite3_column_int64(st, i++);
    row->used_ms = sqlite3_column_int64(st, i++);
    row->expires_ms = sqlite3_column_int64(st, i++);
    row->terminated_ms = sqlite3_column_int64(st, i++);
    row->ttl_ms = column_u64(st, i++);
    db_column(st, i++, row->error, sizeof(row->error));
    i = ctx_take_usage(st, i, &row->usage);
    db_column(st, i++, row->node, sizeof(row->node));
    db_column(st, i++, row->node_url, sizeof(row->node_url));
    row->node_alive = sqlite3_column_type(st, i) != SQLITE_NULL &&
                      now_ms - sqlite3_column_int64(st, i) <= CTX_NODE_DEAD_MS;
    return found;
}

struct ctx_row *ctx_add_row(struct answer *a)
{
    if (a->reply.n == a->cap) {
        a->cap = a->cap ? a->cap * 4 : 1; /* most answers have one */
        a->rows = xrealloc(a->rows, a->cap, sizeof(a->rows[0]));
    }
    return &a->rows[a->reply.n++];
}

void ctx_take_rows(struct answer *a, enum db_statement which, const struct db_value *with)
{
    struct db_rows rows = ctx_rows(a, which, with);

    while (db_next(&rows))
        *ctx_add_row(a) = take_row(rows.st, a->now_ms).row;
    a->r = db_done(&rows);
}

/* Reads the first row of a statement. False: there is none, or an error. */
static bool take_one(struct answer *a, enum db_statement which, const struct db_value *with,
                     struct ctx_found *ret)
{
    struct db_rows row = ctx_rows(a, which, with);
    bool found = db_next(&row);

    if (found)
        *ret = take_row(row.st, a->now_ms);
    a->r = db_done(&row);
    return found;
}

void ctx_add_by_id(struct answer *a, const char *tenant, const char *id)
{
    struct ctx_found found;

    if (take_one(a, DB_CTX_BY_ID, DB_WITH(db_text(tenant), db_text(id)), &found))
        *ctx_add_row(a) = found.row;
    else if (a->r == 0)
        a->r = ctx_error_unknown(&a->reply.e, id);
}

void ctx_add_if_ready(struct answer *a, const char *tenant, const char *id, const char *sandbox_id)
{
    ctx_add_by_id(a, tenant, id);
    if (a->r == -ENOENT || (a->r == 0 && (a->rows[0].status != CTX_READY ||
                                          strcmp(a->rows[0].sandbox_id, sandbox_id) != 0)))
        a->r = ctx_error_stale(&a->reply.e, id);
}

bool ctx_find_active(struct answer *a, const char *tenant, const char *conversation,
                     const char *path, struct ctx_found *ret)
{
    return take_one(a, DB_CTX_BY_PATH,
                    DB_WITH(db_text(tenant), db_text(conversation), db_text(path)), ret);
}

void ctx_end_row(struct answer *a, struct ctx_row *row, enum ctx_status status, const char *error)
{
    row->status = status;
    row->terminated_ms = row->now_ms;
    snprintf(row->error, sizeof(row->error), "%s", error);
    ctx_run(a, DB_CTX_END,
            DB_WITH(db_text(row->tenant), db_text(row->id), db_text(ctx_status_text(status)),
                    db_number(row->now_ms), db_text(error)));
}

/* ---- one row --------------------------------------------------------------------------------- */

static void ctx_sqlite_get(struct ctx_store *base, const char *tenant, const char *id,
                           ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);

    ctx_add_by_id(a, tenant, id);
    ctx_answer_send(a);
}

/* Runs a statement that changes the row only if it is as expected. If it was not, the error is
 * `otherwise`. */
static void change_row(struct answer *a, enum db_statement which, const struct db_value *with,
                       const char *tenant, const char *id,
                       int (*otherwise)(struct sg_error *e, const char *id))
{
    ctx_run(a, which, with);
    if (a->r == 0 && db_changed(a->db) == 0)
        a->r = otherwise(&a->reply.e, id);
    ctx_add_by_id(a, tenant, id);
}

static void keep(struct answer *a, const char *id, const char *kept)
{
    ctx_run(a, DB_CTX_KEEP, DB_WITH(db_text(id), db_text(kept)));
}

static void ctx_sqlite_settle(struct ctx_store *base, const char *tenant, const char *id,
                              const char *node, const char *sandbox_id, const char *error,
                              const char *kept, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);
    char text[CTX_ERROR_MAX + 1];

    ctx_clean_text(text, sizeof(text), error ? error : "");
    change_row(a, sandbox_id ? DB_CTX_SETTLE : DB_CTX_FAIL,
               DB_WITH(db_text(tenant), db_text(id), db_text(node),
                       db_text(sandbox_id ? sandbox_id : text), db_number(a->now_ms)),
               tenant, id, ctx_error_stale);
    if (sandbox_id && kept)
        keep(a, id, kept);
    ctx_change_end(a);
}

static void ctx_sqlite_keep(struct ctx_store *base, const char *tenant, const char *id,
                            const char *sandbox_id, const char *kept, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_add_if_ready(a, tenant, id, sandbox_id);
    keep(a, id, kept);
    ctx_change_end(a);
}

static void ctx_sqlite_touch(struct ctx_store *base, const char *tenant, const char *id,
                             uint64_t ttl_ms, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    change_row(
        a, DB_CTX_MOVE,
        DB_WITH(db_text(tenant), db_text(id), db_number(a->now_ms), db_number(ctx_number(ttl_ms))),
        tenant, id, ctx_error_unknown);
    ctx_change_end(a);
}

void ctx_lose_sandbox(struct answer *a, const char *tenant, const char *id, const char *sandbox_id)
{
    ctx_run(a, DB_CTX_LOST, DB_WITH(db_text(tenant), db_text(id), db_text(sandbox_id)));
}

static void ctx_sqlite_lost(struct ctx_store *base, const char *tenant, const char *id,
                            const char *sandbox_id, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_lose_sandbox(a, tenant, id, sandbox_id);
    ctx_change_end(a);
}

static void ctx_sqlite_terminate(struct ctx_store *base, const char *tenant, const char *id,
                                 ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_add_by_id(a, tenant, id);
    if (a->r == 0 && ((1u << a->rows[0].status) & CTX_ACTIVE))
        ctx_end_row(a, &a->rows[0], CTX_TERMINATED, "");
    ctx_change_end(a);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct ctx_sqlite *s = handle->data;

    if (--s->handles == 0)
        free(s);
}

/* Answers the callers that still wait. */
static void ctx_sqlite_close(struct ctx_store *base)
{
    struct ctx_sqlite *s = sqlite_of(base);

    while (!list_empty(&s->answers))
        deliver_all(s);
    if (s->own)
        store_close(s->db);
    uv_close((uv_handle_t *)&s->check, on_handle_closed);
    uv_close((uv_handle_t *)&s->idle, on_handle_closed);
}

static const struct ctx_store_ops ops = {
    .close = ctx_sqlite_close,
    .claim = ctx_sqlite_claim,
    .replace = ctx_sqlite_replace,
    .settle = ctx_sqlite_settle,
    .keep = ctx_sqlite_keep,
    .touch = ctx_sqlite_touch,
    .lost = ctx_sqlite_lost,
    .terminate = ctx_sqlite_terminate,
    .get = ctx_sqlite_get,
    .list = ctx_sqlite_list,
    .branch = ctx_sqlite_branch,
    .merge = ctx_sqlite_merge,
    .paths = ctx_sqlite_paths,
    .expire = ctx_sqlite_expire,
    .recover = ctx_sqlite_recover,
    .forget = ctx_sqlite_forget,
    .seen = ctx_sqlite_seen,
    .leave = ctx_sqlite_leave,
    .usage_add = ctx_sqlite_usage_add,
    .usage_get = ctx_sqlite_usage_get,
};

int ctx_store_sqlite(uv_loop_t *loop, struct store *db, struct ctx_store **ret, struct sg_error *e)
{
    struct store *own = NULL;
    int r = db ? 0 : db_open_memory(&own, e);

    if (r < 0)
        return r;
    struct ctx_sqlite *s = NEW(struct ctx_sqlite, .base = {.ops = &ops, .loop = loop},
                               .db = db ? db : own, .own = own != NULL, .handles = 2);
    uv_check_init(loop, &s->check);
    uv_idle_init(loop, &s->idle);
    s->check.data = s->idle.data = s;
    *ret = &s->base;
    return 0;
}
