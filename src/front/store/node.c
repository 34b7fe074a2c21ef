#include "front/store/node.h"

#include "front/store/db.h"

#define STATUS "node status"
#define SINCE  "node status since"

static int get(struct store *s, const char *name, int64_t *ret, struct sg_error *e)
{
    *ret = 0;
    int r = db_ask(s, DB_EVENT_MARK, DB_WITH(db_text(name)), ret, e);
    return r < 0 ? r : 0;
}

int store_node_get(struct store *s, int64_t *ret_status, int64_t *ret_since_ms, struct sg_error *e)
{
    int r = get(s, STATUS, ret_status, e);

    return r < 0 ? r : get(s, SINCE, ret_since_ms, e);
}

int store_node_set(struct store *s, int64_t status, int64_t since_ms, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = db_run(s, DB_EVENT_SET_MARK, DB_WITH(db_text(STATUS), db_number(status)), e);
    if (r == 0)
        r = db_run(s, DB_EVENT_SET_MARK, DB_WITH(db_text(SINCE), db_number(since_ms)), e);
    return db_end(s, r, e);
}
