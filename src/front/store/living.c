#include "front/store/living.h"

#include <string.h>

#include "front/store/db.h"

#define LEFT "left"

static int count(struct store *s, size_t *ret, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_LIVING_COUNT, &st, e);

    if (r == 0)
        r = db_step(s, st, e);
    if (r < 0)
        return r;
    *ret = (size_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return 0;
}

int store_living(struct store *s, struct store_living **ret, size_t *ret_n, struct sg_error *e)
{
    size_t cap, n = 0;
    sqlite3_stmt *st;
    int r = count(s, &cap, e);

    if (r == 0)
        r = db_statement(s, DB_LIVING_LIST, &st, e);
    if (r < 0)
        return r;
    AUTO(free_p) struct store_living *list = xcalloc(cap + 1, sizeof(*list));
    while ((r = db_step(s, st, e)) > 0 && n < cap) {
        struct store_living *l = &list[n++];

        db_column(st, 0, l->sandbox_id, sizeof(l->sandbox_id));
        db_column(st, 1, l->tenant, sizeof(l->tenant));
        db_column(st, 2, l->context, sizeof(l->context));
        db_column(st, 3, l->conversation, sizeof(l->conversation));
        db_column(st, 4, l->path, sizeof(l->path));
    }
    sqlite3_reset(st);
    if (r < 0)
        return r;
    *ret = steal_ptr(&list);
    *ret_n = n;
    return 0;
}

int store_living_add(struct store *s, const struct store_living *l, struct sg_error *e)
{
    const char *const columns[] = {l->sandbox_id, l->tenant, l->context, l->conversation, l->path};
    sqlite3_stmt *st;
    int r = db_statement(s, DB_LIVING_ADD, &st, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        db_bind(st, (int)i + 1, columns[i]);
    return db_run(s, st, e);
}

int store_left_note(struct store *s, enum store_left how, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_SET_MARK, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, LEFT);
    sqlite3_bind_int64(st, 2, how);
    return db_run(s, st, e);
}

int store_left_take(struct store *s, enum store_left *ret, struct sg_error *e)
{
    enum store_left how = STORE_CRASHED;
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_MARK, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, LEFT);
    r = db_step(s, st, e);
    if (r > 0 && sqlite3_column_int64(st, 0) == STORE_STOPPED)
        how = STORE_STOPPED;
    else if (r > 0 && sqlite3_column_int64(st, 0) == STORE_RESTORED)
        how = STORE_RESTORED;
    sqlite3_reset(st);
    if (r < 0)
        return r;
    *ret = how;
    return how == STORE_CRASHED ? 0 : store_left_note(s, STORE_CRASHED, e);
}
