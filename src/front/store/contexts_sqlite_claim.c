#include "front/store/contexts_sqlite.h"

#include <string.h>

/* Checks that the limits allow one more sandbox of this conversation. */
static void check_limits(struct answer *a, const char *tenant, const char *conversation,
                         const struct ctx_limits *limits)
{
    struct db_rows row = ctx_rows(a, DB_CTX_COUNT, DB_WITH(db_text(tenant), db_text(conversation)));
    int64_t of_tenant = 0, of_conversation = 0;

    if (db_next(&row)) {
        of_tenant = sqlite3_column_int64(row.st, 0);
        of_conversation = sqlite3_column_int64(row.st, 1);
    }
    a->r = db_done(&row);
    if (a->r == 0 && of_conversation >= limits->conversation)
        a->r = ctx_error_conversation_limit(&a->reply.e, limits->conversation);
    else if (a->r == 0 && of_tenant >= limits->tenant)
        a->r = ctx_error_tenant_limit(&a->reply.e, limits->tenant);
}

void ctx_add_path(struct answer *a, const char *tenant, const char *conversation, const char *path)
{
    ctx_run(a, DB_PATH_ADD,
            DB_WITH(db_text(tenant), db_text(conversation), db_text(path), db_number(a->now_ms)));
}

static void claim_new(struct answer *a, const struct ctx_claim *q)
{
    int64_t ttl_ms = ctx_number(q->ttl_ms ? q->ttl_ms : q->default_ttl_ms);

    check_limits(a, q->tenant, q->conversation, &q->limits);
    ctx_add_path(a, q->tenant, q->conversation, q->path);
    ctx_run(a, DB_CTX_ADD,
            DB_WITH(db_text(q->id), db_text(q->tenant), db_text(q->conversation), db_text(q->path),
                    db_text(q->template_id), db_text(q->node), db_number(ttl_ms),
                    db_number(a->now_ms)));
    a->reply.claimed = CLAIM_NEW;
    ctx_add_by_id(a, q->tenant, q->id);
}

static void claim_found(struct answer *a, const struct ctx_claim *q, struct ctx_row *row)
{
    int64_t ttl_ms = ctx_number(q->ttl_ms);

    if (ttl_ms)
        row->ttl_ms = (uint64_t)ttl_ms;
    row->used_ms = row->now_ms;
    row->expires_ms = row->now_ms + (int64_t)row->ttl_ms;
    a->reply.claimed = CLAIM_FOUND;
    *ctx_add_row(a) = *row;
    ctx_run(
        a, DB_CTX_MOVE,
        DB_WITH(db_text(row->tenant), db_text(row->id), db_number(row->now_ms), db_number(ttl_ms)));
}

static void claim(struct answer *a, const struct ctx_claim *q)
{
    struct ctx_found old;
    struct ctx_row *row = &old.row;

    if (!ctx_find_active(a, q->tenant, q->conversation, q->path, &old)) {
        claim_new(a, q);
    } else if (row->status == CTX_READY) {
        if (row->expires_ms > a->now_ms || (q->in_use && strcmp(row->sandbox_id, q->in_use) == 0)) {
            claim_found(a, q, row);
            return;
        }
        ctx_end_row(a, row, CTX_TERMINATED, "");
        claim_new(a, q);
    } else if (strcmp(row->node, q->node) == 0 ||
               a->now_ms - old.making_ms > ctx_number(q->lease_ms)) {
        ctx_end_row(a, row, CTX_ERROR, CTX_NEVER_MADE);
        claim_new(a, q);
    } else {
        a->reply.claimed = CLAIM_BUSY;
        *ctx_add_row(a) = *row;
    }
}

void ctx_sqlite_claim(struct ctx_store *base, const struct ctx_claim *q, ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    claim(a, q);
    ctx_change_end(a);
}

/* Puts the text kept with the row into the reply. */
static void take_kept(struct answer *a, const char *id)
{
    struct db_rows row = ctx_rows(a, DB_CTX_KEPT, DB_WITH(db_text(id)));
    const char *text = db_next(&row) ? (const char *)sqlite3_column_text(row.st, 0) : NULL;

    a->reply.kept = a->items = text ? xstrdup(text) : NULL;
    a->r = db_done(&row);
}

void ctx_sqlite_replace(struct ctx_store *base, const char *tenant, const char *id,
                        const char *sandbox_id, const char *node, const struct ctx_limits *limits,
                        ctx_done done, void *arg)
{
    struct answer *a = ctx_change(base, false, done, arg);

    ctx_add_if_ready(a, tenant, id, sandbox_id);
    if (a->r == 0 && sandbox_id[0] == '\0')
        check_limits(a, tenant, a->rows[0].conversation, limits);
    ctx_run(a, DB_CTX_REPLACE,
            DB_WITH(db_text(tenant), db_text(id), db_text(sandbox_id), db_text(node),
                    db_number(a->now_ms)));
    a->reply.n = 0;
    take_kept(a, id);
    ctx_add_by_id(a, tenant, id);
    ctx_change_end(a);
}
