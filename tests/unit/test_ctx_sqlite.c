/* The store of contexts on SQLite, in a file and in memory, and what only it has: a file that is
 * kept, that another process writes, that cannot be written. */
#include "tap.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "ctx_conformance.h"
#include "front/store/db.h"

TAP_MAIN

static char dir[64];
static struct store *store;

static struct ctx_store *open_in(uv_loop_t *loop, struct store *s)
{
    struct ctx_store *ret = NULL;
    struct sg_error e;

    if (ctx_store_sqlite(loop, s, &ret, &e) < 0)
        rig_bail(e.message);
    return ret;
}

static struct ctx_store *memory_open(uv_loop_t *loop)
{
    return open_in(loop, NULL);
}

static void memory_close(struct ctx_store *s, uv_loop_t *loop)
{
    (void)loop;
    s->ops->close(s);
}

static struct store *store_open_ok(void)
{
    struct store *s = NULL;
    struct sg_error e;

    if (store_open(dir, &s, &e) < 0)
        rig_bail(e.message);
    return s;
}

static struct ctx_store *file_open(uv_loop_t *loop)
{
    snprintf(dir, sizeof(dir), "/tmp/test_ctx.XXXXXX");
    EXPECT(mkdtemp(dir) != NULL);
    store = store_open_ok();
    return open_in(loop, store);
}

static void file_close(struct ctx_store *s, uv_loop_t *loop)
{
    static const char *const files[] = {"/server.db", "/server.db-wal", "/server.db-shm", ""};

    (void)loop;
    s->ops->close(s);
    store_close(store);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[96];

        snprintf(path, sizeof(path), "%s%s", dir, files[i]);
        if (files[i][0])
            unlink(path);
        else
            EXPECT(rmdir(path) == 0);
    }
}

CTX_CONFORMANCE(memory)
CTX_CONFORMANCE(file)

/* ---- the file -------------------------------------------------------------------------------- */

static sqlite3 *open_raw(void)
{
    char path[96];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/server.db", dir);
    EXPECT(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    return db;
}

static void raw(sqlite3 *db, const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        printf("# %s: %s\n", sql, why);
        tap_failures++;
    }
    sqlite3_free(why);
}

static int number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return n;
}

/* Days that are long past, of two tenants; one is at the edge. */
static void case_old_usage(struct ctx_rig *t)
{
    sqlite3 *db = open_raw();

    raw(db, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) "
            "INSERT INTO usage_day SELECT 't' || (i % 2), date('now', '-' || i || ' days'), "
            "1, 1, 1, 1, 1, 1, 1, 1 FROM n");
    raw(db, "INSERT INTO usage_talk SELECT tenant, 'talk', day, 1, 1, 1, 1, 1, 1, 1, 1 "
            "FROM usage_day WHERE tenant IN ('t0', 't1')");
    EXPECT(forget_all(t, 0, 10 * 86400000ull, 4) >= 8);
    struct ctx_answer a = rig_days(t, "t0", "2000-01-01", "2999-12-31");
    struct ctx_answer b = rig_days(t, "t1", "2000-01-01", "2999-12-31");
    EXPECT(a.n + b.n >= 9 && a.n + b.n <= 11); /* midnight may pass */
    raw(db, "CREATE TEMP TABLE same AS SELECT day FROM usage_talk WHERE tenant IN ('t0', 't1') "
            "EXCEPT SELECT day FROM usage_day");
    EXPECT(number(db, "SELECT count(*) FROM same") == 0);
    EXPECT(number(db, "SELECT count(*) FROM usage_talk WHERE tenant IN ('t0', 't1')") ==
           (int)(a.n + b.n));
    sqlite3_close(db);
}

static void case_kept(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");

    t->s->ops->close(t->s);
    store_close(store);
    store = store_open_ok();
    t->s = open_in(t->loop, store);
    struct ctx_answer a = rig_claim(t, "talk", "main");
    EXPECT(a.r == 0 && a.claimed == CLAIM_FOUND);
    EXPECT_STR(a.row.id, row.id);
    EXPECT_STR(a.row.sandbox_id, row.sandbox_id);
}

/* Two processes are two connections. */
static void case_two_connections(struct ctx_rig *t)
{
    struct store *other = store_open_ok();
    struct ctx_store *first = t->s, *second = open_in(t->loop, other);
    struct crowd c = {0};

    for (int i = 0; i < CROWD; i++) {
        char id[ID_LEN + 1], node[ID_LEN + 1];
        struct ctx_claim q = rig_ask(t, "talk", "main", id);
        struct ctx_store *s = i % 2 ? first : second;

        id_random(node);
        q.node = node;
        s->ops->claim(s, &q, crowd_done, &c);
    }
    rig_run_until(t->loop, &c.came, CROWD);
    EXPECT(c.n_new == 1 && c.busy == CROWD - 1);
    EXPECT_STR(c.winner, c.seen);
    t->s = second;
    EXPECT(CALL(t, terminate, t->tenant, c.winner).r == 0);
    t->s = first;
    EXPECT(rig_get(t, c.winner).status == CTX_TERMINATED);
    second->ops->close(second);
    store_close(other);
}

static void case_written_by_another(struct ctx_rig *t)
{
    sqlite3 *db = open_raw();
    struct ctx_row row = rig_ready(t, "talk", "main");

    raw(db, "BEGIN IMMEDIATE");
    struct ctx_answer a = rig_claim(t, "talk", "other");
    EXPECT(a.r == -EAGAIN && a.e.kind == SG_ERR_LIMIT && strstr(a.e.message, "another process"));
    EXPECT(CALL(t, touch, t->tenant, row.id, 0).r == -EAGAIN);
    EXPECT(CALL(t, seen, t->node, "").r == -EAGAIN);
    EXPECT(rig_get(t, row.id).status == CTX_READY); /* reading goes on */
    raw(db, "COMMIT");
    EXPECT(rig_claim(t, "talk", "other").claimed == CLAIM_NEW);
    EXPECT(rig_list(t, CTX_ALL).n == 2);
    sqlite3_close(db);
}

static bool has_path(struct ctx_rig *t, const char *conversation, const char *path)
{
    struct ctx_answer a = CALL(t, paths, t->tenant, conversation);

    EXPECT(a.r == 0);
    for (size_t i = 0; i < a.n; i++)
        if (strcmp(a.paths[i].path, path) == 0)
            return true;
    return false;
}

/* No page more than there are. Nothing is half-made, and it goes on when there is room. */
static void case_no_room(struct ctx_rig *t)
{
    char path[32];
    struct ctx_answer a = {0};
    int n = 0;

    raw(store->db, "PRAGMA max_page_count = 1"); /* it becomes what there is */
    while (a.r == 0 && n < 1000) {
        snprintf(path, sizeof(path), "path %d", n++);
        a = rig_claim(t, "talk", path);
    }
    EXPECT(a.r == -EAGAIN && a.e.kind == SG_ERR_LIMIT && strstr(a.e.message, "no space"));
    EXPECT(!has_path(t, "talk", path));
    raw(store->db, "PRAGMA max_page_count = 100000");
    EXPECT(rig_claim(t, "talk", path).claimed == CLAIM_NEW);
    EXPECT(has_path(t, "talk", path));
}

static void case_read_only(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct ctx_usage_add add = {.usage = {.cpu_us = 1}};

    raw(store->db, "PRAGMA query_only = ON");
    struct ctx_answer a = rig_claim(t, "talk", "other");
    EXPECT(a.r == -EAGAIN && a.e.kind == SG_ERR_LIMIT);
    EXPECT(rig_claim(t, "talk", "main").r == -EAGAIN);
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == -EAGAIN);
    EXPECT(CALL(t, branch, t->tenant, "talk", "main", "side").r == -EAGAIN);
    EXPECT(CALL(t, usage_add, &add, 1).r == -EAGAIN);
    EXPECT(rig_get(t, row.id).status == CTX_READY);
    raw(store->db, "PRAGMA query_only = OFF");
    EXPECT(rig_claim(t, "talk", "main").claimed == CLAIM_FOUND);
    EXPECT(!has_path(t, "talk", "side") && !has_path(t, "talk", "other"));
}

static void case_foreign_rows(struct ctx_rig *t)
{
    sqlite3 *db = open_raw();
    struct ctx_row row = rig_ready(t, "talk", "main");
    char sql[256];

    /* Longer, negative, of another kind: it is cut, and nothing else happens. */
    snprintf(sql, sizeof(sql),
             "UPDATE context SET conversation = printf('%%.5000c', 'x'), sandbox = "
             "printf('%%.100c', 's'), cpu_us = -1, ttl_ms = -5 WHERE id = '%s'",
             row.id);
    raw(db, sql);
    row = rig_get(t, row.id);
    EXPECT(strlen(row.conversation) == CTX_NAME_MAX && strlen(row.sandbox_id) == ID_LEN);
    EXPECT(row.usage.cpu_us == 0 && row.ttl_ms == 0);
    /* A sum that is too large for the database stays at the most that we keep. */
    struct ctx_usage_add add = adding(t, row.id, (struct ctx_usage){.cpu_us = 5});
    snprintf(sql, sizeof(sql), "UPDATE context SET cpu_us = 9223372036854775807 WHERE id = '%s'",
             row.id);
    raw(db, sql);
    EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    EXPECT(rig_get(t, row.id).usage.cpu_us == 1ull << 53);
    sqlite3_close(db);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void case_node_that_died(struct ctx_rig *t)
{
    sqlite3 *db = open_raw();
    char other[ID_LEN + 1], sql[160];
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 50);

    id_random(other);
    rig_wait_past(t, row.id, row.expires_ms);
    EXPECT(CALL(t, expire, other, t->tenant, RIG_LEASE_MS, 10).n == 0);
    snprintf(sql, sizeof(sql), "UPDATE node SET seen_ms = seen_ms - %d WHERE id = '%s'",
             CTX_NODE_DEAD_MS + 1000, t->node);
    raw(db, sql);
    row = rig_get(t, row.id);
    EXPECT(!row.node_alive);
    EXPECT_STR(row.node_url, RIG_URL);
    struct ctx_answer a = CALL(t, expire, other, t->tenant, RIG_LEASE_MS, 10);
    EXPECT(a.n == 1 && rig_has(&a, row.id));
    EXPECT(CALL(t, seen, t->node, RIG_URL).r == 0);
    EXPECT(rig_get(t, row.id).node_alive);
    sqlite3_close(db);
}

static void case_usage_of_days(struct ctx_rig *t)
{
    sqlite3 *db = open_raw();
    char sql[400];

    snprintf(
        sql, sizeof(sql),
        "WITH RECURSIVE d(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM d WHERE i < 499) "
        "INSERT INTO usage_day SELECT '%s', date('2024-01-01', i || ' days'), 1, 2, 3, 4, 5, 6, "
        "7, 8 FROM d",
        t->tenant);
    raw(db, sql);
    struct ctx_answer a = rig_days(t, t->tenant, "2024-02-28", "2024-03-02");
    EXPECT(a.r == 0 && a.n == 4);
    EXPECT(a.n == 4 && strcmp(a.used[0].day, "2024-02-28") == 0);
    EXPECT(a.n == 4 && strcmp(a.used[1].day, "2024-02-29") == 0);
    EXPECT(a.n == 4 && strcmp(a.used[3].day, "2024-03-02") == 0);
    EXPECT(a.n == 4 && a.used[3].usage.cpu_us == 1 && a.used[3].usage.sandboxes == 6);
    a = rig_days(t, t->tenant, "2000-01-01", "2999-12-31");
    EXPECT(a.r == 0 && a.n == 400);
    sqlite3_close(db);
}

/* Who waits when the store is closed has the answer by then. */
static void case_closed_with_answers(struct ctx_rig *t)
{
    struct ctx_store *s = open_in(t->loop, store);
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, "talk", "main", id);

    t->came = 0;
    s->ops->claim(s, &q, rig_done, t);
    EXPECT(t->came == 0);
    s->ops->close(s);
    EXPECT(t->came == 1 && t->answer.claimed == CLAIM_NEW);
}

#define STATEMENT(name, text) {#name, text},
static const struct {
    const char *name, *text;
} statements[] = {CONTEXT_STATEMENTS(STATEMENT)};

/* The index of a statement that could use a worse one, or "". */
static const char *index_of(const char *statement)
{
    static const char *const best[][2] = {
        {"CTX_BY_PATH", "context_of_path"},   {"CTX_COUNT", "COVERING INDEX context_counted"},
        {"CTX_LIST", "context_of_tenant"},    {"CTX_LIST_ACTIVE", "context_active"},
        {"CTX_LIST_TALK", "of_conversation"}, {"CTX_LIST_SANDBOX", "context_of_sandbox"},
        {"CTX_EXPIRED", "context_expiry"},    {"CTX_STUCK", "context_making"},
        {"CTX_HALF_MADE", "context_making"},  {"CTX_DEAD", "context_of_node"},
        {"CTX_FORGET", "context_final"},      {"PATH_WINDOW", "PRIMARY KEY"},
        {"DAY_FORGET", "usage_day_by_day"},   {"TALK_FORGET", "usage_talk_by_day"},
        {"NODE_FORGET", "SCAN node"}, /* there are as many as servers */
    };

    for (size_t i = 0; i < ARRAY_SIZE(best); i++)
        if (strcmp(best[i][0], statement) == 0)
            return best[i][1];
    return "";
}

/* What there was once, and is kept, costs nothing: no statement reads a table through, nor sorts
 * more than the paths of one conversation. */
static void case_plans_use_indexes(struct ctx_rig *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_SIZE(statements); i++) {
        const char *name = statements[i].name, *index = index_of(name);
        char sql[2048], plan[1024] = "";
        sqlite3_stmt *st = NULL;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statements[i].text);
        EXPECT(sqlite3_prepare_v2(store->db, sql, -1, &st, NULL) == SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW)
            snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan), "%s; ",
                     (const char *)sqlite3_column_text(st, 3));
        sqlite3_finalize(st);
        if ((strstr(plan, "B-TREE") && strcmp(name, "PATHS") != 0) || !strstr(plan, index) ||
            (strstr(plan, "SCAN") && !index[0])) {
            printf("# %s: %s\n", name, plan);
            tap_failures++;
        }
    }
}

CTX_CASE(file, old_usage)
CTX_CASE(file, kept)
CTX_CASE(file, two_connections)
CTX_CASE(file, written_by_another)
CTX_CASE(file, no_room)
CTX_CASE(file, read_only)
CTX_CASE(file, foreign_rows)
CTX_CASE(file, node_that_died)
CTX_CASE(file, usage_of_days)
CTX_CASE(file, closed_with_answers)
CTX_CASE(file, plans_use_indexes)
