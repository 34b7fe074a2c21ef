#include "front/store/templates.h"

#include <string.h>

#include "front/store/db.h"
#include "lib/base/clock.h"

static void take_template(sqlite3_stmt *st, struct store_template *ret)
{
    ret->seq = sqlite3_column_int64(st, 0);
    db_column(st, 1, ret->id, sizeof(ret->id));
    db_column(st, 2, ret->tenant, sizeof(ret->tenant));
    db_column(st, 3, ret->name, sizeof(ret->name));
    ret->public = sqlite3_column_int(st, 4) != 0;
    ret->created_ms = sqlite3_column_int64(st, 5);
    ret->updated_ms = sqlite3_column_int64(st, 6);
}

int store_template_get(struct store *s, const char *tenant, const char *which,
                       struct store_template *ret, struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_TEMPLATE_OWN, DB_WITH(db_text(tenant), db_text(which)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    take_template(row.st, ret);
    return db_done(&row);
}

int store_template_public(struct store *s, const char *id, struct store_template *ret,
                          struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_TEMPLATE_PUBLIC, DB_WITH(db_text(id)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    take_template(row.st, ret);
    return db_done(&row);
}

int store_template_publish(struct store *s, const char *id, bool public, struct sg_error *e)
{
    return db_run(s, DB_TEMPLATE_PUBLISH, DB_WITH(db_text(id), db_number(public)), e);
}

static int ensure_locked(struct store *s, const char *tenant, const char *name, uint32_t max,
                         struct store_template *ret, struct sg_error *e)
{
    int r = store_template_get(s, tenant, name, ret, e);
    char id[ID_LEN + 1];
    uint32_t n = 0;

    if (r != -ENOENT)
        return r;
    r = db_count(s, DB_TEMPLATE_COUNT, DB_WITH(db_text(tenant)), &n, e);
    if (r < 0)
        return r;
    if (n >= max)
        return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                       "you have reached the maximum number of templates: the limit is %u; delete "
                       "one first",
                       max);
    id_random(id);
    r = db_run(s, DB_TEMPLATE_ADD,
               DB_WITH(db_text(id), db_text(tenant), db_text(name), db_number(clock_wall_ms())), e);
    return r < 0 ? r : store_template_get(s, tenant, name, ret, e);
}

int store_template_ensure(struct store *s, const char *tenant, const char *name, uint32_t max,
                          struct store_template *ret, struct sg_error *e)
{
    int r = db_begin_soon(s, true, e);

    if (r == 0)
        r = ensure_locked(s, tenant, name, max, ret, e);
    return db_end(s, r, e);
}

int store_templates_each(struct store *s, const char *tenant,
                         bool (*fn)(const struct store_template *, void *), void *arg,
                         struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_TEMPLATE_LIST, DB_WITH(db_text(tenant)), e);
    struct store_template t;

    while (db_next(&rows)) {
        take_template(rows.st, &t);
        if (!fn(&t, arg))
            break;
    }
    return db_done(&rows);
}

int store_template_remove(struct store *s, const char *id, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = db_run(s, DB_TAG_REMOVE_ALL, DB_WITH(db_text(id)), e);
    if (r == 0)
        r = db_run(s, DB_BUILD_REMOVE_ALL, DB_WITH(db_text(id)), e);
    if (r == 0)
        r = db_run(s, DB_TEMPLATE_REMOVE, DB_WITH(db_text(id)), e);
    return db_end(s, r, e);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* Runs a statement for each of the tags in a text. */
static int each_tag(struct store *s, enum db_statement which, const char *template_id,
                    const char *tags, const char *build, struct sg_error *e)
{
    int64_t now = clock_wall_ms();
    int r = 0;

    for (const char *p = tags + strspn(tags, " "); r == 0 && *p; p += strspn(p, " ")) {
        char tag[STORE_NAME_MAX + 1];
        size_t len = strcspn(p, " ");

        if (len > STORE_NAME_MAX)
            return err_invalid(e, "invalid tag: %.80s", p);
        snprintf(tag, sizeof(tag), "%.*s", (int)len, p);
        p += len;
        r = build ? db_run(
                        s, which,
                        DB_WITH(db_text(template_id), db_text(tag), db_text(build), db_number(now)),
                        e)
                  : db_run(s, which, DB_WITH(db_text(template_id), db_text(tag)), e);
    }
    return r;
}

static int set_locked(struct store *s, const char *template_id, const char *tags, const char *build,
                      struct sg_error *e)
{
    int r = each_tag(s, DB_TAG_SET, template_id, tags, build, e);
    uint32_t n = 0;

    if (r == 0)
        r = db_count(s, DB_TAG_COUNT, DB_WITH(db_text(template_id)), &n, e);
    if (r == 0 && n > STORE_TEMPLATE_TAGS)
        r = err_set(e, SG_ERR_LIMIT, -EDQUOT, "a template has at most %d tags: delete one first",
                    STORE_TEMPLATE_TAGS);
    if (r == 0)
        r = db_run(s, DB_BUILD_STRIP, DB_WITH(db_text(template_id)), e);
    return r;
}

int store_tags_set(struct store *s, const char *template_id, const char *tags, const char *build,
                   struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = set_locked(s, template_id, tags, build, e);
    return db_end(s, r, e);
}

int store_tags_remove(struct store *s, const char *template_id, const char *tags,
                      struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = each_tag(s, DB_TAG_REMOVE, template_id, tags, NULL, e);
    if (r == 0)
        r = db_run(s, DB_BUILD_STRIP, DB_WITH(db_text(template_id)), e);
    return db_end(s, r, e);
}

int store_tags_each(struct store *s, const char *template_id,
                    void (*fn)(const char *tag, const char *build, int64_t created_ms, void *arg),
                    void *arg, struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_TAG_LIST, DB_WITH(db_text(template_id)), e);

    while (db_next(&rows)) {
        char tag[STORE_NAME_MAX + 1], build[STORE_BUILD_LEN + 1];

        db_column(rows.st, 0, tag, sizeof(tag));
        db_column(rows.st, 1, build, sizeof(build));
        fn(tag, build, sqlite3_column_int64(rows.st, 2), arg);
    }
    return db_done(&rows);
}

/* ---- builds ---------------------------------------------------------------------------------- */

#define NEW_KEPT_MS (3600ll * 1000) /* a build that nobody starts within this time is forgotten */

static void take_build(sqlite3_stmt *st, struct store_build *ret)
{
    db_column(st, 0, ret->id, sizeof(ret->id));
    db_column(st, 1, ret->template_id, sizeof(ret->template_id));
    ret->state = (enum store_build_state)sqlite3_column_int(st, 2);
    db_column(st, 3, ret->tags, sizeof(ret->tags));
    ret->cpus = (uint32_t)sqlite3_column_int64(st, 4);
    ret->memory_mib = (uint32_t)sqlite3_column_int64(st, 5);
    db_column(st, 6, ret->base, sizeof(ret->base));
    db_column(st, 7, ret->layer, sizeof(ret->layer));
    db_column(st, 8, ret->reason, sizeof(ret->reason));
    db_column(st, 9, ret->reason_step, sizeof(ret->reason_step));
    ret->created_ms = sqlite3_column_int64(st, 10);
    ret->ended_ms = sqlite3_column_int64(st, 11);
}

static int find_build(struct store *s, enum db_statement which, const struct db_value *with,
                      struct store_build *ret, struct sg_error *e)
{
    struct db_rows row = db_rows(s, which, with, e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    take_build(row.st, ret);
    return db_done(&row);
}

int store_build_get(struct store *s, const char *template_id, const char *id,
                    struct store_build *ret, struct sg_error *e)
{
    return find_build(s, DB_BUILD_GET, DB_WITH(db_text(template_id), db_text(id)), ret, e);
}

int store_build_by_tag(struct store *s, const char *template_id, const char *tag,
                       struct store_build *ret, struct sg_error *e)
{
    return find_build(s, DB_BUILD_BY_TAG, DB_WITH(db_text(template_id), db_text(tag)), ret, e);
}

int store_build_newest(struct store *s, const char *template_id, struct store_build *ret,
                       struct sg_error *e)
{
    return find_build(s, DB_BUILD_NEWEST, DB_WITH(db_text(template_id)), ret, e);
}

int store_builds_each(struct store *s, const char *template_id,
                      bool (*fn)(const struct store_build *, void *), void *arg, struct sg_error *e)
{
    struct db_rows rows = db_rows(s, DB_BUILD_LIST, DB_WITH(db_text(template_id)), e);
    struct store_build b;

    while (db_next(&rows)) {
        take_build(rows.st, &b);
        if (!fn(&b, arg))
            break;
    }
    return db_done(&rows);
}

int store_builds_count(struct store *s, const char *template_id, uint32_t *ret, struct sg_error *e)
{
    return db_count(s, DB_BUILD_COUNT, DB_WITH(db_text(template_id)), ret, e);
}

int store_build_add(struct store *s, const struct store_build *b, uint32_t keep, struct sg_error *e)
{
    int64_t now = clock_wall_ms();
    int r = db_begin_soon(s, true, e);

    if (r == 0)
        r = db_run(s, DB_BUILD_FORGET,
                   DB_WITH(db_text(b->template_id), db_number(keep), db_number(now - NEW_KEPT_MS),
                           db_number(STORE_BUILDS_NEW)),
                   e);
    if (r == 0)
        r = db_run(s, DB_BUILD_LOG_FORGET,
                   DB_WITH(db_text(b->template_id), db_number(STORE_BUILD_LOGS)), e);
    if (r == 0)
        r = db_run(s, DB_BUILD_ADD,
                   DB_WITH(db_text(b->id), db_text(b->template_id), db_text(b->tags),
                           db_number(b->cpus), db_number(b->memory_mib), db_number(now)),
                   e);
    return db_end(s, r, e);
}

int store_build_defaults(struct store *s, const char *id, char **ret, struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_BUILD_DEFAULTS, DB_WITH(db_text(id)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    *ret = xstrdup((const char *)sqlite3_column_text(row.st, 0));
    return db_done(&row);
}

int store_build_state(struct store *s, const char *id, enum store_build_state state,
                      struct sg_error *e)
{
    int r = db_run(s, DB_BUILD_STATE, DB_WITH(db_text(id), db_number(state)), e);

    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_GONE, -EALREADY, "build '%s' was started already", id);
    return r;
}

/* `sandglass world` may have removed what the build stood on. */
static int check_layer(struct store *s, const char *id, struct sg_error *e)
{
    int64_t bytes = 0;
    int r = id[0] ? db_ask(s, DB_BUILD_LAYER_BYTES, DB_WITH(db_text(id)), &bytes, e) : 1;

    return r == 0 ? err_set(e, SG_ERR_GONE, -ESTALE, "its files were removed meanwhile") : r;
}

static int end_locked(struct store *s, const struct store_build *b, const char *defaults,
                      struct sg_error *e)
{
    int64_t now = clock_wall_ms();
    int r = check_layer(s, b->layer, e);

    if (r >= 0)
        r = db_run(s, DB_BUILD_END,
                   DB_WITH(db_text(b->id), db_number(b->state), db_text(b->base),
                           db_text(b->layer[0] ? b->layer : NULL), db_text(defaults),
                           db_text(b->reason), db_text(b->reason_step), db_number(now)),
                   e);
    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_GONE, -EALREADY, "build '%s' is over already", b->id);
    if (r == 0 && b->state == BUILD_READY)
        r = set_locked(s, b->template_id, b->tags, b->id, e);
    if (r == 0)
        r = db_run(s, DB_TEMPLATE_TOUCH, DB_WITH(db_text(b->template_id), db_number(now)), e);
    return r;
}

int store_build_end(struct store *s, const struct store_build *b, const char *defaults,
                    struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = end_locked(s, b, defaults, e);
    return db_end(s, r, e);
}

int store_builds_abandon(struct store *s, const char *reason, struct sg_error *e)
{
    return db_run(s, DB_BUILD_ABANDON, DB_WITH(db_text(reason), db_number(clock_wall_ms())), e);
}
