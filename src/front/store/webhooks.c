#include "front/store/webhooks.h"

#include <stdio.h>

#include "front/store/db.h"
#include "front/store/events.h"
#include "lib/base/clock.h"

/* ---- the tenants' own ------------------------------------------------------------------------ */

static int no_such(const char *id, struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no webhook '%.40s'", id);
}

/* Reads HOOK_COLUMNS. False: SQLite has no memory for the row now. The texts live until the
 * statement steps on. */
static bool take_hook(sqlite3_stmt *st, struct store_hook *ret)
{
    *ret = (struct store_hook){.seq = sqlite3_column_int64(st, 0),
                               .name = (const char *)sqlite3_column_text(st, 3),
                               .url = (const char *)sqlite3_column_text(st, 4),
                               .events = (const char *)sqlite3_column_text(st, 5),
                               .enabled = sqlite3_column_int(st, 6),
                               .secret = (const char *)sqlite3_column_text(st, 7),
                               .created_ms = sqlite3_column_int64(st, 8)};
    db_column(st, 1, ret->id, sizeof(ret->id));
    db_column(st, 2, ret->tenant, sizeof(ret->tenant));
    return ret->name && ret->url && ret->events && ret->secret;
}

static int check_room(struct store *s, const char *tenant, struct sg_error *e)
{
    uint32_t n = 0;
    int r = db_count(s, DB_HOOK_COUNT, DB_WITH(db_text(tenant)), &n, e);

    if (r < 0 || n < STORE_WEBHOOKS_MAX)
        return r;
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "you have reached the maximum number of webhooks: the limit is %d; delete one "
                   "first",
                   STORE_WEBHOOKS_MAX);
}

int store_hook_add(struct store *s, const struct store_hook *hook, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = check_room(s, hook->tenant, e);
    if (r == 0)
        r = db_run(s, DB_HOOK_ADD,
                   DB_WITH(db_text(hook->id), db_text(hook->tenant), db_text(hook->name),
                           db_text(hook->url), db_text(hook->events), db_number(hook->enabled),
                           db_text(hook->secret), db_number(clock_wall_ms())),
                   e);
    return db_end(s, r, e);
}

int store_hook_set(struct store *s, const struct store_hook *hook, struct sg_error *e)
{
    int r = db_run(s, DB_HOOK_SET,
                   DB_WITH(db_text(hook->id), db_text(hook->tenant), db_text(hook->name),
                           db_text(hook->url), db_text(hook->events), db_number(hook->enabled),
                           db_text(hook->secret)),
                   e);

    return r == 0 && db_changed(s) == 0 ? no_such(hook->id, e) : r;
}

int store_hook_get(struct store *s, const char *tenant, const char *id,
                   void (*fn)(const struct store_hook *hook, void *arg), void *arg,
                   struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_HOOK_GET, DB_WITH(db_text(tenant), db_text(id)), e);
    struct store_hook hook;

    if (!db_next(&row))
        return row.r < 0 ? row.r : no_such(id, e);
    bool whole = take_hook(row.st, &hook);
    if (whole)
        fn(&hook, arg);
    db_done(&row);
    return whole ? 0 : err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
}

/* Its name among the marks. */
static void mark_name(const char *hook, char ret[64])
{
    snprintf(ret, 64, hook[0] ? STORE_WEBHOOK_MARK " %s" : STORE_WEBHOOK_MARK, hook);
}

int store_hook_remove(struct store *s, const char *tenant, const char *id, struct sg_error *e)
{
    int r = db_begin(s, e);
    char mark[64];

    mark_name(id, mark);
    if (r == 0)
        r = db_run(s, DB_HOOK_REMOVE, DB_WITH(db_text(tenant), db_text(id)), e);
    if (r == 0 && db_changed(s) == 0)
        r = no_such(id, e);
    if (r == 0)
        r = db_run(s, DB_WEBHOOK_CLEAR, DB_WITH(db_text(id)), e);
    if (r == 0)
        r = db_run(s, DB_EVENT_DROP_MARK, DB_WITH(db_text(mark)), e);
    return db_end(s, r, e);
}

int store_hooks_each(struct store *s, const char *tenant,
                     void (*fn)(const struct store_hook *hook, void *arg), void *arg,
                     struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_HOOK_LIST, DB_WITH(db_text(tenant)), e);
    struct store_hook hook;

    while (db_next(&rows))
        if (take_hook(rows.st, &hook))
            fn(&hook, arg);
    return db_done(&rows);
}

/* ---- progress -------------------------------------------------------------------------------- */

int store_webhook_get(struct store *s, const char *hook, struct store_webhook *ret,
                      struct sg_error *e)
{
    struct store_webhook w = {0};
    char mark[64];

    mark_name(hook, mark);
    int r = store_mark_get(s, mark, &w.done, e);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    struct db_rows rows = db_rows(s, DB_WEBHOOK_OPEN, DB_WITH(db_text(hook)), e);
    while (w.n < STORE_WEBHOOK_OPEN && db_next(&rows)) {
        w.open[w.n].event = (uint64_t)sqlite3_column_int64(rows.st, 0);
        w.open[w.n++].tries = (uint32_t)(sqlite3_column_int64(rows.st, 1) & UINT32_MAX);
    }
    r = db_done(&rows);
    if (r == 0)
        *ret = w;
    return r;
}

static int write_webhook(struct store *s, const char *hook, const struct store_webhook *w,
                         struct sg_error *e)
{
    char mark[64];

    mark_name(hook, mark);
    int r = store_mark_set(s, mark, w->done, e);
    if (r == 0)
        r = db_run(s, DB_WEBHOOK_CLEAR, DB_WITH(db_text(hook)), e);
    for (size_t i = 0; r == 0 && i < w->n; i++)
        r = db_run(s, DB_WEBHOOK_ADD,
                   DB_WITH(db_text(hook), db_number((int64_t)w->open[i].event),
                           db_number(w->open[i].tries)),
                   e);
    return r;
}

int store_webhook_set(struct store *s, const char *hook, const struct store_webhook *w,
                      struct sg_error *e)
{
    int r = db_begin_soon(s, false, e);

    if (r == 0)
        r = write_webhook(s, hook, w, e);
    return db_end(s, r, e);
}
