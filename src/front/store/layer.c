#include "front/store/db.h"

#define LOOSE_MAX 4096 /* layers that one start takes up; more wait for the next start */

int store_snapshot_loose(struct store *s, const char *id, struct sg_error *e)
{
    return db_run(s, DB_LAYER_ADD, DB_WITH(db_text(id)), e);
}

void store_snapshot_gone(struct store *s, const char *id)
{
    /* If this fails, the layer stays on the list and is deleted once more, which does nothing. */
    db_run(s, DB_LAYER_REMOVE, DB_WITH(db_text(id)), NULL);
}

bool store_layer_named(struct store *s, const char *id)
{
    uint32_t n = 0;

    return db_count(s, DB_LAYER_NAMED, DB_WITH(db_text(id)), &n, NULL) < 0 || n > 0;
}

int store_loose_snapshots_each(struct store *s, void (*fn)(const char *id, void *arg), void *arg,
                               struct sg_error *e)
{
    char(*ids)[ID_LEN + 1] = xcalloc(LOOSE_MAX, sizeof(*ids));
    struct db_rows rows = db_rows(s, DB_LAYER_LIST, NULL, e);
    size_t n = 0;

    while (n < LOOSE_MAX && db_next(&rows))
        db_column(rows.st, 0, ids[n++], sizeof(ids[0]));
    int r = db_done(&rows);
    for (size_t i = 0; r == 0 && i < n; i++)
        fn(ids[i], arg);
    free(ids);
    return r;
}
