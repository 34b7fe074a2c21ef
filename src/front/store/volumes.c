#include "front/store/volumes.h"

#include <stdio.h>

#include "front/store/db.h"
#include "lib/base/clock.h"

#define LOOSE_MAX 4096 /* that one start takes up; more wait for the next start */

static void take_volume(sqlite3_stmt *st, struct store_volume *ret)
{
    db_column(st, 0, ret->id, sizeof(ret->id));
    db_column(st, 1, ret->tenant, sizeof(ret->tenant));
    db_column(st, 2, ret->name, sizeof(ret->name));
}

static int add_locked(struct store *s, const struct store_volume *v, uint32_t limit,
                      struct sg_error *e)
{
    uint32_t n = 0;
    int r = db_count(s, DB_VOLUME_COUNT, DB_WITH(db_text(v->tenant)), &n, e);

    if (r == 0 && n >= limit)
        return err_set(
            e, SG_ERR_LIMIT, -EDQUOT,
            "you have reached the maximum number of volumes: the limit is %u; delete one "
            "first",
            limit);
    if (r == 0)
        r = db_run(s, DB_VOLUME_ADD,
                   DB_WITH(db_text(v->id), db_text(v->tenant), db_text(v->name),
                           db_number(clock_wall_ms())),
                   e);
    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_GONE, -EEXIST, "Volume \"%s\" already exists", v->name);
    return r;
}

int store_volume_add(struct store *s, const char *tenant, const char *name, uint32_t limit,
                     struct store_volume *ret, struct sg_error *e)
{
    struct store_volume v;
    int r = db_begin(s, e);

    id_random(v.id);
    snprintf(v.tenant, sizeof(v.tenant), "%s", tenant);
    snprintf(v.name, sizeof(v.name), "%s", name);
    if (r == 0)
        r = add_locked(s, &v, limit, e);
    r = db_end(s, r, e);
    if (r == 0)
        *ret = v;
    return r;
}

int store_volume_made(struct store *s, const struct store_volume *v, struct sg_error *e)
{
    return db_run(s, DB_VOLUME_MADE, DB_WITH(db_text(v->id), db_text(v->name)), e);
}

int store_volume_loose(struct store *s, const struct store_volume *v, struct sg_error *e)
{
    return db_run(s, DB_VOLUME_LOOSE, DB_WITH(db_text(v->id)), e);
}

void store_volume_gone(struct store *s, const char *id)
{
    /* If this fails it stays loose, and is removed once more, which does nothing. */
    db_run(s, DB_VOLUME_REMOVE, DB_WITH(db_text(id)), NULL);
}

static int take_one(struct db_rows row, struct store_volume *ret)
{
    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    take_volume(row.st, ret);
    return db_done(&row);
}

int store_volume_get(struct store *s, const char *id, struct store_volume *ret, struct sg_error *e)
{
    return take_one(db_rows(s, DB_VOLUME_BY_ID, DB_WITH(db_text(id)), e), ret);
}

int store_volume_named(struct store *s, const char *tenant, const char *name,
                       struct store_volume *ret, struct sg_error *e)
{
    return take_one(db_rows(s, DB_VOLUME_BY_NAME, DB_WITH(db_text(tenant), db_text(name)), e), ret);
}

int store_volumes_each(struct store *s, const char *tenant,
                       void (*fn)(const struct store_volume *v, void *arg), void *arg,
                       struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_VOLUME_LIST, DB_WITH(db_text(tenant)), e);
    struct store_volume v;

    while (db_next(&rows)) {
        take_volume(rows.st, &v);
        fn(&v, arg);
    }
    return db_done(&rows);
}

int store_loose_volumes_each(struct store *s, void (*fn)(const struct store_volume *v, void *arg),
                             void *arg, struct sg_error *e)
{
    AUTO(free_p) struct store_volume *v = xcalloc(LOOSE_MAX, sizeof(*v));
    struct db_rows rows = db_rows(s, DB_VOLUME_LOOSE_LIST, NULL, e);
    size_t n = 0;

    while (n < LOOSE_MAX && db_next(&rows))
        take_volume(rows.st, &v[n++]);
    int r = db_done(&rows);
    for (size_t i = 0; r == 0 && i < n; i++)
        fn(&v[i], arg);
    return r;
}
