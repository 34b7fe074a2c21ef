/* The database under the store: the file, its schema, its statements. For store/ only.
 *
 * The file's application id says that it is ours, and `user_version` which version of the schema it
 * has; migrations bring an older file forward, all in one transaction. A damaged or foreign file,
 * and one of a later version, is refused with a message that says which it is. */
#pragma once

#include <sqlite3.h>

#include "front/store/contexts_sql.h"
#include "front/store/templates_sql.h"
#include "front/store/store.h"

#define LIMIT_COLUMN(type, name) ", t." #name
#define LIMIT_SET(type, name)    #name " = coalesce(?, " #name "), "
#define TENANT_COLUMNS           "t.id, t.name" STORE_LIMITS(LIMIT_COLUMN) ", t.sanitise, t.sanitise_always"

/* Each statement is prepared when it is first used, and kept. */
#define STORE_STATEMENTS(X)                                                                      \
    X(DATA_VERSION, "PRAGMA data_version")                                                       \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                  \
    X(COMMIT, "COMMIT")                                                                          \
    X(TENANT_ADD, "INSERT INTO tenant (id, name, created_ms) VALUES (?1, ?2, ?3) "               \
                  "ON CONFLICT (name) DO NOTHING")                                               \
    X(TENANT_BY_NAME, "SELECT " TENANT_COLUMNS " FROM tenant t WHERE t.name = ?1")               \
    X(TENANT_BY_ID, "SELECT " TENANT_COLUMNS " FROM tenant t WHERE t.id = ?1")                   \
    X(TENANT_LIST, "SELECT " TENANT_COLUMNS " FROM tenant t ORDER BY t.name")                    \
    X(TENANT_SET, "UPDATE tenant SET " STORE_LIMITS(LIMIT_SET) "name = name WHERE name = ?")     \
    X(TENANT_SANITISE, "UPDATE tenant SET sanitise = ?2, sanitise_always = ?3 WHERE name = ?1")  \
    X(TENANT_COUNT, "SELECT count(*) FROM tenant")                                               \
    X(KEY_ADD, "INSERT INTO key (id, tenant, name, hash, hint, created_ms, kind) "               \
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                            \
    X(KEY_BY_HASH, "SELECT k.id, k.used_ms, k.hash, k.sanitise, " TENANT_COLUMNS KEY_FROM        \
                   "WHERE k.hash = ?1 AND k.kind = ?2 AND k.revoked_ms = 0")                     \
    X(KEY_COUNT, "SELECT count(*) FROM key WHERE " KEY_OWN)                                      \
    X(KEY_NAME, "UPDATE key SET name = ?4, named_ms = ?5 WHERE " KEY_OWN " AND id = ?3")         \
    X(KEY_END, "UPDATE key SET revoked_ms = ?4 WHERE " KEY_OWN " AND id = ?3")                   \
    X(KEY_SANITISE, "UPDATE key SET sanitise = ?2 WHERE id = ?1")                                \
    X(KEY_USED, "UPDATE key SET used_ms = ?2 WHERE id = ?1")                                     \
    X(KEY_LIST, KEY_SELECT ", k.used_ms, k.sanitise" KEY_FROM                                    \
                           "WHERE ?1 IS NULL OR k.tenant = ?1 ORDER BY k.created_ms, k.id")      \
    X(KEY_REVOKE, "UPDATE key SET revoked_ms = ?3 WHERE (id = ?1 OR hash = ?2) "                 \
                  "AND revoked_ms = 0")                                                          \
    X(KEY_EXISTS, "SELECT 1 FROM key WHERE id = ?1 OR hash = ?2")                                \
    X(KEY_COPIES,                                                                                \
      KEY_SELECT ", k.named_ms, lower(hex(k.hash))" KEY_FROM "ORDER BY k.created_ms, k.id")      \
    X(KEY_MARK, "SELECT count(*) || ' ' || total(revoked_ms > 0) || ' ' || "                     \
                "coalesce(max(created_ms), 0) || ' ' || coalesce(max(revoked_ms), 0) || ' ' || " \
                "coalesce(max(named_ms), 0) FROM key")                                           \
    X(KEY_TAKE, "INSERT INTO key (id, tenant, name, hash, hint, created_ms, revoked_ms, kind, "  \
                "named_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING")  \
    X(KEY_TAKE_NAME, "UPDATE key SET name = ?2, named_ms = ?3 WHERE id = ?1 AND named_ms < ?3")  \
    X(KEY_TAKE_END, "UPDATE key SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms = 0")           \
    X(SECRET_ADD, "INSERT INTO secret (name, value) VALUES (?1, ?2) "                            \
                  "ON CONFLICT (name) DO NOTHING")                                               \
    X(SECRET_GET, "SELECT value FROM secret WHERE name = ?1")                                    \
    X(SNAPSHOT_ADD, "INSERT INTO snapshot (id, tenant, name, tag, sandbox, base_template, "      \
                    "created_ms, bytes, defaults) "                                              \
                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                               \
    X(SNAPSHOT_DEFAULTS, "SELECT defaults FROM snapshot WHERE id = ?1")                          \
    X(SNAPSHOT_BY_ID, "SELECT " SNAPSHOT_COLUMNS " FROM snapshot WHERE tenant = ?1 AND id = ?2") \
    X(SNAPSHOT_BY_NAME, "SELECT " SNAPSHOT_COLUMNS " FROM snapshot "                             \
                        "WHERE tenant = ?1 AND name = ?2 AND tag = ?3")                          \
    X(SNAPSHOT_REMOVE, "DELETE FROM snapshot WHERE tenant = ?1 AND id = ?2")                     \
    X(SNAPSHOT_COUNT, "SELECT count(*) FROM snapshot WHERE tenant = ?1")                         \
    X(LAYER_ADD, "INSERT OR IGNORE INTO loose_layer (id) VALUES (?1)")                           \
    X(LAYER_REMOVE, "DELETE FROM loose_layer WHERE id = ?1")                                     \
    X(LAYER_LIST, "SELECT id FROM loose_layer")                                                  \
    X(SNAPSHOT_LIST, "SELECT " SNAPSHOT_COLUMNS " FROM snapshot "                                \
                     "WHERE tenant = ?1 AND seq < ?2 ORDER BY seq DESC")                         \
    X(VOLUME_COUNT, "SELECT count(*) FROM volume WHERE tenant = ?1")                             \
    X(VOLUME_ADD, "INSERT INTO volume (id, tenant, name, created_ms, loose) "                    \
                  "VALUES (?1, ?2, ?3, ?4, 1) ON CONFLICT (tenant, name) DO NOTHING")            \
    X(VOLUME_MADE, "UPDATE volume SET loose = 0, name = ?2 WHERE id = ?1")                       \
    X(VOLUME_LOOSE, "UPDATE volume SET loose = 1, name = '/' || id WHERE id = ?1")               \
    X(VOLUME_REMOVE, "DELETE FROM volume WHERE id = ?1 AND loose = 1")                           \
    X(VOLUME_BY_ID, "SELECT id, tenant, name FROM volume WHERE id = ?1 AND loose = 0")           \
    X(VOLUME_BY_NAME, "SELECT id, tenant, name FROM volume "                                     \
                      "WHERE tenant = ?1 AND name = ?2 AND loose = 0")                           \
    X(VOLUME_LIST, "SELECT id, tenant, name FROM volume "                                        \
                   "WHERE tenant = ?1 AND loose = 0 ORDER BY seq")                               \
    X(VOLUME_LOOSE_LIST, "SELECT id, tenant, name FROM volume WHERE loose = 1")                  \
    X(VAULT_COUNT, "SELECT count(*) FROM vault WHERE tenant = ?1")                               \
    X(VAULT_ADD, "INSERT INTO vault (id, tenant, name, version, metadata, sealed, created_ms, "  \
                 "updated_ms) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?6) "                           \
                 "ON CONFLICT (tenant, name) DO NOTHING")                                        \
    X(VAULT_SET, "UPDATE vault SET version = version + 1, sealed = ?4, updated_ms = ?5, "        \
                 "metadata = coalesce(?3, metadata) WHERE tenant = ?1 AND id = ?2")              \
    X(VAULT_GET, "SELECT " VAULT_COLUMNS ", sealed FROM vault "                                  \
                 "WHERE tenant = ?1 AND (id = ?2 OR name = ?2)")                                 \
    X(VAULT_REMOVE, "DELETE FROM vault WHERE tenant = ?1 AND (id = ?2 OR name = ?2)")            \
    X(VAULT_LIST, "SELECT " VAULT_COLUMNS " FROM vault "                                         \
                  "WHERE tenant = ?1 AND seq < ?2 ORDER BY seq DESC")                            \
    X(EVENT_RANGE, "SELECT (SELECT min(id) FROM event), (SELECT max(id) FROM event)")            \
    X(EVENT_MARK, "SELECT value FROM event_mark WHERE name = ?1")                                \
    X(EVENT_SET_MARK, "INSERT INTO event_mark (name, value) VALUES (?1, ?2) "                    \
                      "ON CONFLICT (name) DO UPDATE SET value = ?2")                             \
    X(EVENT_DROP_MARK, "DELETE FROM event_mark WHERE name = ?1")                                 \
    X(EVENT_ADD, "INSERT INTO event (id, tenant, ms, kind, json, sandbox, e2b) "                 \
                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                          \
    X(E2B, E2B_SELECT E2B_NEWEST)                                                                \
    X(E2B_ASC, E2B_SELECT E2B_OLDEST)                                                            \
    X(E2B_OF, E2B_SELECT "AND sandbox = ?2 " E2B_NEWEST)                                         \
    X(E2B_OF_ASC, E2B_SELECT "AND sandbox = ?2 " E2B_OLDEST)                                     \
    X(EVENT_NTH, "SELECT id FROM event WHERE tenant = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2")    \
    X(EVENT_FORGET, "DELETE FROM event WHERE tenant = ?1 AND id <= ?2")                          \
    X(EVENT_UNPOSTED, "SELECT count(*) FROM event WHERE tenant = ?1 AND id <= ?2 AND id > "      \
                      "(SELECT value FROM event_mark WHERE name = 'webhook')")                   \
    X(EVENTS, EVENT_SELECT "ORDER BY id")                                                        \
    X(EVENTS_OF,                                                                                 \
      EVENT_SELECT "AND tenant = ?3 UNION ALL " EVENT_SELECT "AND tenant = '*' ORDER BY id")     \
    X(WEBHOOK_OPEN, "SELECT event, tries FROM webhook_open WHERE hook = ?1 ORDER BY event")      \
    X(WEBHOOK_CLEAR, "DELETE FROM webhook_open WHERE hook = ?1")                                 \
    X(WEBHOOK_ADD, "INSERT INTO webhook_open (hook, event, tries) VALUES (?1, ?2, ?3)")          \
    X(HOOK_COUNT, "SELECT count(*) FROM webhook WHERE tenant = ?1")                              \
    X(HOOK_ADD, "INSERT INTO webhook (id, tenant, name, url, events, enabled, secret, "          \
                "created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                           \
    X(HOOK_SET, "UPDATE webhook SET name = ?3, url = ?4, events = ?5, enabled = ?6, "            \
                "secret = ?7 WHERE id = ?1 AND tenant = ?2")                                     \
    X(HOOK_GET, "SELECT " HOOK_COLUMNS " FROM webhook WHERE tenant = ?1 AND id = ?2")            \
    X(HOOK_REMOVE, "DELETE FROM webhook WHERE tenant = ?1 AND id = ?2")                          \
    X(HOOK_LIST, "SELECT " HOOK_COLUMNS " FROM webhook "                                         \
                 "WHERE ?1 IS NULL OR tenant = ?1 ORDER BY seq")                                 \
    X(LIVING_COUNT, "SELECT count(*) FROM living")                                               \
    X(LIVING_LIST, "SELECT sandbox, tenant, context, conversation, path FROM living")            \
    X(LIVING_BEGIN, "INSERT OR REPLACE INTO living VALUES "                                      \
                    "(coalesce(json_extract(?1, '$.sandboxId'), ''), ?2, "                       \
                    "coalesce(json_extract(?1, '$.contextId'), ''), "                            \
                    "coalesce(json_extract(?1, '$.conversationId'), ''), "                       \
                    "coalesce(json_extract(?1, '$.pathId'), ''))")                               \
    X(LIVING_END, "DELETE FROM living WHERE sandbox = json_extract(?1, '$.sandboxId')")          \
    X(LIVING_ADD, "INSERT OR REPLACE INTO living VALUES (?1, ?2, ?3, ?4, ?5)")                   \
    X(TEAM_METRIC_ADD, "INSERT INTO team_metric (tenant, minute, peak, started, burst) "         \
                       "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (tenant, minute) DO UPDATE SET " \
                       "peak = max(peak, ?3), started = started + ?4, burst = max(burst, ?5)")   \
    X(TEAM_METRIC_LIST, "SELECT minute / ?4 * ?4, max(peak), sum(started), max(burst) "          \
                        "FROM team_metric WHERE tenant = ?1 AND minute BETWEEN ?2 AND ?3 "       \
                        "GROUP BY 1 ORDER BY 1")                                                 \
    X(TEAM_METRIC_COARSE,                                                                        \
      "INSERT INTO team_metric SELECT tenant, minute / 300 * 300, max(peak), sum(started), "     \
      "max(burst) FROM team_metric WHERE minute % 300 <> 0 AND minute < ?1 GROUP BY 1, 2 "       \
      "ON CONFLICT (tenant, minute) DO UPDATE SET peak = max(peak, excluded.peak), "             \
      "started = started + excluded.started, burst = max(burst, excluded.burst)")                \
    X(TEAM_METRIC_FINE, "DELETE FROM team_metric WHERE minute % 300 <> 0 AND minute < ?1")       \
    X(TEAM_METRIC_FORGET, "DELETE FROM team_metric WHERE (tenant, minute) IN (SELECT tenant, "   \
                          "minute FROM team_metric WHERE minute < ?1 ORDER BY minute LIMIT ?2)") \
    TEMPLATE_STATEMENTS(X)                                                                       \
    CONTEXT_STATEMENTS(X)

#define KEY_SELECT       "SELECT k.id, t.id, t.name, k.name, k.hint, k.created_ms, k.revoked_ms, k.kind"
#define KEY_FROM         " FROM key k LEFT JOIN tenant t ON t.id = k.tenant "
#define KEY_OWN          "tenant = ?1 AND kind = ?2 AND revoked_ms = 0"
#define SNAPSHOT_COLUMNS "seq, id, tenant, name, tag, sandbox, base_template, created_ms, bytes"
#define EVENT_SELECT     "SELECT id, tenant, ms, kind, json, e2b FROM event WHERE id > ?1 AND id < ?2 "
#define E2B_SELECT                                                 \
    "SELECT e2b FROM event WHERE tenant = ?1 AND e2b IS NOT NULL " \
    "AND (?3 IS NULL OR instr(?3, ' ' || kind || ' ')) "
#define E2B_NEWEST    "ORDER BY id DESC LIMIT ?4 OFFSET ?5"
#define E2B_OLDEST    "ORDER BY id LIMIT ?4 OFFSET ?5"
#define HOOK_COLUMNS  "seq, id, tenant, name, url, events, enabled, secret, created_ms"
#define VAULT_COLUMNS "seq, id, name, version, created_ms, updated_ms, metadata"

#define DB_STATEMENT(name, text) DB_##name,
enum db_statement { STORE_STATEMENTS(DB_STATEMENT) DB_MAX_ };
#undef DB_STATEMENT

struct key_cache;
struct store_sync;

struct store {
    sqlite3 *db;
    char *path;
    struct store_sync *sync; /* NULL: durable commits wait for the disk (sync.h) */
    bool durable;            /* a commit now is one that must be kept */
    sqlite3_stmt *statements[DB_MAX_];
    struct key_cache *keys;
};

/* Opens the existing file in `dir` without changing its version: no migration runs. */
int db_open_as_it_is(const char *dir, struct store **ret, int *ret_version, struct sg_error *e);
/* Opens a database in memory, which nobody else can see. */
int db_open_memory(struct store **ret, struct sg_error *e);

/* A parameter of a statement: a text or bytes, which live until the statement has run, or a number.
 * A NULL pointer is SQL's NULL. */
struct db_value {
    enum { DB_END, DB_TEXT, DB_BYTES, DB_NUMBER } type;
    const void *bytes;
    int64_t number; /* of bytes: how many */
};
static inline struct db_value db_text(const char *text)
{
    return (struct db_value){.type = DB_TEXT, .bytes = text};
}
static inline struct db_value db_bytes(const void *bytes, size_t len)
{
    return (struct db_value){.type = DB_BYTES, .bytes = bytes, .number = (int64_t)len};
}
static inline struct db_value db_number(int64_t n)
{
    return (struct db_value){.type = DB_NUMBER, .number = n};
}
/* The parameters ?1, ?2, ... of a call below, which takes NULL for none. */
#define DB_WITH(...) ((const struct db_value[]){__VA_ARGS__, {0}})

/* The rows of a query:
 *
 *     struct db_rows rows = db_rows(s, DB_TENANT_LIST, NULL, e);
 *     while (db_next(&rows))
 *         db_tenant(rows.st, 0, &t);
 *     return db_done(&rows);
 *
 * The first error stays, and ends the loop. */
struct db_rows {
    struct store *store;
    sqlite3_stmt *st; /* at the row */
    struct sg_error *e;
    int r; /* of db_next: 1: there is a row; 0: there is none; -errno */
};
struct db_rows db_rows(struct store *s, enum db_statement which, const struct db_value *with,
                       struct sg_error *e);
/* Goes to the next row. False: there is none, and the statement is reset. */
bool db_next(struct db_rows *rows);
/* Resets the statement, which may be at any row. 0 or -errno. */
int db_done(struct db_rows *rows);
/* The number that is the first column of the first row. 0: there is no row, and *ret is left. */
int db_ask(struct store *s, enum db_statement which, const struct db_value *with, int64_t *ret,
           struct sg_error *e);
/* The same for a statement that counts. 0 or -errno. */
int db_count(struct store *s, enum db_statement which, const struct db_value *with, uint32_t *ret,
             struct sg_error *e);
/* Runs a statement that has no rows. */
int db_run(struct store *s, enum db_statement which, const struct db_value *with,
           struct sg_error *e);
/* How many rows the last statement changed. */
int db_changed(const struct store *s);
/* Whether commits from now on must be kept. A power cut may take the last ones that need not; the
 * database stays whole either way. */
void db_set_durable(struct store *s, bool on);
/* Another connection to the store's file, for another thread. */
int db_open_again(const struct store *s, sqlite3 **ret, struct sg_error *e);
/* Waits until its threads are done. NULL is allowed. */
void store_sync_free(struct store_sync *y);
/* How long a call may wait for another process that is writing. */
#define DB_WAIT_MS 2000
void db_set_wait(struct store *s, int ms);
/* Begin and end one change. The second is for the front's loop, which stands still while it waits
 * for another process that is writing: it waits only for a short time. */
int db_begin(struct store *s, struct sg_error *e);
int db_begin_soon(struct store *s, bool durable, struct sg_error *e);
/* The change is made as a whole or, if r is negative, not at all. Returns r or, if the commit fails,
 * its error. Must follow db_begin even if that failed. */
int db_end(struct store *s, int r, struct sg_error *e);
/* Fills e with SQLite's error of the last call. */
int db_error(const struct store *s, const char *doing, struct sg_error *e);

/* Reads a column as a string, cut to what fits. */
void db_column(sqlite3_stmt *st, int i, char *ret, size_t cap);

/* Reads TENANT_COLUMNS, from column i on. */
void db_tenant(sqlite3_stmt *st, int i, struct store_tenant *ret);
/* Reads KEY_SELECT's columns. */
void db_key(sqlite3_stmt *st, struct store_key *ret);
/* Drops the cache of keys, since keys may have changed. */
void db_keys_changed(struct store *s);
