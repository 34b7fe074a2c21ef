/* Tenants: limits of their own, ids that follow from names, and files that an earlier version
 * wrote.
 */
#include "front/store/events.h"
#include "store_place.h"

TAP_MAIN

/* ---- limits ---------------------------------------------------------------------------------- */

static const uint64_t none = 0, three = 3, seven = 7, big = 1ull << 40, minute = 60000;

TEST(limits_are_set_one_by_one)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant t, other;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s, "acme", &t, &e) == 0);
    EXPECT(store_tenant_ensure(s, "beta", &other, &e) == 0);
    EXPECT(t.max_sandboxes == 0 && t.max_contexts == 0 && t.max_conversation_contexts == 0);
    EXPECT(t.execution_timeout_ms == 0 && t.execution_timeout_max_ms == 0);
    EXPECT(t.code_max == 0 && t.memory == 0);
    EXPECT(store_tenant_limit(
               s, "acme",
               &(struct store_limits){.max_contexts = &seven, .max_conversation_contexts = &three},
               &e) == 0);
    EXPECT(store_tenant_limit(s, "acme",
                              &(struct store_limits){.max_sandboxes = &three,
                                                     .execution_timeout_ms = &minute,
                                                     .execution_timeout_max_ms = &big,
                                                     .code_max = &big,
                                                     .memory = &big},
                              &e) == 0);
    EXPECT(store_tenant_get(s, t.id, &t) == 0);
    EXPECT(t.max_sandboxes == 3 && t.max_contexts == 7 && t.max_conversation_contexts == 3);
    EXPECT(t.execution_timeout_ms == minute && t.execution_timeout_max_ms == big);
    EXPECT(t.code_max == big && t.memory == big);
    EXPECT(store_tenant_limit(s, "acme", &(struct store_limits){.max_contexts = &none}, &e) == 0);
    EXPECT(store_tenant_get(s, t.id, &t) == 0 && t.max_contexts == 0 && t.max_sandboxes == 3);
    EXPECT(store_tenant_get(s, other.id, &other) == 0 && other.max_contexts == 0);
    EXPECT(store_tenant_limit(s, "nobody", &(struct store_limits){.memory = &big}, &e) == -ENOENT);
    EXPECT(e.kind == SG_ERR_NOT_FOUND && strstr(e.message, "'nobody'"));
    store_close(s);
    place_remove(&p);
}

TEST(how_a_tenant_and_a_key_are_sanitised)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1];
    struct store_key info;
    struct store_tenant t;
    struct sg_error e;

    make_key(s, "acme", key, &info);
    EXPECT(store_key_check(s, key, &t) == 0);
    EXPECT(t.sanitise == 0 && !t.sanitise_always && t.key_sanitise == 0);
    EXPECT(store_tenant_sanitise(s, "acme", 2, true, &e) == 0);
    EXPECT(store_key_sanitise(s, info.id, 3, &e) == 0);
    EXPECT(store_key_check(s, key, &t) == 0);
    EXPECT(t.sanitise == 2 && t.sanitise_always && t.key_sanitise == 3);
    EXPECT(store_tenant_get(s, t.id, &t) == 0 && t.sanitise == 2 && t.key_sanitise == 0);
    EXPECT(store_tenant_sanitise(s, "acme", 0, false, &e) == 0);
    EXPECT(store_key_check(s, key, &t) == 0 && t.sanitise == 0 && !t.sanitise_always);
    EXPECT(store_tenant_sanitise(s, "nobody", 1, false, &e) == -ENOENT);
    store_close(s);
    place_remove(&p);
}

/* By a server that has the key in its memory: its own change, and that of another process. */
TEST(limits_are_seen_with_the_next_check_of_a_key)
{
    struct place p = place_make();
    struct store *server = open_ok(&p), *tool = open_ok(&p);
    char key[STORE_KEY_LEN + 1];
    struct store_tenant t;
    struct sg_error e;

    make_key(server, "acme", key, NULL);
    EXPECT(store_key_check(server, key, &t) == 0 && t.max_contexts == 0);
    EXPECT(store_tenant_limit(tool, "acme", &(struct store_limits){.max_contexts = &seven}, &e) ==
           0);
    EXPECT(store_key_check(server, key, &t) == 0 && t.max_contexts == 7);
    EXPECT(store_tenant_limit(server, "acme",
                              &(struct store_limits){.max_contexts = &three, .memory = &big},
                              &e) == 0);
    EXPECT(store_key_check(server, key, &t) == 0 && t.max_contexts == 3 && t.memory == big);
    EXPECT_STR(t.name, "acme");
    store_close(tool);
    store_close(server);
    place_remove(&p);
}

TEST(limits_that_nobody_can_mean_are_as_if_not_set)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant t;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s, "acme", &t, &e) == 0);
    run_sql(&p, "UPDATE tenant SET max_contexts = -4, max_sandboxes = 1 << 40, memory = -1");
    EXPECT(store_tenant_get(s, t.id, &t) == 0);
    EXPECT(t.max_contexts == 0 && t.max_sandboxes == 0 && t.memory == 0);
    store_close(s);
    place_remove(&p);
}

static bool collect(const struct store_tenant *t, void *arg)
{
    char *all = arg;

    snprintf(all + strlen(all), 64 - strlen(all), "%s ", t->name);
    return strcmp(t->name, "c") != 0;
}

TEST(tenants_are_listed_by_name)
{
    static const char *const names[] = {"b", "d", "a", "c"};
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant t;
    struct sg_error e;
    char all[64] = "";

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        EXPECT(store_tenant_ensure(s, names[i], &t, &e) == 0);
    EXPECT(store_tenants_each(s, collect, all, &e) == 0);
    EXPECT_STR(all, "a b c "); /* until it is told to stop */
    store_close(s);
    place_remove(&p);
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Servers that share a database of contexts must agree, today and after any update. */
TEST(id_follows_from_the_name)
{
    struct place p = place_make(), q = place_make();
    struct store *s = open_ok(&p), *other = open_ok(&q);
    struct store_tenant a, b, c;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s, "default", &a, &e) == 0);
    EXPECT(store_tenant_ensure(other, "default", &b, &e) == 0);
    EXPECT(store_tenant_ensure(other, "default2", &c, &e) == 0);
    EXPECT(id_valid(a.id));
    EXPECT_STR(a.id, b.id);
    EXPECT_STR(a.id, "uw88c9662pfytsvqckpa");
    EXPECT(strcmp(a.id, c.id) != 0);
    store_close(s);
    store_close(other);
    place_remove(&p);
    place_remove(&q);
}

/* ---- an older file --------------------------------------------------------------------------- */

/* What version 1 wrote. */
static const char first_schema[] =
    "CREATE TABLE tenant ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " max_sandboxes INTEGER NOT NULL DEFAULT 0,"
    " created_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE key ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " hash BLOB NOT NULL UNIQUE,"
    " hint TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " used_ms INTEGER NOT NULL DEFAULT 0,"
    " revoked_ms INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE secret ("
    " name TEXT NOT NULL PRIMARY KEY,"
    " value BLOB NOT NULL) STRICT;"
    "CREATE TABLE snapshot ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " tag TEXT NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " base_template TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL) STRICT;"
    "CREATE INDEX snapshot_of_tenant ON snapshot (tenant, seq);"
    "CREATE UNIQUE INDEX snapshot_by_name ON snapshot (tenant, name, tag) WHERE name <> '';"
    "CREATE TABLE loose_layer ("
    " id TEXT NOT NULL PRIMARY KEY) STRICT;"
    "CREATE TRIGGER layer_named AFTER INSERT ON snapshot"
    " BEGIN DELETE FROM loose_layer WHERE id = new.id; END;"
    "CREATE TRIGGER layer_loose AFTER DELETE ON snapshot"
    " BEGIN INSERT OR IGNORE INTO loose_layer (id) VALUES (old.id); END;"
    "INSERT INTO tenant VALUES ('oldid000000000000001', 'default', 12, 1000);"
    "INSERT INTO secret VALUES ('cookie', x'0102030405060708');"
    "INSERT INTO snapshot VALUES (4, 'snap0000000000000001', 'oldid000000000000001', 'mine',"
    " 'default', 'sandbox', 'base', 2000, 4096);"
    "INSERT INTO loose_layer VALUES ('layer000000000000001');"
    "PRAGMA application_id = 0x73676c31; PRAGMA user_version = 1;";

static void count_snapshot(const char *id, void *arg)
{
    *(int *)arg += strcmp(id, "layer000000000000001") == 0;
}

TEST(older_file_is_brought_forward)
{
    struct place p = place_make();
    struct store_snapshot snap;
    struct store_tenant t;
    struct sg_error e;
    unsigned char secret[8];
    char key[STORE_KEY_LEN + 1];
    int snapshots = 0;

    run_sql(&p, first_schema);
    for (int i = 0; i < 2; i++) { /* the second time it is as new as we are */
        struct store *s = open_ok(&p);

        EXPECT(store_tenant_ensure(s, "default", &t, &e) == 0);
        EXPECT_STR(t.id, "oldid000000000000001");
        EXPECT(t.max_sandboxes == 12 && t.max_contexts == 0 && t.memory == (i > 0 ? big : 0));
        EXPECT(store_snapshot_get(s, t.id, "mine", &snap, &e) == 0 && snap.bytes == 4096);
        EXPECT(store_secret(s, "cookie", secret, sizeof(secret), &e) == 0 && secret[7] == 8);
        snapshots = 0;
        EXPECT(store_loose_snapshots_each(s, count_snapshot, &snapshots, &e) == 0 &&
               snapshots == 1);
        make_key(s, "default", key, NULL);
        EXPECT(store_key_check(s, key, &t) == 0 && t.max_sandboxes == 12);
        EXPECT(store_tenant_limit(s, "default", &(struct store_limits){.memory = &big}, &e) == 0);
        store_close(s);
    }
    run_sql(&p, "SELECT id, sandbox, status FROM context; SELECT parent FROM path;"
                "SELECT day FROM usage_day; SELECT url FROM node");
    place_remove(&p);
}

static bool count_event(const struct store_event *ev, void *arg)
{
    (void)ev;
    ++*(int *)arg;
    return true;
}

/* What was used before there were conversations and egress in it is still there, and nobody's. */
TEST(usage_of_an_older_file_is_kept)
{
    struct place p = place_make();
    struct sg_error e;
    int events = 0;

    store_close(open_ok(&p));
    /* What later versions have added. */
    run_sql(&p, "DROP TABLE template_copy; DROP TABLE team_metric; DROP TABLE webhook; DROP TABLE "
                "volume; DROP TABLE build_image;"
                "DROP TABLE dropped_layer;"
                "DROP TABLE upload; DROP TABLE template_tag; DROP TABLE build_log;"
                "DROP TABLE build; DROP TABLE build_cache; DROP TABLE build_layer;"
                "DROP TABLE template; ALTER TABLE snapshot DROP COLUMN defaults;");
    run_sql(&p, "DROP TRIGGER context_over; DROP TABLE context_kept; DROP TABLE living;"
                "DROP INDEX context_final; DROP INDEX context_of_node;"
                "DROP INDEX path_of_conversation; DROP INDEX usage_day_by_day;"
                "ALTER TABLE tenant DROP COLUMN max_paused;"
                "ALTER TABLE tenant DROP COLUMN max_paused_memory;");
    run_sql(&p, "DROP TABLE usage_talk; DROP TABLE event; DROP TABLE event_mark;"
                "DROP TABLE webhook_open; ALTER TABLE context DROP COLUMN egress_up;"
                "ALTER TABLE context DROP COLUMN egress_down;"
                "ALTER TABLE usage_day DROP COLUMN egress_up;"
                "ALTER TABLE usage_day DROP COLUMN egress_down;"
                "INSERT INTO usage_day VALUES ('t', '2026-01-02', 1, 2, 3, 4, 5, 6);"
                "PRAGMA user_version = 4");
    struct store *s = open_ok(&p);
    EXPECT(store_events_each(s, NULL, 0, INT64_MAX, count_event, &events, &e) == 0 && events == 0);
    store_close(s);
    run_sql(&p, "CREATE TABLE right (ok CHECK (ok = 2));"
                "INSERT INTO right SELECT count(*) FROM ("
                "SELECT * FROM usage_day WHERE tenant = 't' AND sandboxes = 6 AND egress_up = 0 "
                "UNION ALL SELECT tenant, day, cpu_us, memory_mib_ms, bytes_in, bytes_out, "
                "executions, sandboxes, egress_up, egress_down FROM usage_talk "
                "WHERE conversation = '' AND day = '2026-01-02' AND bytes_out = 4)");
    place_remove(&p);
}

/* A migration that fails leaves the file as it was, for the program that it belongs to. */
TEST(failed_migration_changes_nothing)
{
    struct place p = place_make();
    struct store *s = NULL;
    struct sg_error e;

    run_sql(&p, first_schema);
    run_sql(&p, "CREATE TABLE usage_day (x)"); /* in the way of the second */
    EXPECT(store_open(p.dir, &s, &e) < 0 && e.message[0]);
    run_sql(&p, "DROP TABLE usage_day");
    run_sql(&p, "CREATE TABLE context (y); DROP TABLE context"); /* it was not made */
    s = open_ok(&p);
    store_close(s);
    place_remove(&p);
}
