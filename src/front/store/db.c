#include "front/store/db.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "front/store/copy.h"

#define FILE_NAME      "/server.db"
#define APPLICATION_ID 0x73676c31 /* "sgl1" */
#define WAIT_SOON_MS   100

/* Never changed once released: a new version of the schema adds an entry. */
static const char *const migrations[] = {
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
    " BEGIN INSERT OR IGNORE INTO loose_layer (id) VALUES (old.id); END;",

    "ALTER TABLE tenant ADD COLUMN max_contexts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN max_conversation_contexts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN execution_timeout_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN execution_timeout_max_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN code_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE context ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " tenant TEXT NOT NULL,"
    " conversation TEXT NOT NULL,"
    " path TEXT NOT NULL,"
    " template_id TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " sandbox TEXT NOT NULL DEFAULT '',"
    " status TEXT NOT NULL CHECK (status IN ('creating', 'ready', 'terminated', 'error')),"
    " ttl_ms INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " making_ms INTEGER NOT NULL," /* when the sandbox's last start began */
    " used_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL,"
    " terminated_ms INTEGER NOT NULL DEFAULT 0,"
    " error TEXT NOT NULL DEFAULT '',"
    " cpu_us INTEGER NOT NULL DEFAULT 0,"
    " memory_mib_ms INTEGER NOT NULL DEFAULT 0,"
    " bytes_in INTEGER NOT NULL DEFAULT 0,"
    " bytes_out INTEGER NOT NULL DEFAULT 0,"
    " executions INTEGER NOT NULL DEFAULT 0,"
    " sandboxes INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE UNIQUE INDEX context_of_path ON context (tenant, conversation, path)"
    " WHERE status IN ('creating', 'ready');"
    "CREATE INDEX context_counted ON context (tenant, conversation, status, sandbox)"
    " WHERE (status = 'creating' OR (status = 'ready' AND sandbox <> ''));"
    "CREATE INDEX context_of_tenant ON context (tenant, created_ms, id);"
    "CREATE INDEX context_active ON context (tenant, created_ms, id)"
    " WHERE status IN ('creating', 'ready');"
    "CREATE INDEX context_of_conversation ON context (tenant, conversation, created_ms, id);"
    "CREATE INDEX context_of_sandbox ON context (tenant, sandbox, created_ms, id)"
    " WHERE sandbox <> '';"
    "CREATE INDEX context_expiry ON context (expires_ms) WHERE status = 'ready';"
    "CREATE INDEX context_making ON context (making_ms) WHERE status = 'creating';"
    "CREATE TABLE path ("
    " seq INTEGER PRIMARY KEY,"
    " tenant TEXT NOT NULL,"
    " conversation TEXT NOT NULL,"
    " path TEXT NOT NULL,"
    " parent TEXT NOT NULL DEFAULT '',"
    " merged_into TEXT NOT NULL DEFAULT '',"
    " created_ms INTEGER NOT NULL,"
    " UNIQUE (tenant, conversation, path)) STRICT;"
    "CREATE TABLE usage_day ("
    " tenant TEXT NOT NULL,"
    " day TEXT NOT NULL,"
    " cpu_us INTEGER NOT NULL,"
    " memory_mib_ms INTEGER NOT NULL,"
    " bytes_in INTEGER NOT NULL,"
    " bytes_out INTEGER NOT NULL,"
    " executions INTEGER NOT NULL,"
    " sandboxes INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, day)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE node ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " url TEXT NOT NULL,"
    " seen_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;",

    "CREATE TABLE vault ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " version INTEGER NOT NULL,"
    " metadata TEXT NOT NULL,"
    " sealed TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL,"
    " UNIQUE (tenant, name)) STRICT;"
    "CREATE INDEX vault_of_tenant ON vault (tenant, seq);",

    "ALTER TABLE tenant ADD COLUMN sanitise INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tenant ADD COLUMN sanitise_always INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE key ADD COLUMN sanitise INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE context ADD COLUMN egress_up INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE context ADD COLUMN egress_down INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE usage_day ADD COLUMN egress_up INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE usage_day ADD COLUMN egress_down INTEGER NOT NULL DEFAULT 0;"
    /* The same sums for each conversation; '' has the usage without a conversation, and all usage
     * from before this version. */
    "CREATE TABLE usage_talk ("
    " tenant TEXT NOT NULL,"
    " conversation TEXT NOT NULL,"
    " day TEXT NOT NULL,"
    " cpu_us INTEGER NOT NULL,"
    " memory_mib_ms INTEGER NOT NULL,"
    " bytes_in INTEGER NOT NULL,"
    " bytes_out INTEGER NOT NULL,"
    " executions INTEGER NOT NULL,"
    " sandboxes INTEGER NOT NULL,"
    " egress_up INTEGER NOT NULL,"
    " egress_down INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, conversation, day)) STRICT, WITHOUT ROWID;"
    "INSERT INTO usage_talk SELECT tenant, '', day, cpu_us, memory_mib_ms, bytes_in, bytes_out,"
    " executions, sandboxes, 0, 0 FROM usage_day;"
    "CREATE TABLE event ("
    " id INTEGER PRIMARY KEY,"
    " tenant TEXT NOT NULL," /* '*': of every tenant */
    " ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " json TEXT NOT NULL) STRICT;"
    "CREATE INDEX event_of_tenant ON event (tenant, id);"
    "CREATE TABLE event_mark ("
    " name TEXT NOT NULL PRIMARY KEY,"
    " value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE webhook_open (" /* posting began, and was neither accepted nor given up */
    " event INTEGER PRIMARY KEY,"
    " tries INTEGER NOT NULL) STRICT;",

    /* The sealed request that a context's sandbox was made from. It has a table of its own, since a
     * context's row is rewritten with each use. It is deleted when the context ends. */
    "CREATE TABLE context_kept ("
    " context TEXT NOT NULL PRIMARY KEY,"
    " text TEXT NOT NULL) STRICT;"
    "CREATE TRIGGER context_over AFTER UPDATE OF status ON context"
    " WHEN new.status IN ('terminated', 'error')"
    " BEGIN DELETE FROM context_kept WHERE context = new.id; END;"
    /* For retention, which deletes old rows. */
    "CREATE INDEX context_final ON context (terminated_ms)"
    " WHERE status IN ('terminated', 'error');"
    "CREATE INDEX context_of_node ON context (node) WHERE status = 'ready' AND sandbox <> '';"
    "CREATE INDEX path_of_conversation ON path (tenant, conversation, created_ms);"
    "CREATE INDEX usage_day_by_day ON usage_day (day);"
    "CREATE INDEX usage_talk_by_day ON usage_talk (day);"
    /* Sandboxes whose start was told but not yet their end. The transaction that writes the event
     * writes this too: after a stop or a crash, the next server finds here the sandboxes that
     * ended. */
    "CREATE TABLE living ("
    " sandbox TEXT NOT NULL PRIMARY KEY,"
    " tenant TEXT NOT NULL,"
    " context TEXT NOT NULL,"
    " conversation TEXT NOT NULL,"
    " path TEXT NOT NULL) STRICT, WITHOUT ROWID;",

    ("ALTER TABLE tenant ADD COLUMN max_paused INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE tenant ADD COLUMN max_paused_memory INTEGER NOT NULL DEFAULT 0;"),

    "ALTER TABLE snapshot ADD COLUMN defaults TEXT NOT NULL DEFAULT '';"
    /* Templates that tenants build. A layer is what a step of a build left, kept under its id like a
     * snapshot; the cache finds it by the step's key. */
    "CREATE TABLE template ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL,"
    " UNIQUE (tenant, name)) STRICT;"
    "CREATE TABLE build_layer ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " bytes INTEGER NOT NULL) STRICT;"
    "CREATE INDEX build_layer_of_tenant ON build_layer (tenant);"
    "CREATE TRIGGER build_layer_named AFTER INSERT ON build_layer"
    " BEGIN DELETE FROM loose_layer WHERE id = new.id; END;"
    "CREATE TRIGGER build_layer_loose AFTER DELETE ON build_layer"
    " BEGIN INSERT OR IGNORE INTO loose_layer (id) VALUES (old.id); END;"
    "CREATE TABLE build_cache ("
    " tenant TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " layer TEXT NOT NULL REFERENCES build_layer (id),"
    " used INTEGER NOT NULL," /* grows with each use */
    " PRIMARY KEY (tenant, key)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX build_cache_by_layer ON build_cache (layer);"
    "CREATE TABLE build ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " template TEXT NOT NULL REFERENCES template (id),"
    " state INTEGER NOT NULL," /* enum store_build_state */
    " tags TEXT NOT NULL,"     /* what to tag it with when it is ready, with spaces between */
    " cpus INTEGER NOT NULL,"
    " memory_mib INTEGER NOT NULL,"
    " base TEXT NOT NULL DEFAULT '',"
    " layer TEXT REFERENCES build_layer (id)," /* NULL: the plain base */
    " defaults TEXT NOT NULL DEFAULT '',"      /* JSON, see front/core/defaults.h */
    " reason TEXT NOT NULL DEFAULT '',"
    " reason_step TEXT NOT NULL DEFAULT '',"
    " created_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE INDEX build_of_template ON build (template, seq);"
    "CREATE INDEX build_of_layer ON build (layer);"
    "CREATE TABLE build_log ("
    " build TEXT NOT NULL REFERENCES build (id) ON DELETE CASCADE,"
    " n INTEGER NOT NULL,"
    " ms INTEGER NOT NULL,"
    " level INTEGER NOT NULL,"
    " step TEXT NOT NULL,"
    " message TEXT NOT NULL,"
    " PRIMARY KEY (build, n)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE template_tag ("
    " template TEXT NOT NULL REFERENCES template (id),"
    " tag TEXT NOT NULL,"
    " build TEXT NOT NULL REFERENCES build (id),"
    " created_ms INTEGER NOT NULL,"
    " PRIMARY KEY (template, tag)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX template_tag_of_build ON template_tag (build);"
    /* Archives of files for builds. hash: what the client calls it; digest: of its bytes. */
    "CREATE TABLE upload ("
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " hash TEXT NOT NULL,"
    " file TEXT NOT NULL UNIQUE,"
    " digest TEXT NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " used INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, hash)) STRICT, WITHOUT ROWID;",

    "CREATE TABLE volume ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " loose INTEGER NOT NULL," /* it is being made or removed */
    " UNIQUE (tenant, name)) STRICT;",

    /* What layers that were made of an image are made of. */
    "CREATE TABLE build_image ("
    " layer TEXT NOT NULL PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " config TEXT NOT NULL," /* JSON, as the puller tells it */
    " fetched_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER build_image_gone AFTER DELETE ON build_layer"
    " BEGIN DELETE FROM build_image WHERE layer = old.id; END;"
    /* Layers that `sandglass world` took the names of, for a running front to remove. */
    "CREATE TABLE dropped_layer (id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;",

    /* Tokens that are no keys (enum store_token); an operator's belongs to no tenant. named_ms: when
     * it was renamed. */
    "CREATE TABLE token ("
    " id TEXT NOT NULL PRIMARY KEY,"
    " tenant TEXT REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " hash BLOB NOT NULL UNIQUE,"
    " hint TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " used_ms INTEGER NOT NULL DEFAULT 0,"
    " revoked_ms INTEGER NOT NULL DEFAULT 0,"
    " sanitise INTEGER NOT NULL DEFAULT 0,"
    " kind INTEGER NOT NULL DEFAULT 0,"
    " named_ms INTEGER NOT NULL DEFAULT 0) STRICT;"
    "INSERT INTO token SELECT id, tenant, name, hash, hint, created_ms, used_ms, revoked_ms,"
    " sanitise, 0, 0 FROM key;"
    "DROP TABLE key;"
    "ALTER TABLE token RENAME TO key;"
    "CREATE INDEX key_of_tenant ON key (tenant, kind);"
    /* How many sandboxes a tenant had in a minute (front/core/team_metrics.h). */
    "CREATE TABLE team_metric ("
    " tenant TEXT NOT NULL,"
    " minute INTEGER NOT NULL," /* its beginning, in seconds since 1970 */
    " peak INTEGER NOT NULL,"
    " started INTEGER NOT NULL,"
    " burst INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, minute)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX team_metric_by_minute ON team_metric (minute);",

    /* Events that E2B has too, in its form. */
    "ALTER TABLE event ADD COLUMN sandbox TEXT;"
    "ALTER TABLE event ADD COLUMN e2b TEXT;"
    "CREATE INDEX event_e2b ON event (tenant, id) WHERE e2b IS NOT NULL;"
    "CREATE INDEX event_e2b_of_sandbox ON event (sandbox, id) WHERE e2b IS NOT NULL;"
    /* Tenants' webhooks. */
    "CREATE TABLE webhook ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " name TEXT NOT NULL,"
    " url TEXT NOT NULL,"
    " events TEXT NOT NULL,"
    " enabled INTEGER NOT NULL,"
    " secret TEXT NOT NULL," /* signs what is posted */
    " created_ms INTEGER NOT NULL) STRICT;"
    "CREATE INDEX webhook_of_tenant ON webhook (tenant);"
    "ALTER TABLE webhook_open RENAME TO webhook_open_before;"
    "CREATE TABLE webhook_open (" /* posting began, and was neither accepted nor given up */
    " hook TEXT NOT NULL,"        /* '': the operator's */
    " event INTEGER NOT NULL,"
    " tries INTEGER NOT NULL,"
    " PRIMARY KEY (hook, event)) STRICT, WITHOUT ROWID;"
    "INSERT INTO webhook_open SELECT '', event, tries FROM webhook_open_before;"
    "DROP TABLE webhook_open_before;",

    "ALTER TABLE template ADD COLUMN public INTEGER NOT NULL DEFAULT 0;"
    /* What tenants have of others' public templates. source: the template's layer; layer: the
     * tenant's own, with the same files. */
    "CREATE TABLE template_copy ("
    " tenant TEXT NOT NULL REFERENCES tenant (id),"
    " source TEXT NOT NULL,"
    " layer TEXT NOT NULL UNIQUE,"
    " used_ms INTEGER NOT NULL,"
    " PRIMARY KEY (tenant, source)) STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER template_copy_gone AFTER DELETE ON build_layer"
    " BEGIN DELETE FROM template_copy WHERE layer = old.id; END;",
};
#define SCHEMA_VERSION ((int)ARRAY_SIZE(migrations))

#define DB_STATEMENT(name, text) text,
static const char *const texts[] = {STORE_STATEMENTS(DB_STATEMENT)};
_Static_assert(ARRAY_SIZE(texts) == DB_MAX_, "a text for each statement");

int db_error(const struct store *s, const char *doing, struct sg_error *e)
{
    const char *why = s->db ? sqlite3_errmsg(s->db) : "out of memory";
    int code = s->db ? sqlite3_extended_errcode(s->db) : SQLITE_NOMEM;

    switch (code & 0xff) {
    case SQLITE_NOTADB:
        return err_set(e, SG_ERR_INVALID, -EUCLEAN,
                       "'%s' is not a database: move it away and start again, or restore a copy",
                       s->path);
    case SQLITE_CORRUPT:
        return err_set(e, SG_ERR_INVALID, -EUCLEAN,
                       "'%s' is damaged (%s): move it away and start again, or restore a copy",
                       s->path, why);
    case SQLITE_FULL:
        return err_set(e, SG_ERR_LIMIT, -ENOSPC, "%s: no space for '%s'", doing, s->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, SG_ERR_LIMIT, -EBUSY, "%s: '%s' is in use by another process", doing,
                       s->path);
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return err_set(e, SG_ERR_DENIED, -EACCES, "%s: cannot open or write '%s' (%s)", doing,
                       s->path, why);
    default:
        return err_set(e, SG_ERR_INTERNAL, -EIO, "%s: '%s': %s", doing, s->path, why);
    }
}

static void bind_value(sqlite3_stmt *st, int i, const struct db_value *v)
{
    if (v->type == DB_NUMBER)
        sqlite3_bind_int64(st, i, v->number);
    else if (v->type == DB_BYTES && v->bytes)
        sqlite3_bind_blob(st, i, v->bytes, (int)v->number, SQLITE_STATIC);
    else if (v->type == DB_TEXT && v->bytes)
        sqlite3_bind_text(st, i, v->bytes, -1, SQLITE_STATIC);
}

struct db_rows db_rows(struct store *s, enum db_statement which, const struct db_value *with,
                       struct sg_error *e)
{
    sqlite3_stmt **st = &s->statements[which];
    struct db_rows rows = {.store = s, .e = e};

    if (!*st && sqlite3_prepare_v3(s->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL) !=
                    SQLITE_OK) {
        rows.r = db_error(s, "prepare a query", e);
        return rows;
    }
    sqlite3_reset(*st);
    sqlite3_clear_bindings(*st);
    for (int i = 0; with && with[i].type != DB_END; i++)
        bind_value(*st, i + 1, &with[i]);
    rows.st = *st;
    return rows;
}

bool db_next(struct db_rows *rows)
{
    if (rows->r < 0)
        return false;
    int code = sqlite3_step(rows->st);
    rows->r = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        rows->r = db_error(rows->store, "use the database", rows->e);
    if (code != SQLITE_ROW)
        sqlite3_reset(rows->st);
    return rows->r > 0;
}

int db_done(struct db_rows *rows)
{
    sqlite3_reset(rows->st);
    return rows->r < 0 ? rows->r : 0;
}

int db_ask(struct store *s, enum db_statement which, const struct db_value *with, int64_t *ret,
           struct sg_error *e)
{
    struct db_rows row = db_rows(s, which, with, e);

    if (!db_next(&row))
        return row.r;
    *ret = sqlite3_column_int64(row.st, 0);
    db_done(&row);
    return 1;
}

int db_count(struct store *s, enum db_statement which, const struct db_value *with, uint32_t *ret,
             struct sg_error *e)
{
    int64_t n = 0;
    int r = db_ask(s, which, with, &n, e);

    if (r < 0)
        return r;
    *ret = (uint32_t)n;
    return 0;
}

int db_run(struct store *s, enum db_statement which, const struct db_value *with,
           struct sg_error *e)
{
    struct db_rows none = db_rows(s, which, with, e);

    db_next(&none);
    return db_done(&none);
}

int db_changed(const struct store *s)
{
    return sqlite3_changes(s->db);
}

static int execute(struct store *s, const char *sql, const char *doing, struct sg_error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(s, doing, e);
}

void db_set_durable(struct store *s, bool on)
{
    s->durable = on;
    /* With NORMAL a commit does not wait for the disk. */
    sqlite3_exec(s->db,
                 on && !s->sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", NULL,
                 NULL, NULL);
}

void db_set_wait(struct store *s, int ms)
{
    sqlite3_busy_timeout(s->db, ms);
}

int db_begin(struct store *s, struct sg_error *e)
{
    return db_run(s, DB_BEGIN, NULL, e);
}

int db_begin_soon(struct store *s, bool durable, struct sg_error *e)
{
    db_set_wait(s, WAIT_SOON_MS);
    db_set_durable(s, durable);
    return db_begin(s, e);
}

int db_end(struct store *s, int r, struct sg_error *e)
{
    /* Without an open transaction the change never began, and there is nothing to roll back. */
    bool begun = !sqlite3_get_autocommit(s->db);

    if (begun && r >= 0)
        r = db_run(s, DB_COMMIT, NULL, e);
    if (begun && r < 0)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    db_set_durable(s, true);
    db_set_wait(s, DB_WAIT_MS);
    return r;
}

void db_column(sqlite3_stmt *st, int i, char *ret, size_t cap)
{
    const unsigned char *text = sqlite3_column_text(st, i);

    snprintf(ret, cap, "%s", text ? (const char *)text : "");
}

static int read_int(struct store *s, const char *sql, int *ret, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
        return db_error(s, "open the database", e);
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret = sqlite3_column_int(st, 0);
    else
        r = db_error(s, "open the database", e);
    sqlite3_finalize(st);
    return r;
}

/* Checks that the file is ours, and reads its version. An empty file becomes ours. */
static int read_version(struct store *s, int *ret, struct sg_error *e)
{
    int application, version, objects;
    int r = read_int(s, "PRAGMA application_id", &application, e);

    if (r == 0)
        r = read_int(s, "PRAGMA user_version", &version, e);
    if (r == 0)
        r = read_int(s, "SELECT count(*) FROM sqlite_schema", &objects, e);
    if (r < 0)
        return r;
    bool fresh = application == 0 && version == 0 && objects == 0;

    if (!fresh && application != APPLICATION_ID)
        return err_set(e, SG_ERR_INVALID, -EUCLEAN, "'%s' is the database of another program",
                       s->path);
    if (version < 0 || version > SCHEMA_VERSION)
        return err_set(e, SG_ERR_UNSUPPORTED, -EPROTO,
                       "'%s' was written by a later version of sandglass (its schema is %d, this "
                       "program knows %d)",
                       s->path, version, SCHEMA_VERSION);
    *ret = version;
    return 0;
}

static int migrate(struct store *s, struct sg_error *e)
{
    int version = 0, r = db_begin(s, e);

    if (r == 0)
        r = read_version(s, &version, e);
    for (; r == 0 && version < SCHEMA_VERSION; version++) {
        char mark[96];

        snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 APPLICATION_ID, version + 1);
        r = execute(s, migrations[version], "bring the database to this version", e);
        if (r == 0)
            r = execute(s, mark, "bring the database to this version", e);
    }
    return db_end(s, r, e);
}

/* Makes the file here, not in SQLite, so that nobody else can ever read it. The -wal and -shm files
 * get the same mode. An existing file is not opened here: closing a descriptor of it would drop the
 * locks of this process's other connections. */
static int make_file(const char *path, struct sg_error *e)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno != EEXIST)
        return err_errno(e, "make '%s'", path);
    if (lstat(path, &st) < 0)
        return err_errno(e, "stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_invalid(e, "'%s' is not a regular file", path);
    if ((st.st_mode & 077) && chmod(path, 0600) < 0)
        return err_errno(e, "make '%s' private", path);
    return 0;
}

static int check_whole(struct store *s, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK)
        return db_error(s, "check the database", e);
    if (sqlite3_step(st) != SQLITE_ROW) {
        r = db_error(s, "check the database", e);
    } else {
        char verdict[160];

        db_column(st, 0, verdict, sizeof(verdict));
        if (strcmp(verdict, "ok") != 0)
            r = err_set(e, SG_ERR_INVALID, -EUCLEAN,
                        "'%s' is damaged (%s): move it away and start again, or restore a copy",
                        s->path, verdict);
    }
    sqlite3_finalize(st);
    return r;
}

/* Uses a name as it is. SQLite would make the path absolute, and fail if this user may not search a
 * directory above. The working directory never changes, so a relative name is safe. */
static int same_name(sqlite3_vfs *vfs UNUSED, const char *name, int cap, char *ret)
{
    return snprintf(ret, (size_t)cap, "%s", name) < cap ? SQLITE_OK : SQLITE_CANTOPEN;
}

static const char *own_vfs(void)
{
    static sqlite3_vfs own;

    if (!own.zName) {
        own = *sqlite3_vfs_find(NULL);
        own.zName = "sandglass";
        own.xFullPathname = same_name;
        sqlite3_vfs_register(&own, 0);
    }
    return own.zName;
}

static int open_connection(struct store *s, int flags, const char *vfs, struct sg_error *e)
{
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags,
                        vfs) != SQLITE_OK)
        return db_error(s, "open the database", e);
    sqlite3_extended_result_codes(s->db, 1);
    db_set_wait(s, DB_WAIT_MS);
    /* The file is untrusted input: its schema may not call functions, nor be written to. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return 0;
}

int db_open_again(const struct store *s, sqlite3 **ret, struct sg_error *e)
{
    struct store again = {.path = s->path};
    int objects, r = open_connection(&again, 0, own_vfs(), e);

    /* SQLite finds out with the first query that the file has a log. */
    if (r == 0)
        r = read_int(&again, "SELECT count(*) FROM sqlite_schema", &objects, e);
    if (r < 0)
        sqlite3_close(again.db);
    else
        *ret = again.db;
    return r;
}

static int connect_db(struct store *s, int flags, const char *vfs, struct sg_error *e)
{
    int r = open_connection(s, flags, vfs, e);

    return r < 0 ? r : migrate(s, e);
}

static int open_db(struct store *s, struct sg_error *e)
{
    int r = make_file(s->path, e);

    if (r == 0)
        r = connect_db(s, 0, own_vfs(), e);
    if (r == 0)
        r = check_whole(s, e);
    if (r == 0)
        r = execute(s,
                    "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; "
                    "PRAGMA cell_size_check = ON",
                    "open the database", e);
    if (r == 0)
        db_set_durable(s, true);
    return r;
}

/* Programs that open the file at the same time take turns: the change to WAL tolerates no other
 * connection. */
static int open_in_turn(struct store *s, const char *dir, struct sg_error *e)
{
    AUTO(close_p) int turn = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (turn < 0 || flock(turn, LOCK_EX) < 0)
        return err_errno(e, "open the directory '%s'", dir);
    return open_db(s, e);
}

static struct store *store_at(const char *dir)
{
    struct store *s = xcalloc(1, sizeof(*s));
    size_t len = strlen(dir);

    s->path = xcalloc(1, len + sizeof(FILE_NAME));
    memcpy(s->path, dir, len);
    memcpy(s->path + len, FILE_NAME, sizeof(FILE_NAME));
    return s;
}

/* r: what came of opening. An error closes the store. */
static int opened(struct store *s, int r, struct store **ret)
{
    if (r < 0)
        store_close(s);
    else
        *ret = s;
    return r;
}

int db_open_as_it_is(const char *dir, struct store **ret, int *ret_version, struct sg_error *e)
{
    struct store *s = store_at(dir);
    int version = 0, r = open_connection(s, 0, own_vfs(), e);

    if (r == 0)
        r = read_version(s, &version, e);
    if (r == 0 && version == 0)
        r = err_set(e, SG_ERR_NOT_FOUND, -ENODATA, "the database '%s' is empty", s->path);
    if (r == 0)
        r = check_whole(s, e);
    if (r == 0)
        *ret_version = version;
    return opened(s, r, ret);
}

int store_schema(void)
{
    return SCHEMA_VERSION;
}

int store_open(const char *dir, struct store **ret, struct sg_error *e)
{
    struct store *s = store_at(dir);

    return opened(s, open_in_turn(s, dir, e), ret);
}

int store_dir(const struct store *s, struct sg_error *e)
{
    AUTO(free_p) char *dir = xstrdup(s->path);

    dir[strlen(dir) - strlen(FILE_NAME)] = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_errno(e, "open the directory '%s'", dir) : fd;
}

int db_open_memory(struct store **ret, struct sg_error *e)
{
    struct store *s = NEW(struct store, .path = xstrdup(":memory:"));

    return opened(s, connect_db(s, SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY, NULL, e), ret);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    store_sync_free(s->sync);
    for (size_t i = 0; i < DB_MAX_; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    free(s->keys);
    free(s->path);
    free(s);
}
