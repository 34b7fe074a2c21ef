/* A database that is down, slow, read-only, newer, locked or not ours: every call is answered,
 * soon, with -EAGAIN, and things go on when it is well again. Nobody is told the password. */
#include "pg_rig.h"

#include <signal.h>
#include <sys/prctl.h>

TAP_MAIN

#define SOON_MS 6000 /* database worker.h says 5 s; the machine may be busy */

struct place {
    struct ctx_rig rig; /* CALL works on it */
    uv_loop_t loop;
};

static struct place *place_open(const char *uri)
{
    struct place *p = xcalloc(1, sizeof(*p));

    EXPECT(uv_loop_init(&p->loop) == 0);
    p->rig.loop = &p->loop;
    p->rig.s = pg_store(&p->loop, uri);
    id_random(p->rig.tenant);
    id_random(p->rig.node);
    return p;
}

static void place_close(struct place *p)
{
    pg_store_close(p->rig.s, &p->loop);
    EXPECT(uv_loop_close(&p->loop) == 0);
    while (p->rig.n_kept > 0)
        free(p->rig.kept[--p->rig.n_kept]);
    free(p);
}

static uint64_t ms_since(uint64_t start_ns)
{
    return (clock_ns() - start_ns) / 1000000;
}

/* Calls until it works, and checks how it does not until then: soon, and with `why`. */
static bool works_again(struct place *p, const char *why)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;

    while (clock_ns() < end) {
        uint64_t start = clock_ns();
        struct ctx_answer a = CALL(&p->rig, seen, p->rig.node, RIG_URL);

        EXPECT(ms_since(start) < SOON_MS);
        if (a.r == 0)
            return true;
        EXPECT(a.r == -EAGAIN && a.e.kind == SG_ERR_LIMIT);
        if (why && !strstr(a.e.message, why)) {
            printf("# '%s' has no '%s'\n", a.e.message, why);
            tap_failures++;
            return false;
        }
        rig_pause(&p->rig, 20);
    }
    return false;
}

/* Until calls fail like this. */
static bool fails_with(struct place *p, const char *why)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;

    while (clock_ns() < end) {
        struct ctx_answer a = CALL(&p->rig, seen, p->rig.node, RIG_URL);

        if (a.r == -EAGAIN && strstr(a.e.message, why))
            return true;
        rig_pause(&p->rig, 20);
    }
    return false;
}

/* ---- down ------------------------------------------------------------------------------------ */

struct flood {
    int asked, came, good, again, bad;
};

static void on_flood(void *arg, const struct ctx_reply *reply)
{
    struct flood *f = arg;

    f->came++;
    f->good += reply->r == 0;
    f->again += reply->r == -EAGAIN;
    f->bad += reply->r != 0 && reply->r != -EAGAIN;
}

static void ask(struct place *p, struct flood *f, int n)
{
    for (int i = 0; i < n; i++) {
        char id[ID_LEN + 1], path[16];
        struct ctx_claim q = rig_ask(&p->rig, "talk", path, id);

        snprintf(path, sizeof(path), "path %d", f->asked++ % 20);
        p->rig.s->ops->claim(p->rig.s, &q, on_flood, f);
    }
}

TEST(down_and_up_again)
{
    const char *dir = pg_server()->dir;
    struct place *p = place_open(pg_server()->uri);
    struct flood f = {0};

    EXPECT(works_again(p, NULL));
    struct ctx_row before = rig_ready(&p->rig, "talk", "before");
    ask(p, &f, 40);
    EXPECT(PG_SCRIPT(NULL, 0, "down", dir) == 0);
    ask(p, &f, 40);
    rig_run_until(&p->loop, &f.came, f.asked);
    EXPECT(f.bad == 0 && f.again > 0);

    /* Down: at once, without a wait. */
    EXPECT(fails_with(p, "cannot be reached"));
    uint64_t start = clock_ns();
    for (int i = 0; i < 20; i++)
        EXPECT(CALL(&p->rig, get, p->rig.tenant, before.id).r == -EAGAIN);
    EXPECT(ms_since(start) < 2000);

    EXPECT(PG_SCRIPT(NULL, 0, "up", dir) == 0);
    EXPECT(works_again(p, NULL));
    struct ctx_row after = rig_get(&p->rig, before.id);
    EXPECT(after.status == CTX_READY && strcmp(after.sandbox_id, before.sandbox_id) == 0);
    /* What was answered with an error while it broke is there once, or not at all. */
    EXPECT(strcmp(pg_sql("SELECT coalesce(max(n), 0) <= 1 FROM (SELECT count(*) AS n FROM "
                         "sandglass.context WHERE sandbox_status IN ('creating', 'ready') GROUP BY "
                         "tenant_id, conversation_id, path_id) x"),
                  "t") == 0);
    place_close(p);
}

TEST(not_there_at_the_start)
{
    const char *dir = pg_server()->dir;

    EXPECT(PG_SCRIPT(NULL, 0, "down", dir) == 0);
    struct place *p = place_open(pg_server()->uri);
    struct ctx_answer a = CALL(&p->rig, recover, p->rig.node, NULL, 0);
    EXPECT(a.r == -EAGAIN && strstr(a.e.message, "cannot be reached"));
    EXPECT(PG_SCRIPT(NULL, 0, "up", dir) == 0);
    EXPECT(works_again(p, NULL));
    place_close(p);
}

/* Connections that are cut one by one, as proxies and administrators do. */
TEST(cut_connections)
{
    struct place *p = place_open(pg_server()->uri);

    EXPECT(works_again(p, NULL));
    struct ctx_row row = rig_ready(&p->rig, "talk", "main");
    for (int i = 0; i < 5; i++) {
        pg_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
               " WHERE application_name = 'sandglass'");
        EXPECT(works_again(p, NULL));
        EXPECT(rig_get(&p->rig, row.id).status == CTX_READY);
    }
    place_close(p);
}

/* ---- slow ------------------------------------------------------------------------------------ */

/* A session that runs this until it is ended. */
static pid_t session(const char *sql)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(2); /* it is ended in the middle, and would say so */
        execl(SG_SOURCE_DIR "/tests/postgres", "postgres", "psql", pg_server()->dir, "-c", sql,
              NULL);
        _exit(127);
    }
    return pid;
}

static void wait_locked(void)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;

    while (strcmp(pg_sql("SELECT count(*) > 0 FROM pg_locks WHERE granted AND mode = "
                         "'AccessExclusiveLock' AND relation = 'sandglass.context'::regclass"),
                  "t") != 0) {
        if (clock_ns() > end)
            rig_bail("the table is not locked");
        usleep(10000);
    }
}

TEST(a_table_that_is_locked)
{
    struct place *p = place_open(pg_server()->uri);
    struct flood f = {0};

    EXPECT(works_again(p, NULL));
    pid_t pid = session("BEGIN; LOCK TABLE sandglass.context; SELECT pg_sleep(60)");
    wait_locked();
    /* One that waits does not hold up what needs the table not. */
    ask(p, &f, 1);
    EXPECT(works_again(p, NULL) && f.came == 0);
    uint64_t start = clock_ns();
    ask(p, &f, 30);
    rig_run_until(&p->loop, &f.came, f.asked);
    EXPECT(ms_since(start) < SOON_MS && f.again == f.asked);
    pg_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE "
           "'BEGIN; LOCK%'");
    waitpid(pid, NULL, 0);
    EXPECT(works_again(p, NULL));
    /* What was given up was given up by the database too. */
    EXPECT(rig_list(&p->rig, CTX_ALL).n == 0);
    place_close(p);
}

/* Nothing answers, but no connection breaks: its processes stand still. */
TEST(a_database_that_stands_still)
{
    struct place *p = place_open(pg_server()->uri);
    struct flood f = {0};
    int pids[16], n = 0;

    EXPECT(works_again(p, NULL));
    char list[512], *at = list;
    snprintf(list, sizeof(list), "%s",
             pg_sql("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE "
                    "application_name = 'sandglass'"));
    while (*at && n < 16)
        pids[n++] = (int)strtol(at, &at, 10);
    EXPECT(n > 0);
    for (int i = 0; i < n; i++)
        EXPECT(kill(pids[i], SIGSTOP) == 0);
    uint64_t start = clock_ns();
    ask(p, &f, 12);
    rig_run_until(&p->loop, &f.came, f.asked);
    EXPECT(ms_since(start) < SOON_MS && f.again > 0 && f.bad == 0);
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGCONT);
    EXPECT(works_again(p, NULL));
    place_close(p);
}

/* ---- not as it should be --------------------------------------------------------------------- */

TEST(a_newer_schema)
{
    struct place *p = place_open(pg_server()->uri);

    EXPECT(works_again(p, NULL));
    place_close(p);
    pg_sql("INSERT INTO sandglass.schema_version VALUES (999, now())");
    p = place_open(pg_server()->uri);
    struct ctx_answer a = rig_claim(&p->rig, "talk", "main");
    EXPECT(a.r == -EAGAIN && strstr(a.e.message, "999") && strstr(a.e.message, "newer"));
    EXPECT(strstr(pg_logged, "update this server"));
    EXPECT(strcmp(pg_sql("SELECT count(*) FROM sandglass.context WHERE conversation_id = 'talk' "
                         "AND path_id = 'newer'"),
                  "0") == 0);
    pg_sql("DELETE FROM sandglass.schema_version WHERE version = 999");
    EXPECT(works_again(p, "newer"));
    place_close(p);
}

TEST(a_read_only_database)
{
    struct place *p = place_open(pg_server()->uri);

    EXPECT(works_again(p, NULL));
    pg_sql("ALTER DATABASE sandglass SET default_transaction_read_only = on");
    pg_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
           " WHERE application_name = 'sandglass'");
    EXPECT(fails_with(p, "read-only"));
    EXPECT(strstr(pg_logged, "bad store: the database is read-only"));
    pg_sql("ALTER DATABASE sandglass RESET default_transaction_read_only");
    EXPECT(works_again(p, "read-only"));
    place_close(p);
}

/* Somebody dropped it, or a backup was put back. */
TEST(a_schema_that_is_gone)
{
    struct place *p = place_open(pg_server()->uri);

    EXPECT(works_again(p, NULL));
    pg_sql("DROP SCHEMA sandglass CASCADE");
    EXPECT(works_again(p, NULL));
    EXPECT(rig_claim(&p->rig, "talk", "main").claimed == CLAIM_NEW);
    place_close(p);
}

TEST(no_right_to_make_the_schema)
{
    const struct pg_server *server = pg_server();
    char uri[PG_URI_MAX];

    pg_sql("CREATE ROLE guest LOGIN");
    pg_sql("CREATE DATABASE other OWNER postgres");
    const char *port = strstr(server->socket, "port=");
    snprintf(uri, sizeof(uri), "postgresql://guest@/other?host=%.63s&%.16s", server->dir, port);
    struct place *p = place_open(uri);
    struct ctx_answer a = rig_claim(&p->rig, "talk", "main");
    EXPECT(a.r == -EAGAIN && strstr(a.e.message, "schema cannot be made"));
    EXPECT(strstr(pg_logged, "permission denied for database other"));
    pg_sql("GRANT CREATE ON DATABASE other TO guest");
    EXPECT(works_again(p, "schema cannot be made"));
    place_close(p);
}

TEST(several_that_start_at_once)
{
    struct place *places[4];

    pg_logged[0] = '\0';
    pg_sql("DROP SCHEMA IF EXISTS sandglass CASCADE");
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        places[i] = place_open(pg_server()->uri);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        EXPECT(works_again(places[i], NULL));
    EXPECT(!strstr(pg_logged, "cannot be made"));
    EXPECT_STR(pg_sql("SELECT count(*) = max(version) FROM sandglass.schema_version"), "t");
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        place_close(places[i]);
}

/* ---- secrets --------------------------------------------------------------------------------- */

static void check_secret(const char *uri, const char *secret, const char *expected)
{
    pg_logged[0] = '\0';
    pg_gone = 0;
    struct place *p = place_open(uri);
    struct ctx_answer a = CALL(&p->rig, seen, p->rig.node, RIG_URL);

    EXPECT(a.r == -EAGAIN);
    EXPECT(!strstr(a.e.message, secret) && !strstr(a.e.message, "127.0.0.1"));
    /* The call is given up after 2 s, and on a busy machine the first attempt takes longer. */
    for (int i = 0; i < 2000 && !strstr(pg_logged, expected); i++) {
        uv_run(&p->loop, UV_RUN_NOWAIT);
        usleep(10000);
    }
    if (!strstr(pg_logged, expected)) {
        printf("# no '%s' in: %s\n", expected, pg_logged);
        tap_failures++;
    }
    EXPECT(!strstr(pg_logged, secret));
    place_close(p);
}

TEST(the_password_is_never_told)
{
    const char *at = strrchr(pg_server()->uri, '@');
    char uri[PG_URI_MAX];

    snprintf(uri, sizeof(uri), "postgresql://sandglass:hunter2%s", at);
    check_secret(uri, "hunter2", "password authentication failed");
    /* Also as a part of something else that libpq quotes. */
    snprintf(uri, sizeof(uri), "postgresql://hunter2:hunter2%s", at);
    check_secret(uri, "hunter2", "cannot be reached");
    /* Nothing that can be read: a password that was not escaped, an address that is none. */
    check_secret("postgresql://sandglass:hunt@er2@127.0.0.1:1/x", "er2", "special characters");
    check_secret("postgresql://sandglass:hunter2@127.0.0.1:port/x", "hunter2", "cannot be reached");
    check_secret("postgresql://sandglass:hunter2@[::1/x", "hunter2", "special characters");
    check_secret("host=127.0.0.1 password='hunter2", "hunter2", "special characters");
    check_secret("hunter2", "hunter2", "special characters");
}
