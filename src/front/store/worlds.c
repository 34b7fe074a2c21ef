#include "front/store/worlds.h"

#include "front/store/db.h"

#define DROPPED_AT_ONCE 64

int store_worlds_each(struct store *s, void (*fn)(const struct store_world *w, void *arg),
                      void *arg, struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_WORLD_LIST, NULL, e);
    struct store_world w;

    while (db_next(&rows)) {
        db_column(rows.st, 0, w.id, sizeof(w.id));
        db_column(rows.st, 1, w.tenant, sizeof(w.tenant));
        db_column(rows.st, 2, w.name, sizeof(w.name));
        db_column(rows.st, 3, w.templates, sizeof(w.templates));
        w.fetched = sqlite3_column_int(rows.st, 4);
        w.made_ms = sqlite3_column_int64(rows.st, 5);
        fn(&w, arg);
    }
    return db_done(&rows);
}

/* A build that has got its tags since somebody looked. */
static int check_untagged(struct store *s, const char *id, struct sg_error *e)
{
    uint32_t n = 0;
    int r = db_count(s, DB_WORLD_TAGGED, DB_WITH(db_text(id)), &n, e);

    return r < 0 || n == 0 ? r
                           : err_set(e, SG_ERR_GONE, -EBUSY,
                                     "a build of a template has just ended with it: delete that "
                                     "first");
}

int store_world_drop(struct store *s, const char *id, struct sg_error *e)
{
    static const enum db_statement changes[] = {DB_WORLD_CACHE_DROP, DB_WORLD_BUILD_DROP,
                                                DB_BUILD_LAYER_REMOVE, DB_WORLD_SNAPSHOT_DROP,
                                                DB_DROPPED_ADD};
    int r = db_begin(s, e);

    if (r == 0)
        r = check_untagged(s, id, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(changes); i++)
        r = db_run(s, changes[i], DB_WITH(db_text(id)), e);
    return db_end(s, r, e);
}

int store_dropped_each(struct store *s, void (*fn)(const char *id, void *arg), void *arg,
                       struct sg_error *e)
{
    char ids[DROPPED_AT_ONCE][ID_LEN + 1];
    struct db_rows rows = db_rows(s, DB_DROPPED_LIST, DB_WITH(db_number(DROPPED_AT_ONCE)), e);
    size_t n = 0;

    while (n < DROPPED_AT_ONCE && db_next(&rows))
        db_column(rows.st, 0, ids[n++], sizeof(ids[0]));
    int r = db_done(&rows);
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = db_run(s, DB_DROPPED_REMOVE, DB_WITH(db_text(ids[i])), e);
        if (r == 0)
            fn(ids[i], arg);
    }
    return r;
}
