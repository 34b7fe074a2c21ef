/* API keys, and tokens that are kept like them.
 *
 * A key is 160 random bits, so a plain SHA-256 of it is enough: the slow hashes that passwords need
 * make guessing expensive, and nobody can guess such a key. A plain hash also keeps the check
 * cheap, which happens on every request.
 *
 * A small table caches the keys that were seen, each in the one place that its hash gives. SQLite's
 * data_version tells, for two system calls, whether another process has committed anything since
 * the last look; if so, the whole cache is dropped. Our own changes drop it themselves. */
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "front/store/db.h"

#define SECRET_BYTES  20
#define CACHE_ENTRIES 1024 /* a power of two */
#define NOTE_EVERY_MS 60000
#define HINT_HEAD     4 /* characters that a hint has of a token's random part */
#define HINT_TAIL     4

static const char *const prefixes[] = {
    [STORE_KEY] = "e2b_", [STORE_ADMIN] = "admin_e2b_", [STORE_ACCESS] = "sk_e2b_"};
_Static_assert(ARRAY_SIZE(prefixes) == STORE_TOKEN_MAX_, "every kind has a prefix");
_Static_assert(STORE_KEY_LEN == sizeof("e2b_") - 1 + 2 * SECRET_BYTES, "the length of a key");
_Static_assert(STORE_TOKEN_MAX == sizeof("admin_e2b_") - 1 + 2 * SECRET_BYTES, "the longest");

struct hash {
    unsigned char bytes[SHA256_DIGEST_LENGTH];
};

struct cached_key {
    struct hash hash;
    char id[ID_LEN + 1]; /* "": the place is empty */
    int64_t used_ms;
    struct store_tenant tenant;
};

struct key_cache {
    int64_t data_version;
    struct cached_key entries[CACHE_ENTRIES];
};

const char *store_token_prefix(enum store_token kind)
{
    return prefixes[kind];
}

/* False: the text cannot be a token of this kind at all. The prefix is hashed too: a text has one
 * kind. */
static bool hash_token(enum store_token kind, const char *text, struct hash *ret)
{
    size_t prefix = strlen(prefixes[kind]), len = prefix + 2 * SECRET_BYTES;

    if (strnlen(text, len + 1) != len || strncmp(text, prefixes[kind], prefix) != 0 ||
        strspn(text + prefix, "0123456789abcdef") != 2 * SECRET_BYTES)
        return false;
    SHA256((const unsigned char *)text, len, ret->bytes);
    return true;
}

void db_keys_changed(struct store *s)
{
    if (s->keys)
        *s->keys = (struct key_cache){0};
}

static struct cached_key *cache_place(struct store *s, const struct hash *hash)
{
    if (!s->keys)
        s->keys = xcalloc(1, sizeof(*s->keys));
    return &s->keys->entries[(hash->bytes[0] << 8 | hash->bytes[1]) & (CACHE_ENTRIES - 1)];
}

static bool same_hash(const struct hash *a, const void *b)
{
    return CRYPTO_memcmp(a->bytes, b, sizeof(a->bytes)) == 0;
}

/* Drops the cache if another process has changed the database. */
static int cache_revalidate(struct store *s)
{
    int64_t version = 0;
    int r = db_ask(s, DB_DATA_VERSION, NULL, &version, NULL);

    if (r < 0)
        return r;
    if (s->keys && s->keys->data_version != version) {
        db_keys_changed(s);
        s->keys->data_version = version;
    }
    return 0;
}

static struct db_value hash_value(const struct hash *hash)
{
    return db_bytes(hash->bytes, sizeof(hash->bytes));
}

/* Loads a key from the database into its place in the cache. */
static int cache_load(struct store *s, enum store_token kind, const struct hash *hash,
                      struct cached_key *place)
{
    struct cached_key k = {.hash = *hash};
    struct db_rows row =
        db_rows(s, DB_KEY_BY_HASH, DB_WITH(hash_value(hash), db_number(kind)), NULL);
    sqlite3_stmt *st = row.st;

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    db_column(st, 0, k.id, sizeof(k.id));
    k.used_ms = sqlite3_column_int64(st, 1);
    bool same = sqlite3_column_bytes(st, 2) == sizeof(hash->bytes) &&
                same_hash(hash, sqlite3_column_blob(st, 2));
    db_tenant(st, 4, &k.tenant);
    k.tenant.key_sanitise = (uint8_t)sqlite3_column_int64(st, 3);
    db_done(&row);
    if (!same)
        return -ENOENT;
    *place = k;
    return 0;
}

/* Notes the last use of a key. Nobody waits for this: it does not wait for the disk, and if another
 * process is writing it leaves the note for the next time. */
static void note_use(struct store *s, struct cached_key *k)
{
    int64_t now = clock_wall_ms();

    if (now - k->used_ms < NOTE_EVERY_MS && now >= k->used_ms)
        return;
    db_set_wait(s, 0);
    db_set_durable(s, false);
    if (db_run(s, DB_KEY_USED, DB_WITH(db_text(k->id), db_number(now)), NULL) == 0)
        k->used_ms = now;
    db_set_durable(s, true);
    db_set_wait(s, DB_WAIT_MS);
}

int store_token_check(struct store *s, enum store_token kind, const char *token,
                      struct store_tenant *ret)
{
    struct hash hash;

    if (!hash_token(kind, token, &hash))
        return -ENOENT;
    struct cached_key *k = cache_place(s, &hash);
    int r = cache_revalidate(s);
    if (r < 0)
        return r;
    if (!k->id[0] || !same_hash(&hash, k->hash.bytes)) {
        r = cache_load(s, kind, &hash, k);
        if (r < 0)
            return r;
    }
    note_use(s, k);
    *ret = k->tenant;
    return 0;
}

int store_key_check(struct store *s, const char *key, struct store_tenant *ret)
{
    return store_token_check(s, STORE_KEY, key, ret);
}

static int check_name(const char *name, struct sg_error *e)
{
    size_t len = strlen(name);
    bool valid = len <= STORE_NAME_MAX;

    for (size_t i = 0; valid && i < len; i++)
        valid = (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
    return valid ? 0
                 : err_invalid(e,
                               "'%.80s' is not a name for a key: use at most %d characters, no "
                               "control characters",
                               name, STORE_NAME_MAX);
}

static void make_token(enum store_token kind, char ret[STORE_TOKEN_MAX + 1])
{
    unsigned char secret[SECRET_BYTES];
    size_t n = 0;

    /* The kernel gives so few bytes at once or not at all. Without them there must be no key. */
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        abort();
    n = (size_t)snprintf(ret, STORE_TOKEN_MAX + 1, "%s", prefixes[kind]);
    for (size_t i = 0; i < sizeof(secret); i++)
        n += (size_t)snprintf(ret + n, STORE_TOKEN_MAX + 1 - n, "%02x", secret[i]);
    OPENSSL_cleanse(secret, sizeof(secret));
}

/* Whose it is: nobody's, if it is an operator's. */
static int take_tenant(struct store *s, const char *id, struct store_key *k, struct sg_error *e)
{
    struct store_tenant tenant;
    int r = store_tenant_get(s, id, &tenant);

    if (r < 0)
        return err_set(e, SG_ERR_NOT_FOUND, r, "no tenant with the id '%.40s'", id);
    memcpy(k->tenant, tenant.id, sizeof(k->tenant));
    memcpy(k->tenant_name, tenant.name, sizeof(k->tenant_name));
    return 0;
}

int store_token_create(struct store *s, enum store_token kind, const char *tenant_id,
                       const char *name, char ret[STORE_TOKEN_MAX + 1], struct store_key *ret_info,
                       struct sg_error *e)
{
    struct store_key k = {.kind = kind, .created_ms = clock_wall_ms()};
    char token[STORE_TOKEN_MAX + 1];
    struct hash hash;
    int r = check_name(name, e);

    if (r == 0 && kind != STORE_ADMIN)
        r = take_tenant(s, tenant_id, &k, e);
    if (r < 0)
        return r;
    make_token(kind, token);
    hash_token(kind, token, &hash);
    id_random(k.id);
    snprintf(k.name, sizeof(k.name), "%s", name);
    snprintf(k.hint, sizeof(k.hint), "%.*s...%s", (int)strlen(prefixes[kind]) + HINT_HEAD, token,
             token + strlen(token) - HINT_TAIL);
    r = db_run(s, DB_KEY_ADD,
               DB_WITH(db_text(k.id), db_text(k.tenant[0] ? k.tenant : NULL), db_text(k.name),
                       hash_value(&hash), db_text(k.hint), db_number(k.created_ms),
                       db_number(kind)),
               e);
    if (r == 0) {
        memcpy(ret, token, sizeof(token));
        if (ret_info)
            *ret_info = k;
    }
    OPENSSL_cleanse(token, sizeof(token));
    return r;
}

int store_key_create(struct store *s, const char *tenant_id, const char *name,
                     char ret[STORE_KEY_LEN + 1], struct store_key *ret_info, struct sg_error *e)
{
    char token[STORE_TOKEN_MAX + 1];
    int r = store_token_create(s, STORE_KEY, tenant_id, name, token, ret_info, e);

    if (r == 0)
        memcpy(ret, token, STORE_KEY_LEN + 1);
    OPENSSL_cleanse(token, sizeof(token));
    return r;
}

/* The change of one token, which the statement finds by tenant, kind and id. */
static int change_own(struct store *s, enum db_statement which, const struct db_value *with,
                      const char *id, struct sg_error *e)
{
    int r = db_run(s, which, with, e);

    if (r == 0 && db_changed(s) == 0)
        r = err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no key with the id '%.40s'", id);
    db_keys_changed(s);
    return r;
}

int store_token_rename(struct store *s, const char *tenant, enum store_token kind, const char *id,
                       const char *name, struct sg_error *e)
{
    int r = check_name(name, e);

    return r < 0 ? r
                 : change_own(s, DB_KEY_NAME,
                              DB_WITH(db_text(tenant), db_number(kind), db_text(id), db_text(name),
                                      db_number(clock_wall_ms())),
                              id, e);
}

int store_token_end(struct store *s, const char *tenant, enum store_token kind, const char *id,
                    struct sg_error *e)
{
    return change_own(
        s, DB_KEY_END,
        DB_WITH(db_text(tenant), db_number(kind), db_text(id), db_number(clock_wall_ms())), id, e);
}

int store_tokens_count(struct store *s, const char *tenant, enum store_token kind, uint32_t *ret,
                       struct sg_error *e)
{
    return db_count(s, DB_KEY_COUNT, DB_WITH(db_text(tenant), db_number(kind)), ret, e);
}

int store_key_sanitise(struct store *s, const char *id, uint8_t sanitise, struct sg_error *e)
{
    int r = db_run(s, DB_KEY_SANITISE, DB_WITH(db_text(id), db_number(sanitise)), e);

    db_keys_changed(s);
    return r;
}

void db_key(sqlite3_stmt *st, struct store_key *ret)
{
    int64_t kind = sqlite3_column_int64(st, 7);

    *ret = (struct store_key){.created_ms = sqlite3_column_int64(st, 5),
                              .revoked_ms = sqlite3_column_int64(st, 6),
                              .kind = kind > 0 && kind < STORE_TOKEN_MAX_ ? (enum store_token)kind
                                                                          : STORE_KEY};
    db_column(st, 0, ret->id, sizeof(ret->id));
    db_column(st, 1, ret->tenant, sizeof(ret->tenant));
    db_column(st, 2, ret->tenant_name, sizeof(ret->tenant_name));
    db_column(st, 3, ret->name, sizeof(ret->name));
    db_column(st, 4, ret->hint, sizeof(ret->hint));
}

int store_keys_each(struct store *s, const char *tenant,
                    bool (*fn)(const struct store_key *, void *), void *arg, struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_KEY_LIST, DB_WITH(db_text(tenant)), e);

    while (db_next(&rows)) {
        struct store_key k;

        db_key(rows.st, &k);
        k.used_ms = sqlite3_column_int64(rows.st, 8);
        k.sanitise = (uint8_t)sqlite3_column_int64(rows.st, 9);
        if (!fn(&k, arg))
            break;
    }
    return db_done(&rows);
}

int store_key_revoke(struct store *s, const char *which, struct sg_error *e)
{
    struct hash hash;
    struct db_value by_hash = db_text(NULL);
    int64_t found;

    for (enum store_token kind = 0; kind < STORE_TOKEN_MAX_; kind++)
        if (hash_token(kind, which, &hash)) {
            by_hash = hash_value(&hash);
            break;
        }
    int r = db_ask(s, DB_KEY_EXISTS, DB_WITH(db_text(which), by_hash), &found, e);

    if (r < 0)
        return r;
    if (r == 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "no such key: 'sandglass key list' shows them");
    r = db_run(s, DB_KEY_REVOKE, DB_WITH(db_text(which), by_hash, db_number(clock_wall_ms())), e);
    db_keys_changed(s);
    return r;
}
