/* Contexts in PostgreSQL: what every store does, and what only a database can get wrong. */
#include "ctx_conformance.h"
#include "pg_rig.h"

TAP_MAIN

static struct ctx_store *postgres_open(uv_loop_t *loop)
{
    return pg_store(loop, pg_server()->uri);
}

static void postgres_close(struct ctx_store *s, uv_loop_t *loop)
{
    pg_store_close(s, loop);
}

CTX_CONFORMANCE(postgres)

/* ---- several servers ------------------------------------------------------------------------- */

#define SERVERS 4
#define ROUNDS  40
#define CALLERS 4 /* of each server, in each round */

/* All of them want the same path at once, each as its own server: one makes it. */
TEST(one_winner_among_servers)
{
    struct ctx_rig rigs[SERVERS] = {0};
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    id_random(rigs[0].tenant);
    for (int i = 0; i < SERVERS; i++) {
        rigs[i].loop = &loop;
        rigs[i].s = postgres_open(&loop);
        memcpy(rigs[i].tenant, rigs[0].tenant, sizeof(rigs[i].tenant));
        id_random(rigs[i].node);
        EXPECT(CALL(&rigs[i], seen, rigs[i].node, RIG_URL).r == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd c = {0};
        char path[16];

        snprintf(path, sizeof(path), "path %d", round);
        for (int i = 0; i < SERVERS * CALLERS; i++) {
            char id[ID_LEN + 1], node[ID_LEN + 1];
            struct ctx_rig *t = &rigs[i % SERVERS];
            struct ctx_claim q = rig_ask(t, "talk", path, id);

            id_random(node);
            q.node = node;
            t->s->ops->claim(t->s, &q, crowd_done, &c);
        }
        rig_run_until(&loop, &c.came, SERVERS * CALLERS);
        EXPECT(c.n_new == 1 && c.busy == SERVERS * CALLERS - 1);
        EXPECT_STR(c.winner, c.seen);
    }
    EXPECT(rig_list(&rigs[0], CTX_ALL).n == ROUNDS);
    for (int i = 0; i < SERVERS; i++) {
        while (rigs[i].n_kept > 0)
            free(rigs[i].kept[--rigs[i].n_kept]);
        rigs[i].s->ops->close(rigs[i].s);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* What expires is ended by one of them, though all look at the same moment. */
static void on_expired(void *arg, const struct ctx_reply *reply)
{
    int *counts = arg;

    EXPECT(reply->r == 0);
    counts[0]++;
    counts[1] += (int)reply->n;
}

static void expire_by_many(struct ctx_rig *t)
{
    struct ctx_store *others[SERVERS];
    struct ctx_row row = {0};
    int counts[2] = {0};

    for (int i = 0; i < 30; i++) {
        char path[16];

        snprintf(path, sizeof(path), "path %d", i);
        row = rig_ready_ttl(t, "talk", path, 50);
    }
    rig_wait_past(t, row.id, row.expires_ms);
    for (int i = 0; i < SERVERS; i++) {
        others[i] = postgres_open(t->loop);
        others[i]->ops->expire(others[i], t->node, t->tenant, RIG_LEASE_MS, 50, on_expired, counts);
    }
    rig_run_until(t->loop, counts, SERVERS);
    EXPECT(counts[1] == 30);
    EXPECT(rig_list(t, CTX_ACTIVE).n == 0);
    for (int i = 0; i < SERVERS; i++)
        others[i]->ops->close(others[i]);
}

TEST(expired_once)
{
    rig_run(postgres_open, postgres_close, expire_by_many);
}

/* Days that are long past, and one that is not. */
static void old_usage(struct ctx_rig *t)
{
    pg_sql("INSERT INTO sandglass.usage_day SELECT 'old', current_date - i, 1, 1, 1, 1, 1, 1, 1, 1 "
           "FROM generate_series(1, 40) i");
    pg_sql("INSERT INTO sandglass.usage_talk SELECT 'old', 'talk', current_date - i, "
           "1, 1, 1, 1, 1, 1, 1, 1 FROM generate_series(1, 40) i");
    EXPECT(forget_all(t, 0, 10 * 86400000ull, 4) >= 7);
    struct ctx_answer a = rig_days(t, "old", "2000-01-01", "2999-12-31");
    EXPECT(a.n >= 9 && a.n <= 11); /* midnight may pass */
    char sql[160];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) = %zu FROM sandglass.usage_talk WHERE tenant_id = "
             "'old'",
             a.n);
    EXPECT_STR(pg_sql(sql), "t");
}

TEST(old_days_are_forgotten)
{
    rig_run(postgres_open, postgres_close, old_usage);
}

/* ---- large and many -------------------------------------------------------------------------- */

static void list_of_the_longest(struct ctx_rig *t)
{
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1], error[CTX_ERROR_MAX + 1];

    memset(conversation, 'c', sizeof(conversation) - 1);
    memset(error, 'e', sizeof(error) - 1);
    conversation[CTX_NAME_MAX] = error[CTX_ERROR_MAX] = '\0';
    for (int i = 0; i < CTX_LIST_MAX + 1; i++) {
        memset(path, 'p', sizeof(path));
        snprintf(path + CTX_NAME_MAX - 3, 4, "%03d", i);
        struct ctx_answer a = rig_claim(t, conversation, path);
        EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, NULL, error, NULL).r == 0);
    }
    struct ctx_answer a = rig_list(t, CTX_ALL);
    EXPECT(a.r == 0 && a.n == CTX_LIST_MAX && a.more);
    for (size_t i = 0; i < a.n; i++) {
        EXPECT_STR(a.rows[i].conversation, conversation);
        EXPECT_STR(a.rows[i].error, error);
    }
    EXPECT(CALL(t, paths, t->tenant, conversation).n == CTX_LIST_MAX);
}

TEST(a_list_of_many_packets)
{
    rig_run(postgres_open, postgres_close, list_of_the_longest);
}

struct tally {
    int came, good, again;
};

static void on_tally(void *arg, const struct ctx_reply *reply)
{
    struct tally *n = arg;

    n->came++;
    n->good += reply->r == 0;
    n->again += reply->r == -EAGAIN;
}

static void more_than_fit(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct tally n = {0};
    const int extra = 10;

    for (int i = 0; i < DBWORKER_CALLS_MAX + extra; i++)
        t->s->ops->get(t->s, t->tenant, row.id, on_tally, &n);
    EXPECT(n.came == 0);
    rig_run_until(t->loop, &n.came, DBWORKER_CALLS_MAX + extra);
    EXPECT(n.again >= extra && n.good + n.again == DBWORKER_CALLS_MAX + extra);
    EXPECT(rig_get(t, row.id).status == CTX_READY);
}

TEST(more_calls_than_fit)
{
    rig_run(postgres_open, postgres_close, more_than_fit);
}

TEST(closed_while_calls_are_under_way)
{
    struct tally n = {0};
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    struct ctx_store *s = postgres_open(&loop);
    for (int i = 0; i < 100; i++)
        s->ops->get(s, "tenant", "context", on_tally, &n);
    s->ops->close(s);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(n.came == 100 && n.again == 100);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* ---- row-level security ---------------------------------------------------------------------- */

/* As this role and tenant. The superuser becomes the role, which then is under its policies. */
static const char *as(const char *role, const char *tenant, const char *sql)
{
    char text[600];

    snprintf(text, sizeof(text),
             "BEGIN; SET ROLE %s; SELECT set_config('sandglass.tenant', '%s', true) \\gset\n%s",
             role, tenant, sql);
    static char line[512];
    PG_SCRIPT(line, sizeof(line), "sql", pg_server()->dir, text);
    return line;
}

static void rows_of_others(struct ctx_rig *t)
{
    static const char *const counts[] = {
        "SELECT count(*) FROM sandglass.context",
        "SELECT count(*) FROM sandglass.path",
        "SELECT count(*) FROM sandglass.usage_day",
        "SELECT count(*) FROM sandglass.usage_talk",
        "SELECT count(*) FROM sandglass.active_contexts",
        "SELECT count(*) FROM sandglass.context_detail",
    };
    struct ctx_usage_add add = {.usage = {.executions = 1}};

    pg_sql("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reader') THEN "
           "CREATE ROLE reader; END IF; END $$");
    pg_sql("GRANT USAGE ON SCHEMA sandglass TO reader");
    pg_sql("GRANT ALL ON ALL TABLES IN SCHEMA sandglass TO reader");
    snprintf(add.tenant, sizeof(add.tenant), "%s", t->tenant);
    struct ctx_row row = rig_ready(t, "talk", "main");
    EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        /* The owner too: without a tenant, and with another, there is nothing. */
        EXPECT_STR(as("sandglass", t->tenant, counts[i]), "1");
        EXPECT_STR(as("sandglass", "", counts[i]), "0");
        EXPECT_STR(as("sandglass", t->node, counts[i]), "0");
        EXPECT_STR(as("reader", t->tenant, counts[i]), "1");
        EXPECT_STR(as("reader", t->node, counts[i]), "0");
        /* All rows are for the server's own role. */
        EXPECT(strcmp(as("sandglass", "*", counts[i]), "0") != 0);
        EXPECT_STR(as("reader", "*", counts[i]), "0");
    }
    EXPECT_STR(as("reader", t->node,
                  "UPDATE sandglass.context SET sandbox_id = 'mine' RETURNING id; SELECT 'none'"),
               "none");
    EXPECT_STR(as("reader", t->node,
                  "INSERT INTO sandglass.path VALUES ('other', 'c', 'p', NULL, "
                  "NULL, now()) RETURNING 'written'"),
               "");
    EXPECT_STR(as("reader", t->tenant, "SELECT id FROM sandglass.active_contexts"), row.id);
    EXPECT_STR(as("reader", "*",
                  "INSERT INTO sandglass.node VALUES ('x', '', now()) "
                  "RETURNING 'written'"),
               "");
    EXPECT_STR(rig_get(t, row.id).sandbox_id, row.sandbox_id);
}

TEST(row_level_security)
{
    rig_run(postgres_open, postgres_close, rows_of_others);
}

/* Every table has it, those of later versions too. */
static void tables_without(struct ctx_rig *t)
{
    (void)t;
    EXPECT_STR(pg_sql("SELECT count(*) > 0 AND bool_and(relrowsecurity AND relforcerowsecurity) "
                      "FROM pg_class WHERE relnamespace = 'sandglass'::regnamespace "
                      "AND relkind = 'r'"),
               "t");
}

TEST(row_level_security_everywhere)
{
    rig_run(postgres_open, postgres_close, tables_without);
}

/* ---- an older database ----------------------------------------------------------------------- */

static void usage_of_before(struct ctx_rig *t)
{
#define MIGRATIONS SG_SOURCE_DIR "/src/front/store/migrations/"
    char sql[512], line[64];

    /* Its database worker would bring the schema forward before the row is there: it has to have
     * ended. */
    t->s->ops->close(t->s);
    uv_run(t->loop, UV_RUN_NOWAIT);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    EXPECT(PG_SCRIPT(line, sizeof(line), "psql", pg_server()->dir, "-qc",
                     "DROP SCHEMA sandglass CASCADE; SET ROLE sandglass", "-f",
                     MIGRATIONS "0001.sql", "-f", MIGRATIONS "0002.sql", "-c",
                     "RESET ROLE; INSERT INTO sandglass.schema_version VALUES (1, now()), (2, "
                     "now())") == 0);
    snprintf(sql, sizeof(sql),
             "INSERT INTO sandglass.usage_day VALUES ('%s', '2026-01-02', 1, 2, 3, 4, 5, 6)",
             t->tenant);
    pg_sql(sql);
    t->s = postgres_open(t->loop);
    struct ctx_usage_query q = {
        .tenant = t->tenant, .from = "2026-01-01", .to = "2026-01-31", .by = USAGE_BY_CONVERSATION};
    struct ctx_answer a = CALL(t, usage_get, &q);
    EXPECT(a.n == 1 && a.used[0].conversation[0] == '\0' && a.used[0].usage.sandboxes == 6);
    EXPECT(a.n == 1 && a.used[0].usage.egress_up == 0);
    a = rig_days(t, t->tenant, "2026-01-01", "2026-01-31");
    EXPECT(a.n == 1 && a.used[0].usage.cpu_us == 1 && a.used[0].usage.egress_down == 0);
}

TEST(usage_of_an_older_database_is_kept)
{
    rig_run(postgres_open, postgres_close, usage_of_before);
}
