#include "store/db.h"

#include "base/clock.h"

static bool name_valid(const char *name)
{
    size_t len = strnlen(name, STORE_NAME_MAX + 1);

    return len > 0 && len <= STORE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

/* The row that the statement stands on, or finds: -ENOENT. */
static int take_tenant(struct store *s, sqlite3_stmt *st, struct store_tenant *ret,
                       struct sg_error *e)
{
    int r = db_step(s, st, e);

    if (r == 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no such tenant");
    if (r < 0)
        return r;
    db_column(st, 0, ret->id, sizeof(ret->id));
    db_column(st, 1, ret->name, sizeof(ret->name));
    int64_t max = sqlite3_column_int64(st, 2);
    ret->max_sandboxes = max < 0 || max > UINT32_MAX ? 0 : (uint32_t)max;
    sqlite3_reset(st);
    return 0;
}

int store_tenant_ensure(struct store *s, const char *name, struct store_tenant *ret,
                        struct sg_error *e)
{
    char id[ID_LEN + 1];
    sqlite3_stmt *st;

    if (!name_valid(name))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "'%.80s' is no name for a tenant: 1 to %d of a-z, 0-9, '_' and '-'", name,
                       STORE_NAME_MAX);
    int r = db_statement(s, DB_TENANT_ADD, &st, e);
    if (r < 0)
        return r;
    id_random(id);
    db_bind(st, 1, id);
    db_bind(st, 2, name);
    sqlite3_bind_int64(st, 3, clock_wall_ms());
    r = db_run(s, st, e);
    if (r == 0)
        r = db_statement(s, DB_TENANT_BY_NAME, &st, e);
    if (r < 0)
        return r;
    db_bind(st, 1, name);
    return take_tenant(s, st, ret, e);
}

int store_tenant_get(struct store *s, const char *id, struct store_tenant *ret)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_TENANT_BY_ID, &st, NULL);

    if (r < 0)
        return r;
    db_bind(st, 1, id);
    return take_tenant(s, st, ret, NULL);
}

int store_tenants_count(struct store *s, uint32_t *ret, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_TENANT_COUNT, &st, e);

    if (r == 0)
        r = db_step(s, st, e);
    if (r < 0)
        return r;
    *ret = (uint32_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return 0;
}
