#include "front/store/team_metrics.h"

#include "front/store/db.h"

#define FORGET_ROWS 5000

int store_team_metrics_begin(struct store *s, struct sg_error *e)
{
    return db_begin_soon(s, false, e);
}

int store_team_metrics_end(struct store *s, int r, struct sg_error *e)
{
    return db_end(s, r, e);
}

int store_team_metric_add(struct store *s, const char *tenant, const struct store_team_metric *m,
                          struct sg_error *e)
{
    return db_run(s, DB_TEAM_METRIC_ADD,
                  DB_WITH(db_text(tenant), db_number(m->at), db_number(m->peak),
                          db_number(m->started), db_number(m->burst)),
                  e);
}

static uint32_t column_count(sqlite3_stmt *st, int i)
{
    int64_t n = sqlite3_column_int64(st, i);

    return n < 0 ? 0 : n > INT32_MAX ? INT32_MAX : (uint32_t)n;
}

int store_team_metrics_each(struct store *s, const char *tenant, int64_t from, int64_t to,
                            int64_t step, void (*fn)(const struct store_team_metric *m, void *arg),
                            void *arg, struct sg_error *e)
{
    struct db_rows rows =
        db_rows(s, DB_TEAM_METRIC_LIST,
                DB_WITH(db_text(tenant), db_number(from), db_number(to), db_number(step)), e);

    while (db_next(&rows)) {
        struct store_team_metric m = {.at = sqlite3_column_int64(rows.st, 0),
                                      .peak = column_count(rows.st, 1),
                                      .started = column_count(rows.st, 2),
                                      .burst = column_count(rows.st, 3)};
        fn(&m, arg);
    }
    return db_done(&rows);
}

int store_team_metrics_thin(struct store *s, int64_t coarse, int64_t gone, struct sg_error *e)
{
    int r = db_begin_soon(s, false, e);

    if (r == 0)
        r = db_run(s, DB_TEAM_METRIC_COARSE, DB_WITH(db_number(coarse)), e);
    if (r == 0)
        r = db_run(s, DB_TEAM_METRIC_FINE, DB_WITH(db_number(coarse)), e);
    if (r == 0)
        r = db_run(s, DB_TEAM_METRIC_FORGET, DB_WITH(db_number(gone), db_number(FORGET_ROWS)), e);
    return db_end(s, r, e);
}
