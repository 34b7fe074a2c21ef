/* Keys between servers on one database: each has a file of its own. */
#include "pg_rig.h"

#include "front/store/keys_shared.h"
#include "front/store/store.h"

TAP_MAIN

struct server {
    char dir[64];
    struct store *store;
    struct dbworker *dbworker;
    struct keys_shared *keys;
};

static struct server server_open(uv_loop_t *loop)
{
    struct server s = {.dir = "/tmp/test_keys.XXXXXX"};
    struct sg_error e;

    if (!mkdtemp(s.dir) || store_open(s.dir, &s.store, &e) < 0)
        rig_bail("no store");
    s.dbworker = pg_dbworker(loop, pg_server()->uri);
    s.keys = keys_shared_start(loop, s.store, s.dbworker);
    return s;
}

static void server_close(struct server *s)
{
    static const char *const files[] = {"server.db", "server.db-wal", "server.db-shm"};

    keys_shared_stop(s->keys);
    dbworker_dismiss(s->dbworker);
    store_close(s->store);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", s->dir, files[i]);
        unlink(path);
    }
    EXPECT(rmdir(s->dir) == 0);
}

static void make_key(struct server *s, const char *tenant, char key[STORE_KEY_LEN + 1],
                     struct store_key *info)
{
    struct store_tenant t;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s->store, tenant, &t, &e) == 0);
    EXPECT(store_key_create(s->store, t.id, "laptop", key, info, &e) == 0);
}

struct renamed {
    const char *id, *name;
    bool is;
};

static bool look_at_name(const struct store_key *k, void *arg)
{
    struct renamed *n = arg;

    n->is = n->is || (strcmp(k->id, n->id) == 0 && strcmp(k->name, n->name) == 0);
    return true;
}

static void ignore(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until the server knows the key, or does not any more. */
static bool becomes(uv_loop_t *loop, struct server *s, const char *key, bool known)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;
    struct store_tenant t;
    uv_timer_t tick;
    bool is = !known;

    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, ignore, 20, 20);
    while (is != known && clock_ns() < end) {
        uv_run(loop, UV_RUN_ONCE);
        is = store_key_check(s->store, key, &t) == 0;
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return is == known;
}

TEST(a_key_is_known_everywhere)
{
    char key[STORE_KEY_LEN + 1], later[STORE_KEY_LEN + 1];
    struct store_key info, other;
    struct store_tenant ta, tb;
    struct sg_error e;
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    struct server a = server_open(&loop);
    char admin[STORE_TOKEN_MAX + 1];
    EXPECT(store_token_create(a.store, STORE_ADMIN, NULL, "ops", admin, NULL, &e) == 0);
    make_key(&a, "acme", key, &info); /* before the first look */
    struct server b = server_open(&loop);
    EXPECT(becomes(&loop, &b, key, true));
    EXPECT(store_key_check(a.store, key, &ta) == 0 && store_key_check(b.store, key, &tb) == 0);
    EXPECT_STR(ta.id, tb.id);
    EXPECT_STR(tb.name, "acme");
    EXPECT(store_token_check(b.store, STORE_ADMIN, admin, &tb) == 0 && tb.id[0] == '\0');

    /* The other way, later; and what is revoked or renamed in one place is so in the other. */
    make_key(&b, "globex", later, &other);
    EXPECT(becomes(&loop, &a, later, true));
    struct renamed named = {.id = other.id, .name = "desk"};
    EXPECT(store_token_rename(b.store, other.tenant, STORE_KEY, other.id, "desk", &e) == 0);
    EXPECT(store_key_revoke(b.store, admin, &e) == 0);
    EXPECT(store_key_revoke(b.store, info.id, &e) == 0);
    EXPECT(becomes(&loop, &a, key, false));
    EXPECT(store_token_check(a.store, STORE_ADMIN, admin, &ta) == -ENOENT);
    EXPECT(store_keys_each(a.store, NULL, look_at_name, &named, &e) == 0 && named.is);
    EXPECT(store_key_check(a.store, later, &ta) == 0);
    EXPECT_STR(ta.name, "globex");

    /* A server that comes new has all that is valid. */
    struct server c = server_open(&loop);
    EXPECT(becomes(&loop, &c, later, true));
    EXPECT(store_key_check(c.store, key, &ta) == -ENOENT);
    server_close(&a);
    server_close(&b);
    server_close(&c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}

TEST(the_database_has_hashes_only)
{
    char key[STORE_KEY_LEN + 1], sql[300];
    struct store_key info;
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    struct server a = server_open(&loop), b = server_open(&loop);
    make_key(&a, "acme", key, &info);
    EXPECT(becomes(&loop, &b, key, true));
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM sandglass.api_key k WHERE k::text LIKE '%%' || '%s' || '%%'",
             key + 4);
    EXPECT_STR(pg_sql(sql), "0");
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM sandglass.api_key k WHERE k.hash = "
             "encode(sha256('%s'), 'hex') AND revoked_at IS NULL",
             key);
    EXPECT_STR(pg_sql(sql), "1");
    server_close(&a);
    server_close(&b);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* More than a page and more than a message. */
TEST(many_keys)
{
    enum { MANY = 450 };
    static char keys[MANY][STORE_KEY_LEN + 1];
    struct store_key info;
    struct store_tenant t;
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    struct server a = server_open(&loop);
    for (int i = 0; i < MANY; i++)
        make_key(&a, i % 2 ? "odd" : "even", keys[i], &info);
    struct server b = server_open(&loop);
    EXPECT(becomes(&loop, &b, keys[MANY - 1], true));
    for (int i = 0; i < MANY; i++)
        EXPECT(store_key_check(b.store, keys[i], &t) == 0);
    server_close(&a);
    server_close(&b);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* The schema was dropped: everything is told again. Rows that are no keys are left out. */
TEST(after_a_loss_and_with_nonsense)
{
    char key[STORE_KEY_LEN + 1], later[STORE_KEY_LEN + 1];
    struct store_key info;
    struct store_tenant t;
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    struct server a = server_open(&loop), b = server_open(&loop);
    make_key(&a, "acme", key, &info);
    EXPECT(becomes(&loop, &b, key, true));
    pg_sql("DROP SCHEMA sandglass CASCADE");
    struct server c = server_open(&loop);
    EXPECT(becomes(&loop, &c, key, true));
    pg_sql("INSERT INTO sandglass.tenant VALUES ('x', 'No Such Name!', now())");
    pg_sql("INSERT INTO sandglass.api_key VALUES ('nonsense', 'x', '', 'zz', '', now(), NULL, "
           "nextval('sandglass.key_change'))");
    make_key(&a, "acme", later, &info);
    EXPECT(becomes(&loop, &b, later, true) && becomes(&loop, &c, later, true));
    EXPECT(store_key_check(c.store, key, &t) == 0);
    server_close(&a);
    server_close(&b);
    server_close(&c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}
