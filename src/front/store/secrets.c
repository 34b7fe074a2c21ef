#include "front/store/secrets.h"

#include "lib/base/clock.h"
#include "front/store/db.h"

static int no_such(const char *ref, struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no secret '%.80s'", ref);
}

/* Reads VAULT_COLUMNS. The texts live until the statement steps on. */
static void take_vault(sqlite3_stmt *st, struct store_vault *ret)
{
    const char *metadata = (const char *)sqlite3_column_text(st, 6);

    *ret = (struct store_vault){.seq = sqlite3_column_int64(st, 0),
                                .version = sqlite3_column_int64(st, 3),
                                .created_ms = sqlite3_column_int64(st, 4),
                                .updated_ms = sqlite3_column_int64(st, 5),
                                .metadata = metadata ? metadata : "{}"};
    db_column(st, 1, ret->id, sizeof(ret->id));
    db_column(st, 2, ret->name, sizeof(ret->name));
}

static int check_room(struct store *s, const char *tenant, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_VAULT_COUNT, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    r = db_step(s, st, e);
    if (r < 0)
        return r;
    bool full = r > 0 && sqlite3_column_int64(st, 0) >= STORE_VAULT_MAX;
    sqlite3_reset(st);
    return full ? err_set(e, SG_ERR_LIMIT, -EDQUOT,
                          "you have reached the maximum number of secrets: the limit is %d; delete "
                          "one first",
                          STORE_VAULT_MAX)
                : 0;
}

static int add_locked(struct store *s, const char *tenant, const char *name, const char *metadata,
                      const char *sealed, const char *id, struct sg_error *e)
{
    sqlite3_stmt *st = NULL;
    int r = check_room(s, tenant, e);

    if (r == 0)
        r = db_statement(s, DB_VAULT_ADD, &st, e);
    if (r < 0)
        return r;
    db_bind(st, 1, id);
    db_bind(st, 2, tenant);
    db_bind(st, 3, name);
    db_bind(st, 4, metadata);
    db_bind(st, 5, sealed);
    sqlite3_bind_int64(st, 6, clock_wall_ms());
    r = db_run(s, st, e);
    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_INVALID, -EEXIST, "there is a secret '%s' already", name);
    return r;
}

int store_vault_add(struct store *s, const char *tenant, const char *name, const char *metadata,
                    const char *sealed, char ret_id[STORE_VAULT_ID_LEN + 1], struct sg_error *e)
{
    char random[ID_LEN + 1], id[STORE_VAULT_ID_LEN + 1];
    int r = db_begin(s, e);

    if (r < 0)
        return r;
    id_random(random);
    snprintf(id, sizeof(id), "sec_%s", random);
    r = add_locked(s, tenant, name, metadata, sealed, id, e);
    if (r < 0) {
        db_rollback(s);
        return r;
    }
    r = db_commit(s, e);
    if (r == 0)
        memcpy(ret_id, id, sizeof(id));
    return r;
}

int store_vault_update(struct store *s, const char *tenant, const char *id, const char *metadata,
                       const char *sealed, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_VAULT_SET, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    db_bind(st, 2, id);
    db_bind(st, 3, metadata);
    db_bind(st, 4, sealed);
    sqlite3_bind_int64(st, 5, clock_wall_ms());
    r = db_run(s, st, e);
    return r == 0 && db_changed(s) == 0 ? no_such(id, e) : r;
}

int store_vault_get(struct store *s, const char *tenant, const char *ref,
                    void (*fn)(const struct store_vault *v, void *arg), void *arg,
                    struct sg_error *e)
{
    struct store_vault v;
    sqlite3_stmt *st;
    int r = db_statement(s, DB_VAULT_GET, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    db_bind(st, 2, ref);
    r = db_step(s, st, e);
    if (r <= 0)
        return r < 0 ? r : no_such(ref, e);
    take_vault(st, &v);
    v.sealed = (const char *)sqlite3_column_text(st, 7);
    if (v.sealed)
        fn(&v, arg);
    sqlite3_reset(st);
    return v.sealed ? 0 : err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
}

int store_vault_remove(struct store *s, const char *tenant, const char *ref, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_VAULT_REMOVE, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    db_bind(st, 2, ref);
    r = db_run(s, st, e);
    return r == 0 && db_changed(s) == 0 ? no_such(ref, e) : r;
}

int store_vault_each(struct store *s, const char *tenant, int64_t before,
                     bool (*fn)(const struct store_vault *v, void *arg), void *arg,
                     struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_VAULT_LIST, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    sqlite3_bind_int64(st, 2, before);
    while ((r = db_step(s, st, e)) > 0) {
        struct store_vault v;

        take_vault(st, &v);
        if (!fn(&v, arg))
            break;
    }
    sqlite3_reset(st);
    return r < 0 ? r : 0;
}
