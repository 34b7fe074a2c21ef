#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"

/* Checks that the limits allow one more sandbox of this conversation. */
static int check_limits(struct ctx_sqlite *s, const char *tenant, const char *conversation,
                        const struct ctx_limits *limits, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_first(s->db, DB_CTX_COUNT, DB_WITH(db_text(tenant), db_text(conversation)), &st, e);

    if (r < 0)
        return r;
    int64_t of_tenant = sqlite3_column_int64(st, 0), of_conversation = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    if (of_conversation >= limits->conversation)
        return ctx_error_conversation_limit(e, limits->conversation);
    if (of_tenant >= limits->tenant)
        return ctx_error_tenant_limit(e, limits->tenant);
    return 0;
}

int ctx_add_path(struct ctx_sqlite *s, const char *tenant, const char *conversation,
                 const char *path, int64_t now_ms, struct sg_error *e)
{
    return db_run(s->db, DB_PATH_ADD,
                  DB_WITH(db_text(tenant), db_text(conversation), db_text(path), db_number(now_ms)),
                  e);
}

static int claim_new(struct ctx_sqlite *s, const struct ctx_claim *q, int64_t now, struct answer *a)
{
    struct sg_error *e = &a->reply.e;
    int64_t ttl_ms = ctx_number(q->ttl_ms ? q->ttl_ms : q->default_ttl_ms);
    int r = check_limits(s, q->tenant, q->conversation, &q->limits, e);

    if (r == 0)
        r = ctx_add_path(s, q->tenant, q->conversation, q->path, now, e);
    if (r == 0)
        r = db_run(s->db, DB_CTX_ADD,
                   DB_WITH(db_text(q->id), db_text(q->tenant), db_text(q->conversation),
                           db_text(q->path), db_text(q->template_id), db_text(q->node),
                           db_number(ttl_ms), db_number(now)),
                   e);
    if (r < 0)
        return r;
    a->reply.claimed = CLAIM_NEW;
    return ctx_add_by_id(s, q->tenant, q->id, now, a);
}

static int claim_found(struct ctx_sqlite *s, const struct ctx_claim *q, struct ctx_row *row,
                       struct answer *a)
{
    int64_t ttl_ms = ctx_number(q->ttl_ms);

    if (ttl_ms)
        row->ttl_ms = (uint64_t)ttl_ms;
    row->used_ms = row->now_ms;
    row->expires_ms = row->now_ms + (int64_t)row->ttl_ms;
    a->reply.claimed = CLAIM_FOUND;
    *ctx_add_row(a) = *row;
    return db_run(
        s->db, DB_CTX_MOVE,
        DB_WITH(db_text(row->tenant), db_text(row->id), db_number(row->now_ms), db_number(ttl_ms)),
        &a->reply.e);
}

static int claim(struct ctx_sqlite *s, const struct ctx_claim *q, struct answer *a)
{
    int64_t now = clock_wall_ms();
    struct sg_error *e = &a->reply.e;
    struct ctx_found old;
    struct ctx_row *row = &old.row;
    int r = ctx_find_active(s, q->tenant, q->conversation, q->path, now, &old, e);

    if (r == -ENOENT)
        return claim_new(s, q, now, a);
    if (r < 0)
        return r;
    if (row->status == CTX_READY) {
        if (row->expires_ms > now || (q->in_use && strcmp(row->sandbox_id, q->in_use) == 0))
            return claim_found(s, q, row, a);
        r = ctx_end_row(s, row, CTX_TERMINATED, "", e);
    } else if (strcmp(row->node, q->node) == 0 || now - old.making_ms > ctx_number(q->lease_ms)) {
        r = ctx_end_row(s, row, CTX_ERROR, CTX_NEVER_MADE, e);
    } else {
        a->reply.claimed = CLAIM_BUSY;
        *ctx_add_row(a) = *row;
        return 0;
    }
    return r < 0 ? r : claim_new(s, q, now, a);
}

void ctx_sqlite_claim(struct ctx_store *base, const struct ctx_claim *q, ctx_done done, void *arg)
{
    struct ctx_sqlite *s = ctx_sqlite_of(base);
    struct answer *a = ctx_answer(done, arg);
    int r = ctx_change_begin(s, false, a);

    if (r == 0)
        r = claim(s, q, a);
    ctx_change_end(s, a, r);
}

/* Puts the text kept with the row into the reply. */
static int take_kept(struct ctx_sqlite *s, const char *id, struct answer *a)
{
    sqlite3_stmt *st;
    int r = db_first(s->db, DB_CTX_KEPT, DB_WITH(db_text(id)), &st, &a->reply.e);

    if (r <= 0)
        return r;
    const char *text = (const char *)sqlite3_column_text(st, 0);
    a->items = text ? xstrdup(text) : NULL;
    a->reply.kept = a->items;
    sqlite3_reset(st);
    return 0;
}

static int replace(struct ctx_sqlite *s, const char *tenant, const char *id, const char *sandbox_id,
                   const char *node, const struct ctx_limits *limits, struct answer *a)
{
    int64_t now = clock_wall_ms();
    struct sg_error *e = &a->reply.e;
    int r = ctx_add_by_id(s, tenant, id, now, a);

    if (r == -ENOENT || (r == 0 && (a->rows[0].status != CTX_READY ||
                                    strcmp(a->rows[0].sandbox_id, sandbox_id) != 0)))
        return ctx_error_stale(e, id);
    if (r == 0 && sandbox_id[0] == '\0')
        r = check_limits(s, tenant, a->rows[0].conversation, limits, e);
    if (r == 0)
        r = db_run(s->db, DB_CTX_REPLACE,
                   DB_WITH(db_text(tenant), db_text(id), db_text(sandbox_id), db_text(node),
                           db_number(now)),
                   e);
    a->reply.n = 0;
    if (r == 0)
        r = take_kept(s, id, a);
    return r < 0 ? r : ctx_add_by_id(s, tenant, id, now, a);
}

void ctx_sqlite_replace(struct ctx_store *base, const char *tenant, const char *id,
                        const char *sandbox_id, const char *node, const struct ctx_limits *limits,
                        ctx_done done, void *arg)
{
    struct ctx_sqlite *s = ctx_sqlite_of(base);
    struct answer *a = ctx_answer(done, arg);
    int r = ctx_change_begin(s, false, a);

    if (r == 0)
        r = replace(s, tenant, id, sandbox_id, node, limits, a);
    ctx_change_end(s, a, r);
}
