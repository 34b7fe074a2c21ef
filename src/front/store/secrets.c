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
    int64_t n = 0;
    int r = db_ask(s, DB_VAULT_COUNT, DB_WITH(db_text(tenant)), &n, e);

    if (r < 0 || n < STORE_VAULT_MAX)
        return r < 0 ? r : 0;
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "you have reached the maximum number of secrets: the limit is %d; delete one "
                   "first",
                   STORE_VAULT_MAX);
}

static int add_locked(struct store *s, const char *tenant, const char *name, const char *metadata,
                      const char *sealed, const char *id, struct sg_error *e)
{
    int r = check_room(s, tenant, e);

    if (r == 0)
        r = db_run(s, DB_VAULT_ADD,
                   DB_WITH(db_text(id), db_text(tenant), db_text(name), db_text(metadata),
                           db_text(sealed), db_number(clock_wall_ms())),
                   e);
    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_INVALID, -EEXIST, "there is a secret '%s' already", name);
    return r;
}

int store_vault_add(struct store *s, const char *tenant, const char *name, const char *metadata,
                    const char *sealed, char ret_id[STORE_VAULT_ID_LEN + 1], struct sg_error *e)
{
    char random[ID_LEN + 1], id[STORE_VAULT_ID_LEN + 1];
    int r = db_begin(s, e);

    id_random(random);
    snprintf(id, sizeof(id), "sec_%s", random);
    if (r == 0)
        r = add_locked(s, tenant, name, metadata, sealed, id, e);
    r = db_end(s, r, e);
    if (r == 0)
        memcpy(ret_id, id, sizeof(id));
    return r;
}

int store_vault_update(struct store *s, const char *tenant, const char *id, const char *metadata,
                       const char *sealed, struct sg_error *e)
{
    int r = db_run(s, DB_VAULT_SET,
                   DB_WITH(db_text(tenant), db_text(id), db_text(metadata), db_text(sealed),
                           db_number(clock_wall_ms())),
                   e);

    return r == 0 && db_changed(s) == 0 ? no_such(id, e) : r;
}

int store_vault_get(struct store *s, const char *tenant, const char *ref,
                    void (*fn)(const struct store_vault *v, void *arg), void *arg,
                    struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_VAULT_GET, DB_WITH(db_text(tenant), db_text(ref)), e);
    struct store_vault v;

    if (!db_next(&row))
        return row.r < 0 ? row.r : no_such(ref, e);
    take_vault(row.st, &v);
    v.sealed = (const char *)sqlite3_column_text(row.st, 7);
    if (v.sealed)
        fn(&v, arg);
    db_done(&row);
    return v.sealed ? 0 : err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
}

int store_vault_remove(struct store *s, const char *tenant, const char *ref, struct sg_error *e)
{
    int r = db_run(s, DB_VAULT_REMOVE, DB_WITH(db_text(tenant), db_text(ref)), e);

    return r == 0 && db_changed(s) == 0 ? no_such(ref, e) : r;
}

int store_vault_each(struct store *s, const char *tenant, int64_t before,
                     bool (*fn)(const struct store_vault *v, void *arg), void *arg,
                     struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_VAULT_LIST, DB_WITH(db_text(tenant), db_number(before)), e);
    struct store_vault v;

    while (db_next(&rows)) {
        take_vault(rows.st, &v);
        if (!fn(&v, arg))
            break;
    }
    return db_done(&rows);
}
