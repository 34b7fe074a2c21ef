#include "front/store/contexts_sqlite.h"

#include <string.h>

#include "lib/base/clock.h"

/* Checks that the limits allow one more sandbox of this conversation. */
static int check_limits(struct answer *a, const char *tenant, const char *conversation,
                        const struct ctx_limits *limits)
{
    sqlite3_stmt *st;
    int r = ctx_first(a, DB_CTX_COUNT, DB_WITH(db_text(tenant), db_text(conversation)), &st);

    if (r < 0)
        return r;
    int64_t of_tenant = sqlite3_column_int64(st, 0), of_conversation = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    if (of_conversation >= limits->conversation)
        return ctx_error_conversation_limit(&a->reply.e, limits->conversation);
    if (of_tenant >= limits->tenant)
        return ctx_error_tenant_limit(&a->reply.e, limits->tenant);
    return 0;
}

int ctx_add_path(struct answer *a, const char *tenant, const char *conversation, const char *path,
                 int64_t now_ms)
{
    return ctx_run(
        a, DB_PATH_ADD,
        DB_WITH(db_text(tenant), db_text(conversation), db_text(path), db_number(now_ms)));
}

static int claim_new(struct answer *a, const struct ctx_claim *q, int64_t now)
{
    int64_t ttl_ms = ctx_number(q->ttl_ms ? q->ttl_ms : q->default_ttl_ms);
    int r = check_limits(a, q->tenant, q->conversation, &q->limits);

    if (r == 0)
        r = ctx_add_path(a, q->tenant, q->conversation, q->path, now);
    if (r == 0)
        r = ctx_run(a, DB_CTX_ADD,
                    DB_WITH(db_text(q->id), db_text(q->tenant), db_text(q->conversation),
                            db_text(q->path), db_text(q->template_id), db_text(q->node),
                            db_number(ttl_ms), db_number(now)));
    if (r < 0)
        return r;
    a->reply.claimed = CLAIM_NEW;
    return ctx_add_by_id(a, q->tenant, q->id, now);
}

static int claim_found(struct answer *a, const struct ctx_claim *q, struct ctx_row *row)
{
    int64_t ttl_ms = ctx_number(q->ttl_ms);

    if (ttl_ms)
        row->ttl_ms = (uint64_t)ttl_ms;
    row->used_ms = row->now_ms;
    row->expires_ms = row->now_ms + (int64_t)row->ttl_ms;
    a->reply.claimed = CLAIM_FOUND;
    *ctx_add_row(a) = *row;
    return ctx_run(
        a, DB_CTX_MOVE,
        DB_WITH(db_text(row->tenant), db_text(row->id), db_number(row->now_ms), db_number(ttl_ms)));
}

static int claim(struct answer *a, const struct ctx_claim *q)
{
    int64_t now = clock_wall_ms();
    struct ctx_found old;
    struct ctx_row *row = &old.row;
    int r = ctx_find_active(a, q->tenant, q->conversation, q->path, now, &old);

    if (r == -ENOENT)
        return claim_new(a, q, now);
    if (r < 0)
        return r;
    if (row->status == CTX_READY) {
        if (row->expires_ms > now || (q->in_use && strcmp(row->sandbox_id, q->in_use) == 0))
            return claim_found(a, q, row);
        r = ctx_end_row(a, row, CTX_TERMINATED, "");
    } else if (strcmp(row->node, q->node) == 0 || now - old.making_ms > ctx_number(q->lease_ms)) {
        r = ctx_end_row(a, row, CTX_ERROR, CTX_NEVER_MADE);
    } else {
        a->reply.claimed = CLAIM_BUSY;
        *ctx_add_row(a) = *row;
        return 0;
    }
    return r < 0 ? r : claim_new(a, q, now);
}

void ctx_sqlite_claim(struct ctx_store *base, const struct ctx_claim *q, ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int r = ctx_change_begin(a, false);

    if (r == 0)
        r = claim(a, q);
    ctx_change_end(a, r);
}

/* Puts the text kept with the row into the reply. */
static int take_kept(struct answer *a, const char *id)
{
    sqlite3_stmt *st;
    int r = ctx_first(a, DB_CTX_KEPT, DB_WITH(db_text(id)), &st);

    if (r <= 0)
        return r;
    const char *text = (const char *)sqlite3_column_text(st, 0);
    a->items = text ? xstrdup(text) : NULL;
    a->reply.kept = a->items;
    sqlite3_reset(st);
    return 0;
}

static int replace(struct answer *a, const char *tenant, const char *id, const char *sandbox_id,
                   const char *node, const struct ctx_limits *limits)
{
    int64_t now = clock_wall_ms();
    int r = ctx_add_by_id(a, tenant, id, now);

    if (r == -ENOENT || (r == 0 && (a->rows[0].status != CTX_READY ||
                                    strcmp(a->rows[0].sandbox_id, sandbox_id) != 0)))
        return ctx_error_stale(&a->reply.e, id);
    if (r == 0 && sandbox_id[0] == '\0')
        r = check_limits(a, tenant, a->rows[0].conversation, limits);
    if (r == 0)
        r = ctx_run(a, DB_CTX_REPLACE,
                    DB_WITH(db_text(tenant), db_text(id), db_text(sandbox_id), db_text(node),
                            db_number(now)));
    a->reply.n = 0;
    if (r == 0)
        r = take_kept(a, id);
    return r < 0 ? r : ctx_add_by_id(a, tenant, id, now);
}

void ctx_sqlite_replace(struct ctx_store *base, const char *tenant, const char *id,
                        const char *sandbox_id, const char *node, const struct ctx_limits *limits,
                        ctx_done done, void *arg)
{
    struct answer *a = ctx_answer(base, done, arg);
    int r = ctx_change_begin(a, false);

    if (r == 0)
        r = replace(a, tenant, id, sandbox_id, node, limits);
    ctx_change_end(a, r);
}
