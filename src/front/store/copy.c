#include "front/store/copy.h"

#include <string.h>

#include "front/store/db.h"
#include "front/store/living.h"

/* More numbers than a server can give out between a copy and the restore from it. */
#define EVENTS_AHEAD "1000000000"

/* Runs a statement with one parameter, or NULL. */
static int run(struct store *s, const char *sql, const char *with, const char *doing,
               struct sg_error *e)
{
    sqlite3_stmt *st = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
        return db_error(s, doing, e);
    if (with)
        sqlite3_bind_text(st, 1, with, -1, SQLITE_STATIC);
    if (sqlite3_step(st) != SQLITE_DONE)
        r = db_error(s, doing, e);
    sqlite3_finalize(st);
    return r;
}

static int change(struct store *s, const char *sql, const char *with, struct sg_error *e)
{
    return run(s, sql, with, "change the copy of the database", e);
}

int store_copy(const char *dir, const char *to, struct sg_error *e)
{
    struct store *s = NULL;
    int version, r = db_open_as_it_is(dir, &s, &version, e);

    if (r < 0)
        return r;
    r = run(s, "VACUUM INTO ?1", to, "copy the database", e);
    store_close(s);
    return r;
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

int store_copied_open(const char *dir, struct store **ret, struct store_facts *facts,
                      struct sg_error *e)
{
    struct store *s = NULL;
    int version, r = db_open_as_it_is(dir, &s, &version, e);

    if (r < 0)
        return r;
#define COUNT(name, table) .name = count(s, #table),
    *facts = (struct store_facts){.schema = version, STORE_COUNTS(COUNT)};
#undef COUNT
    *ret = s;
    return 0;
}

static bool has_table(struct store *s, const char *name)
{
    char what[64];

    snprintf(what, sizeof(what), "sqlite_schema WHERE name = '%s'", name);
    return count(s, what) > 0;
}

/* Forgets a layer whose files are not in the copy. A template that was built to it loses the tags
 * that lead there. */
static int forget_layer(struct store *s, const char *id, bool builds, struct sg_error *e)
{
    static const char *const changes[] = {
        "DELETE FROM template_tag WHERE build IN (SELECT id FROM build WHERE layer = ?1)",
        "UPDATE build SET layer = NULL WHERE layer = ?1",
        "DELETE FROM build_cache WHERE layer = ?1",
        "DELETE FROM build_layer WHERE id = ?1",
    };
    int r = change(s, "DELETE FROM snapshot WHERE id = ?1", id, e);

    for (size_t i = 0; r == 0 && builds && i < ARRAY_SIZE(changes); i++)
        r = change(s, changes[i], id, e);
    return r;
}

int store_copied_snapshots(struct store *s, bool (*fn)(const char *id, void *arg), void *arg,
                           struct sg_error *e)
{
    bool builds = has_table(s, "build_layer"); /* a later version than the first ones */
    const char *next = builds ? "SELECT min(id) FROM (SELECT id FROM snapshot UNION ALL "
                                "SELECT id FROM build_layer) WHERE id > ?1"
                              : "SELECT min(id) FROM snapshot WHERE id > ?1";
    char last[ID_LEN + 1] = "", id[ID_LEN + 1];
    int r = 0;

    for (;;) {
        sqlite3_stmt *st = NULL;

        if (sqlite3_prepare_v2(s->db, next, -1, &st, NULL) != SQLITE_OK)
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
            r = forget_layer(s, id, builds, e);
        if (r < 0)
            return r;
    }
    return change(s, "DELETE FROM loose_layer", NULL, e);
}

/* The first volume whose id comes after `last`. False: there is none, or *ret_r is an error. */
static bool next_volume(struct store *s, const char *last, char tenant[ID_LEN + 1],
                        char id[ID_LEN + 1], int *ret_r, struct sg_error *e)
{
    static const char sql[] = "SELECT tenant, id FROM volume WHERE id > ?1 ORDER BY id LIMIT 1";
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK) {
        *ret_r = db_error(s, "read the copy of the database", e);
        return false;
    }
    sqlite3_bind_text(st, 1, last, -1, SQLITE_STATIC);
    bool found = sqlite3_step(st) == SQLITE_ROW;
    if (found) {
        db_column(st, 0, tenant, ID_LEN + 1);
        db_column(st, 1, id, ID_LEN + 1);
    }
    sqlite3_finalize(st);
    return found;
}

/* One that was being made or removed is not there. */
int store_copied_volumes(struct store *s, bool (*fn)(const char *tenant, const char *id, void *arg),
                         void *arg, struct sg_error *e)
{
    char last[ID_LEN + 1] = "", tenant[ID_LEN + 1], id[ID_LEN + 1];
    int r = 0;

    if (!has_table(s, "volume")) /* an older version */
        return 0;
    r = change(s, fn ? "DELETE FROM volume WHERE loose = 1" : "DELETE FROM volume", NULL, e);
    while (r == 0 && next_volume(s, last, tenant, id, &r, e)) {
        memcpy(last, id, sizeof(last));
        if (!fn(tenant, id, arg))
            r = change(s, "DELETE FROM volume WHERE id = ?1", id, e);
    }
    return r;
}

int store_copied_restored(struct store *s, struct sg_error *e)
{
    static const char ahead[] =
        "UPDATE event_mark SET value = value + " EVENTS_AHEAD " WHERE name = 'reserved'";

    /* A version without events has no numbers to move ahead. */
    if (!has_table(s, "event_mark"))
        return 0;
    int r = change(s, ahead, NULL, e);
    return r < 0 ? r : store_left_note(s, STORE_RESTORED, e);
}
