#include "front/store/events.h"

#include <stdio.h>

#include <string.h>

#include "front/store/db.h"

/* Short, because the loop stands still while it waits for another process that is writing. */
#define WAIT_MS  100
#define RESERVED "reserved"
#define WEBHOOK  "webhook"

/* begin and end enclose one change. */
static int begin(struct store *s, bool durable, struct sg_error *e)
{
    db_set_wait(s, WAIT_MS);
    db_set_durable(s, durable);
    return db_begin(s, e);
}

static int end(struct store *s, int r, struct sg_error *e)
{
    if (!sqlite3_get_autocommit(s->db)) {
        if (r >= 0)
            r = db_commit(s, e);
        else
            db_rollback(s);
    }
    db_set_durable(s, true);
    db_set_wait(s, DB_WAIT_MS);
    return r;
}

static uint64_t column_id(sqlite3_stmt *st, int i)
{
    int64_t n = sqlite3_column_int64(st, i);

    return n > 0 ? (uint64_t)n : 0;
}

static int64_t bounded(uint64_t n)
{
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* 1: the mark exists. 0: it does not, and *ret is unchanged. */
static int get_mark(struct store *s, const char *name, uint64_t *ret, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_MARK, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, name);
    r = db_step(s, st, e);
    if (r > 0)
        *ret = column_id(st, 0);
    sqlite3_reset(st);
    return r;
}

static int set_mark(struct store *s, const char *name, uint64_t value, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_SET_MARK, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, name);
    sqlite3_bind_int64(st, 2, bounded(value));
    return db_run(s, st, e);
}

int store_events_state(struct store *s, struct store_events_state *ret, struct sg_error *e)
{
    struct store_events_state state = {0};
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_RANGE, &st, e);

    if (r == 0)
        r = db_step(s, st, e);
    if (r < 0)
        return r;
    state.first = column_id(st, 0);
    state.last = column_id(st, 1);
    sqlite3_reset(st);
    r = get_mark(s, RESERVED, &state.reserved, e);
    if (r < 0)
        return r;
    *ret = state;
    return 0;
}

int store_events_reserve(struct store *s, uint64_t upto, struct sg_error *e)
{
    int r = begin(s, true, e);

    if (r == 0)
        r = set_mark(s, RESERVED, upto, e);
    return end(s, r, e);
}

static int write_one(struct store *s, const struct store_event *ev, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_EVENT_ADD, &st, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(st, 1, bounded(ev->id));
    db_bind(st, 2, ev->tenant);
    sqlite3_bind_int64(st, 3, ev->ms);
    db_bind(st, 4, ev->kind);
    db_bind(st, 5, ev->json);
    return db_run(s, st, e);
}

/* Updates the list of living sandboxes as the event says (front/store/living.h). */
static int note_living(struct store *s, const struct store_event *ev, struct sg_error *e)
{
    bool begins = strcmp(ev->kind, "sandbox.created") == 0;
    sqlite3_stmt *st;

    if (!begins && strcmp(ev->kind, "sandbox.ended") != 0)
        return 0;
    int r = db_statement(s, begins ? DB_LIVING_BEGIN : DB_LIVING_END, &st, e);
    if (r < 0)
        return r;
    db_bind(st, 1, ev->json);
    if (begins)
        db_bind(st, 2, ev->tenant);
    return db_run(s, st, e);
}

int store_events_write(struct store *s, const struct store_event *events, size_t n,
                       struct sg_error *e)
{
    int r = begin(s, false, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        r = write_one(s, &events[i], e);
        if (r == 0)
            r = note_living(s, &events[i], e);
    }
    return end(s, r, e);
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
    return get_mark(s, name, ret, e);
}

int store_events_set_gone(struct store *s, const char *tenant, uint64_t upto, struct sg_error *e)
{
    char name[64];
    int r = begin(s, false, e);

    gone_name(tenant, name, sizeof(name));
    if (r == 0)
        r = set_mark(s, name, upto, e);
    return end(s, r, e);
}

/* Asks for one number about a tenant's events. 0: there is none. */
static int ask_number(struct store *s, enum db_statement which, const char *tenant, uint64_t n,
                      uint64_t *ret, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, which, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    sqlite3_bind_int64(st, 2, bounded(n));
    r = db_step(s, st, e);
    if (r > 0)
        *ret = column_id(st, 0);
    sqlite3_reset(st);
    return r;
}

static int trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                struct sg_error *e)
{
    struct store_trimmed t = {0};
    sqlite3_stmt *st;
    char name[64];
    int r = ask_number(s, DB_EVENT_NTH, tenant, keep, &t.gone, e);

    if (r <= 0)
        return r;
    r = ask_number(s, DB_EVENT_UNPOSTED, tenant, t.gone, &t.unposted, e);
    if (r >= 0)
        r = db_statement(s, DB_EVENT_FORGET, &st, e);
    if (r < 0)
        return r;
    db_bind(st, 1, tenant);
    sqlite3_bind_int64(st, 2, bounded(t.gone));
    r = db_run(s, st, e);
    gone_name(tenant, name, sizeof(name));
    if (r == 0)
        r = set_mark(s, name, t.gone, e);
    if (r == 0)
        *ret = t;
    return r;
}

int store_events_trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                      struct sg_error *e)
{
    int r;

    *ret = (struct store_trimmed){0};
    r = begin(s, false, e);
    if (r == 0)
        r = trim(s, tenant, keep, ret, e);
    return end(s, r, e);
}

int store_events_each(struct store *s, const char *tenant, uint64_t after, uint64_t before,
                      bool (*fn)(const struct store_event *ev, void *arg), void *arg,
                      struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, tenant ? DB_EVENTS_OF : DB_EVENTS, &st, e);

    if (r < 0)
        return r;
    sqlite3_bind_int64(st, 1, bounded(after));
    sqlite3_bind_int64(st, 2, bounded(before));
    if (tenant)
        db_bind(st, 3, tenant);
    while ((r = db_step(s, st, e)) > 0) {
        struct store_event ev = {
            .id = column_id(st, 0),
            .tenant = (const char *)sqlite3_column_text(st, 1),
            .ms = sqlite3_column_int64(st, 2),
            .kind = (const char *)sqlite3_column_text(st, 3),
            .json = (const char *)sqlite3_column_text(st, 4),
        };
        if (!ev.tenant || !ev.kind || !ev.json)
            continue; /* SQLite has no memory for the row now */
        if (!fn(&ev, arg))
            break;
    }
    sqlite3_reset(st);
    return r < 0 ? r : 0;
}

/* ---- the webhook ----------------------------------------------------------------------------- */

int store_webhook_get(struct store *s, struct store_webhook *ret, struct sg_error *e)
{
    struct store_webhook w = {0};
    sqlite3_stmt *st;
    int r = get_mark(s, WEBHOOK, &w.done, e);

    if (r == 0)
        return -ENOENT;
    if (r > 0)
        r = db_statement(s, DB_WEBHOOK_OPEN, &st, e);
    if (r < 0)
        return r;
    while ((r = db_step(s, st, e)) > 0 && w.n < STORE_WEBHOOK_OPEN) {
        w.open[w.n].event = column_id(st, 0);
        w.open[w.n++].tries = (uint32_t)(column_id(st, 1) & UINT32_MAX);
    }
    sqlite3_reset(st);
    if (r < 0)
        return r;
    *ret = w;
    return 0;
}

static int write_webhook(struct store *s, const struct store_webhook *w, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = set_mark(s, WEBHOOK, w->done, e);

    if (r == 0)
        r = db_statement(s, DB_WEBHOOK_CLEAR, &st, e);
    if (r == 0)
        r = db_run(s, st, e);
    for (size_t i = 0; r == 0 && i < w->n; i++) {
        r = db_statement(s, DB_WEBHOOK_ADD, &st, e);
        if (r < 0)
            break;
        sqlite3_bind_int64(st, 1, bounded(w->open[i].event));
        sqlite3_bind_int64(st, 2, w->open[i].tries);
        r = db_run(s, st, e);
    }
    return r;
}

int store_webhook_set(struct store *s, const struct store_webhook *w, struct sg_error *e)
{
    int r = begin(s, false, e);

    if (r == 0)
        r = write_webhook(s, w, e);
    return end(s, r, e);
}
