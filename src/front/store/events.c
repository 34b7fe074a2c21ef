#include "front/store/events.h"

#include <stdio.h>

#include <string.h>

#include "front/store/db.h"

#define RESERVED "reserved"

static uint64_t column_id(sqlite3_stmt *st, int i)
{
    int64_t n = sqlite3_column_int64(st, i);

    return n > 0 ? (uint64_t)n : 0;
}

static struct db_value id_value(uint64_t id)
{
    return db_number(id < INT64_MAX ? (int64_t)id : INT64_MAX);
}

/* Asks for one number. 1: *ret has it. 0: there is none, and *ret is unchanged. */
static int ask(struct store *s, enum db_statement which, const struct db_value *with, uint64_t *ret,
               struct sg_error *e)
{
    int64_t n;
    int r = db_ask(s, which, with, &n, e);

    if (r > 0)
        *ret = n > 0 ? (uint64_t)n : 0;
    return r;
}

int store_mark_get(struct store *s, const char *name, uint64_t *ret, struct sg_error *e)
{
    return ask(s, DB_EVENT_MARK, DB_WITH(db_text(name)), ret, e);
}

int store_mark_set(struct store *s, const char *name, uint64_t value, struct sg_error *e)
{
    return db_run(s, DB_EVENT_SET_MARK, DB_WITH(db_text(name), id_value(value)), e);
}

int store_events_state(struct store *s, struct store_events_state *ret, struct sg_error *e)
{
    struct store_events_state state = {0};
    struct db_rows row = db_rows(s, DB_EVENT_RANGE, NULL, e);

    if (db_next(&row)) {
        state.first = column_id(row.st, 0);
        state.last = column_id(row.st, 1);
    }
    int r = db_done(&row);
    if (r == 0)
        r = store_mark_get(s, RESERVED, &state.reserved, e);
    if (r < 0)
        return r;
    *ret = state;
    return 0;
}

int store_events_reserve(struct store *s, uint64_t upto, struct sg_error *e)
{
    int r = db_begin_soon(s, true, e);

    if (r == 0)
        r = store_mark_set(s, RESERVED, upto, e);
    return db_end(s, r, e);
}

/* Updates the list of living sandboxes as the event says (front/store/living.h). */
static int note_living(struct store *s, const struct store_event *ev, struct sg_error *e)
{
    if (strcmp(ev->kind, "sandbox.created") == 0)
        return db_run(s, DB_LIVING_BEGIN, DB_WITH(db_text(ev->json), db_text(ev->tenant)), e);
    if (strcmp(ev->kind, "sandbox.ended") == 0)
        return db_run(s, DB_LIVING_END, DB_WITH(db_text(ev->json)), e);
    return 0;
}

int store_events_write(struct store *s, const struct store_event *events, size_t n,
                       struct sg_error *e)
{
    int r = db_begin_soon(s, false, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct store_event *ev = &events[i];

        r = db_run(s, DB_EVENT_ADD,
                   DB_WITH(id_value(ev->id), db_text(ev->tenant), db_number(ev->ms),
                           db_text(ev->kind), db_text(ev->json), db_text(ev->sandbox),
                           db_text(ev->e2b)),
                   e);
        if (r == 0)
            r = note_living(s, ev, e);
    }
    return db_end(s, r, e);
}

/* The name of the mark that says up to which number a tenant's events are deleted. */
static void gone_name(const char *tenant, char *ret, size_t cap)
{
    snprintf(ret, cap, tenant ? "gone %s" : "gone", tenant);
}

int store_events_gone(struct store *s, const char *tenant, uint64_t *ret, struct sg_error *e)
{
    char name[64];

    gone_name(tenant, name, sizeof(name));
    return store_mark_get(s, name, ret, e);
}

int store_events_set_gone(struct store *s, const char *tenant, uint64_t upto, struct sg_error *e)
{
    char name[64];
    int r = db_begin_soon(s, false, e);

    gone_name(tenant, name, sizeof(name));
    if (r == 0)
        r = store_mark_set(s, name, upto, e);
    return db_end(s, r, e);
}

static int trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                struct sg_error *e)
{
    struct store_trimmed t = {0};
    char name[64];
    int r = ask(s, DB_EVENT_NTH, DB_WITH(db_text(tenant), db_number(keep)), &t.gone, e);

    if (r <= 0)
        return r;
    const struct db_value *upto = DB_WITH(db_text(tenant), id_value(t.gone));
    r = ask(s, DB_EVENT_UNPOSTED, upto, &t.unposted, e);
    if (r >= 0)
        r = db_run(s, DB_EVENT_FORGET, upto, e);
    gone_name(tenant, name, sizeof(name));
    if (r == 0)
        r = store_mark_set(s, name, t.gone, e);
    if (r == 0)
        *ret = t;
    return r;
}

int store_events_trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                      struct sg_error *e)
{
    int r = db_begin_soon(s, false, e);

    *ret = (struct store_trimmed){0};
    if (r == 0)
        r = trim(s, tenant, keep, ret, e);
    return db_end(s, r, e);
}

int store_events_each(struct store *s, const char *tenant, uint64_t after, uint64_t before,
                      bool (*fn)(const struct store_event *ev, void *arg), void *arg,
                      struct sg_error *e)
{
    struct db_rows rows = db_rows(s, tenant ? DB_EVENTS_OF : DB_EVENTS,
                                  DB_WITH(id_value(after), id_value(before), db_text(tenant)), e);
    sqlite3_stmt *st = rows.st;

    while (db_next(&rows)) {
        struct store_event ev = {
            .id = column_id(st, 0),
            .tenant = (const char *)sqlite3_column_text(st, 1),
            .ms = sqlite3_column_int64(st, 2),
            .kind = (const char *)sqlite3_column_text(st, 3),
            .json = (const char *)sqlite3_column_text(st, 4),
            .e2b = (const char *)sqlite3_column_text(st, 5),
        };
        if (!ev.tenant || !ev.kind || !ev.json)
            continue; /* SQLite has no memory for the row now */
        if (!fn(&ev, arg))
            break;
    }
    return db_done(&rows);
}

/* ---- as E2B tells them ----------------------------------------------------------------------- */

int store_events_e2b(struct store *s, const struct store_e2b_query *q,
                     void (*fn)(const char *e2b, void *arg), void *arg, struct sg_error *e)
{
    const struct db_value *with =
        DB_WITH(db_text(q->tenant), db_text(q->sandbox), db_text(q->kinds), db_number(q->limit),
                db_number(q->offset));
    enum db_statement which = q->sandbox ? (q->oldest_first ? DB_E2B_OF_ASC : DB_E2B_OF)
                                         : (q->oldest_first ? DB_E2B_ASC : DB_E2B);
    struct db_rows rows = db_rows(s, which, with, e);

    while (db_next(&rows)) {
        const char *e2b = (const char *)sqlite3_column_text(rows.st, 0);

        if (e2b)
            fn(e2b, arg);
    }
    return db_done(&rows);
}
