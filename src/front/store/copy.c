#include "front/store/copy.h"

#include <string.h>

#include "front/store/db.h"
#include "front/store/living.h"

/* More numbers than a server can give out between a copy and the restore from it. */
#define EVENTS_AHEAD "1000000000"

struct store_copied {
    struct store *db;
};

int store_copy(const char *dir, const char *to, struct sg_error *e)
{
    struct store *s = NULL;
    sqlite3_stmt *st = NULL;
    int version, r = db_open_as_it_is(dir, &s, &version, e);

    if (r < 0)
        return r;
    if (sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &st, NULL) != SQLITE_OK)
        r = db_error(s, "copy the database", e);
    if (r == 0) {
        sqlite3_bind_text(st, 1, to, -1, SQLITE_STATIC);
        r = sqlite3_step(st) == SQLITE_DONE ? 0 : db_error(s, "copy the database", e);
    }
    sqlite3_finalize(st);
    store_close(s);
    return r;
}

static int execute(struct store *s, const char *sql, struct sg_error *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : db_error(s, "change the copy of the database", e);
}

/* Counts rows; 0 for a table that the file's version does not have. */
static uint64_t count(struct store *s, const char *table)
{
    char sql[64];
    sqlite3_stmt *st = NULL;
    uint64_t n = 0;

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

int store_copied_open(const char *dir, struct store_copied **ret, struct store_facts *facts,
                      struct sg_error *e)
{
    struct store *s = NULL;
    int version, r = db_open_as_it_is(dir, &s, &version, e);

    if (r < 0)
        return r;
#define COUNT(name, table) .name = count(s, #table),
    *facts = (struct store_facts){.schema = version, STORE_COUNTS(COUNT)};
#undef COUNT
    *ret = NEW(struct store_copied, .db = s);
    return 0;
}

static int remove_snapshot(struct store *s, const char *id, struct sg_error *e)
{
    sqlite3_stmt *st = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, "DELETE FROM snapshot WHERE id = ?1", -1, &st, NULL) != SQLITE_OK)
        return db_error(s, "change the copy of the database", e);
    sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
    if (sqlite3_step(st) != SQLITE_DONE)
        r = db_error(s, "change the copy of the database", e);
    sqlite3_finalize(st);
    return r;
}

int store_copied_snapshots(struct store_copied *c, bool (*fn)(const char *id, void *arg), void *arg,
                           struct sg_error *e)
{
    struct store *s = c->db;
    char last[ID_LEN + 1] = "", id[ID_LEN + 1];
    int r = 0;

    for (;;) {
        sqlite3_stmt *st = NULL;

        if (sqlite3_prepare_v2(s->db, "SELECT min(id) FROM snapshot WHERE id > ?1", -1, &st,
                               NULL) != SQLITE_OK)
            return db_error(s, "read the copy of the database", e);
        sqlite3_bind_text(st, 1, last, -1, SQLITE_STATIC);
        bool found = sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_TEXT;
        if (found)
            db_column(st, 0, id, sizeof(id));
        sqlite3_finalize(st);
        if (!found)
            break;
        memcpy(last, id, sizeof(last));
        if (!fn(id, arg))
            r = remove_snapshot(s, id, e);
        if (r < 0)
            return r;
    }
    return execute(s, "DELETE FROM loose_layer", e);
}

int store_copied_restored(struct store_copied *c, struct sg_error *e)
{
    static const char ahead[] =
        "UPDATE event_mark SET value = value + " EVENTS_AHEAD " WHERE name = 'reserved'";

    /* A version without events has no numbers to move ahead. */
    if (count(c->db, "sqlite_schema WHERE name = 'event_mark'") == 0)
        return 0;
    int r = execute(c->db, ahead, e);
    return r < 0 ? r : store_left_note(c->db, STORE_RESTORED, e);
}

void store_copied_close(struct store_copied *c)
{
    if (!c)
        return;
    store_close(c->db);
    free(c);
}
