#include "front/store/db.h"

#include <openssl/sha.h>

#include "lib/base/clock.h"

#define ID_PREFIX "sandglass tenant "

static bool name_valid(const char *name)
{
    size_t len = strnlen(name, STORE_NAME_MAX + 1);

    return len > 0 && len <= STORE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static void id_of_name(const char *name, char ret[ID_LEN + 1])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[sizeof(ID_PREFIX) + STORE_NAME_MAX];
    int len = snprintf(text, sizeof(text), ID_PREFIX "%s", name);

    _Static_assert(sizeof(digest) >= ID_LEN, "bytes for an id");
    SHA256((const unsigned char *)text, (size_t)len, digest);
    id_from_bytes(digest, ret);
}

/* A number that this program would not have written counts as not set. */
static uint64_t column_limit(sqlite3_stmt *st, int i, size_t size)
{
    const uint64_t max = UINT64_MAX >> (64 - 8 * size);
    int64_t n = sqlite3_column_int64(st, i);

    return n < 0 || (uint64_t)n > max ? 0 : (uint64_t)n;
}

void db_tenant(sqlite3_stmt *st, int i, struct store_tenant *ret)
{
    db_column(st, i++, ret->id, sizeof(ret->id));
    db_column(st, i++, ret->name, sizeof(ret->name));
#define TAKE(type, name) ret->name = (type)column_limit(st, i++, sizeof(type));
    STORE_LIMITS(TAKE)
#undef TAKE
    ret->sanitise = (uint8_t)column_limit(st, i++, sizeof(ret->sanitise));
    ret->sanitise_always = sqlite3_column_int64(st, i) != 0;
    ret->key_sanitise = 0;
}

/* Finds a tenant by its id or its name. -ENOENT. */
static int find(struct store *s, enum db_statement which, const char *by, struct store_tenant *ret,
                struct sg_error *e)
{
    struct db_rows row = db_rows(s, which, DB_WITH(db_text(by)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no such tenant");
    db_tenant(row.st, 0, ret);
    return db_done(&row);
}

int store_tenant_ensure(struct store *s, const char *name, struct store_tenant *ret,
                        struct sg_error *e)
{
    char id[ID_LEN + 1];

    if (!name_valid(name))
        return err_invalid(
            e, "'%.80s' is not a name for a tenant: use 1 to %d of a-z, 0-9, '_' and '-'", name,
            STORE_NAME_MAX);
    id_of_name(name, id);
    int r = db_run(s, DB_TENANT_ADD,
                   DB_WITH(db_text(id), db_text(name), db_number(clock_wall_ms())), e);
    return r < 0 ? r : find(s, DB_TENANT_BY_NAME, name, ret, e);
}

int store_tenant_find(struct store *s, const char *name, struct store_tenant *ret,
                      struct sg_error *e)
{
    return find(s, DB_TENANT_BY_NAME, name, ret, e);
}

int store_tenant_get(struct store *s, const char *id, struct store_tenant *ret)
{
    return find(s, DB_TENANT_BY_ID, id, ret, NULL);
}

int store_tenant_named(struct store *s, const char *which, struct store_tenant *ret)
{
    int r = store_tenant_get(s, which, ret);

    return r == -ENOENT ? store_tenant_find(s, which, ret, NULL) : r;
}

int store_tenants_each(struct store *s, bool (*fn)(const struct store_tenant *, void *), void *arg,
                       struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_TENANT_LIST, NULL, e);
    struct store_tenant t;

    while (db_next(&rows)) {
        db_tenant(rows.st, 0, &t);
        if (!fn(&t, arg))
            break;
    }
    return db_done(&rows);
}

/* NULL leaves the limit as it is. */
static struct db_value limit(const uint64_t *value)
{
    if (!value)
        return db_text(NULL);
    return db_number(*value > INT64_MAX ? INT64_MAX : (int64_t)*value);
}

static int change(struct store *s, enum db_statement which, const struct db_value *with,
                  const char *name, struct sg_error *e)
{
    int r = db_run(s, which, with, e);

    if (r == 0 && db_changed(s) == 0)
        r = err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                    "no tenant '%.80s': 'sandglass tenant list' shows them", name);
    db_keys_changed(s);
    return r;
}

int store_tenant_sanitise(struct store *s, const char *name, uint8_t sanitise, bool always,
                          struct sg_error *e)
{
    return change(s, DB_TENANT_SANITISE,
                  DB_WITH(db_text(name), db_number(sanitise), db_number(always)), name, e);
}

int store_tenant_limit(struct store *s, const char *name, const struct store_limits *limits,
                       struct sg_error *e)
{
#define VALUE(type, name) limit(limits->name),
    return change(s, DB_TENANT_SET, DB_WITH(STORE_LIMITS(VALUE) db_text(name)), name, e);
#undef VALUE
}

int store_tenants_count(struct store *s, uint32_t *ret, struct sg_error *e)
{
    return db_count(s, DB_TENANT_COUNT, NULL, ret, e);
}
