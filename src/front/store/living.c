#include "front/store/living.h"

#include <string.h>

#include "front/store/db.h"

#define LEFT "left"

int store_living(struct store *s, struct store_living **ret, size_t *ret_n, struct sg_error *e)
{
    int64_t cap = 0;
    size_t n = 0;
    int r = db_ask(s, DB_LIVING_COUNT, NULL, &cap, e);

    if (r < 0)
        return r;
    struct db_rows rows = db_rows(s, DB_LIVING_LIST, NULL, e);
    AUTO(free_p) struct store_living *list = xcalloc((size_t)cap + 1, sizeof(*list));
    while (n < (size_t)cap && db_next(&rows)) {
        struct store_living *l = &list[n++];

        db_column(rows.st, 0, l->sandbox_id, sizeof(l->sandbox_id));
        db_column(rows.st, 1, l->tenant, sizeof(l->tenant));
        db_column(rows.st, 2, l->context, sizeof(l->context));
        db_column(rows.st, 3, l->conversation, sizeof(l->conversation));
        db_column(rows.st, 4, l->path, sizeof(l->path));
    }
    r = db_done(&rows);
    if (r < 0)
        return r;
    *ret = steal_ptr(&list);
    *ret_n = n;
    return 0;
}

int store_living_add(struct store *s, const struct store_living *l, struct sg_error *e)
{
    return db_run(s, DB_LIVING_ADD,
                  DB_WITH(db_text(l->sandbox_id), db_text(l->tenant), db_text(l->context),
                          db_text(l->conversation), db_text(l->path)),
                  e);
}

int store_left_note(struct store *s, enum store_left how, struct sg_error *e)
{
    return db_run(s, DB_EVENT_SET_MARK, DB_WITH(db_text(LEFT), db_number(how)), e);
}

int store_left_take(struct store *s, enum store_left *ret, struct sg_error *e)
{
    int64_t how = STORE_CRASHED;
    int r = db_ask(s, DB_EVENT_MARK, DB_WITH(db_text(LEFT)), &how, e);

    if (r < 0)
        return r;
    if (how != STORE_STOPPED && how != STORE_RESTORED)
        how = STORE_CRASHED;
    *ret = (enum store_left)how;
    return how == STORE_CRASHED ? 0 : store_left_note(s, STORE_CRASHED, e);
}
