#include "front/store/key_copy.h"

#include <string.h>

#include "front/store/db.h"

int key_copies_mark(struct store *s, char ret[KEY_MARK_MAX], struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_KEY_MARK, NULL, e);

    if (db_next(&row))
        db_column(row.st, 0, ret, KEY_MARK_MAX);
    return db_done(&row);
}

int key_copies_each(struct store *s, void (*fn)(const struct key_copy *, void *), void *arg,
                    struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_KEY_COPIES, NULL, e);

    while (db_next(&rows)) {
        struct key_copy c;

        db_key(rows.st, &c.key);
        c.named_ms = sqlite3_column_int64(rows.st, 8);
        db_column(rows.st, 9, c.hash, sizeof(c.hash));
        fn(&c, arg);
    }
    return db_done(&rows);
}

static bool hash_bytes(const char *hex, unsigned char ret[KEY_HASH_HEX / 2])
{
    static const char digits[] = "0123456789abcdef";

    if (strspn(hex, digits) != KEY_HASH_HEX || hex[KEY_HASH_HEX])
        return false;
    for (size_t i = 0; i < KEY_HASH_HEX; i += 2)
        ret[i / 2] = (unsigned char)((strchr(digits, hex[i]) - digits) << 4 |
                                     (strchr(digits, hex[i + 1]) - digits));
    return true;
}

static int run_take(struct store *s, const struct key_copy *c, const char *tenant,
                    struct sg_error *e)
{
    unsigned char hash[KEY_HASH_HEX / 2];
    const struct store_key *k = &c->key;

    if (!hash_bytes(c->hash, hash))
        return -EINVAL;
    int r = db_run(s, DB_KEY_TAKE,
                   DB_WITH(db_text(k->id), db_text(tenant), db_text(k->name),
                           db_bytes(hash, sizeof(hash)), db_text(k->hint), db_number(k->created_ms),
                           db_number(k->revoked_ms), db_number(k->kind), db_number(c->named_ms)),
                   e);
    if (r == 0 && c->named_ms > 0)
        r = db_run(s, DB_KEY_TAKE_NAME,
                   DB_WITH(db_text(k->id), db_text(k->name), db_number(c->named_ms)), e);
    if (r < 0 || k->revoked_ms == 0)
        return r;
    return db_run(s, DB_KEY_TAKE_END, DB_WITH(db_text(k->id), db_number(k->revoked_ms)), e);
}

/* -EINVAL: the copy is no valid key. */
static int take(struct store *s, const struct key_copy *c, struct sg_error *e)
{
    struct store_tenant tenant;

    if (!id_valid(c->key.id) || c->key.created_ms < 0 || c->key.revoked_ms < 0 || c->named_ms < 0 ||
        c->key.kind >= STORE_TOKEN_MAX_)
        return -EINVAL;
    if (c->key.kind == STORE_ADMIN)
        return run_take(s, c, NULL, e);
    int r = store_tenant_ensure(s, c->key.tenant_name, &tenant, e);
    return r < 0 ? r : run_take(s, c, tenant.id, e);
}

int key_copies_take(struct store *s, const struct key_copy *copies, size_t n, struct sg_error *e)
{
    int r = db_begin(s, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = take(s, &copies[i], e);
        if (r == -EINVAL)
            r = 0;
    }
    r = db_end(s, r, e);
    db_keys_changed(s);
    return r;
}
