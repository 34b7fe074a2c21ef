#include "front/store/db.h"

#define DEFAULT_TAG "default"

static void take_snapshot(sqlite3_stmt *st, struct store_snapshot *ret)
{
    ret->seq = sqlite3_column_int64(st, 0);
    db_column(st, 1, ret->id, sizeof(ret->id));
    db_column(st, 2, ret->tenant, sizeof(ret->tenant));
    db_column(st, 3, ret->name, sizeof(ret->name));
    db_column(st, 4, ret->tag, sizeof(ret->tag));
    db_column(st, 5, ret->sandbox_id, sizeof(ret->sandbox_id));
    db_column(st, 6, ret->base_template, sizeof(ret->base_template));
    ret->created_ms = sqlite3_column_int64(st, 7);
    int64_t bytes = sqlite3_column_int64(st, 8);
    ret->bytes = bytes < 0 ? 0 : (uint64_t)bytes;
}

/* -ENOENT without a message: the caller knows what the client asked for. */
static int find(struct store *s, enum db_statement which, const char *tenant, const char *name,
                const char *tag, struct store_snapshot *ret, struct sg_error *e)
{
    struct db_rows row =
        db_rows(s, which, DB_WITH(db_text(tenant), db_text(name), db_text(tag)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    take_snapshot(row.st, ret);
    return db_done(&row);
}

int store_snapshot_get(struct store *s, const char *tenant, const char *ref,
                       struct store_snapshot *ret, struct sg_error *e)
{
    char name[STORE_NAME_MAX + 1];
    const char *colon = strchr(ref, ':'), *tag = colon ? colon + 1 : DEFAULT_TAG;
    size_t len = colon ? (size_t)(colon - ref) : strlen(ref);
    int r = -ENOENT;

    if (len > 0 && len <= STORE_NAME_MAX && strlen(tag) <= STORE_NAME_MAX) {
        snprintf(name, sizeof(name), "%.*s", (int)len, ref);
        /* An id names exactly one snapshot, so a tag with it must be that snapshot's own. */
        r = find(s, DB_SNAPSHOT_BY_ID, tenant, name, NULL, ret, e);
        if (r == 0 && colon && strcmp(ret->tag, tag) != 0)
            r = -ENOENT;
        else if (r == -ENOENT)
            r = find(s, DB_SNAPSHOT_BY_NAME, tenant, name, tag, ret, e);
    }
    if (r == -ENOENT)
        err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no snapshot '%.80s'", ref);
    return r;
}

int store_snapshots_count(struct store *s, const char *tenant, uint32_t *ret, struct sg_error *e)
{
    return db_count(s, DB_SNAPSHOT_COUNT, DB_WITH(db_text(tenant)), ret, e);
}

static int insert(struct store *s, const struct store_snapshot *snap, struct sg_error *e)
{
    uint64_t bytes = snap->bytes > INT64_MAX ? INT64_MAX : snap->bytes;

    return db_run(s, DB_SNAPSHOT_ADD,
                  DB_WITH(db_text(snap->id), db_text(snap->tenant), db_text(snap->name),
                          db_text(snap->tag[0] ? snap->tag : DEFAULT_TAG),
                          db_text(snap->sandbox_id), db_text(snap->base_template),
                          db_number(snap->created_ms), db_number((int64_t)bytes),
                          db_text(snap->defaults ? snap->defaults : "")),
                  e);
}

int store_snapshot_defaults(struct store *s, const char *id, char **ret, struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_SNAPSHOT_DEFAULTS, DB_WITH(db_text(id)), e);

    if (!db_next(&row)) {
        if (row.r == 0)
            *ret = xstrdup("");
        return row.r;
    }
    *ret = xstrdup((const char *)sqlite3_column_text(row.st, 0));
    return db_done(&row);
}

int store_snapshot_remove(struct store *s, const char *tenant, const char *id, struct sg_error *e)
{
    int r = db_run(s, DB_SNAPSHOT_REMOVE, DB_WITH(db_text(tenant), db_text(id)), e);

    if (r == 0 && db_changed(s) == 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no snapshot '%.40s'", id);
    return r;
}

static int replace_locked(struct store *s, const struct store_snapshot *snap,
                          char replaced[ID_LEN + 1], struct sg_error *e)
{
    const char *tag = snap->tag[0] ? snap->tag : DEFAULT_TAG;
    struct store_snapshot old;
    int r = -ENOENT;

    if (snap->name[0])
        r = find(s, DB_SNAPSHOT_BY_NAME, snap->tenant, snap->name, tag, &old, e);
    if (r == 0) {
        snprintf(replaced, ID_LEN + 1, "%s", old.id);
        r = store_snapshot_remove(s, snap->tenant, old.id, e);
    } else if (r == -ENOENT) {
        replaced[0] = '\0';
        r = 0;
    }
    return r < 0 ? r : insert(s, snap, e);
}

int store_snapshot_add(struct store *s, const struct store_snapshot *snap,
                       char ret_replaced[ID_LEN + 1], struct sg_error *e)
{
    char replaced[ID_LEN + 1];
    int r = db_begin(s, e);

    if (r == 0)
        r = replace_locked(s, snap, replaced, e);
    r = db_end(s, r, e);
    if (r == 0)
        memcpy(ret_replaced, replaced, sizeof(replaced));
    return r;
}

int store_snapshots_each(struct store *s, const char *tenant, int64_t before,
                         bool (*fn)(const struct store_snapshot *, void *), void *arg,
                         struct sg_error *e)
{
    struct db_rows rows =
        db_rows(s, DB_SNAPSHOT_LIST, DB_WITH(db_text(tenant), db_number(before)), e);
    struct store_snapshot snap;

    while (db_next(&rows)) {
        take_snapshot(rows.st, &snap);
        if (!fn(&snap, arg))
            break;
    }
    return db_done(&rows);
}
