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
    sqlite3_stmt *st;
    int r = db_first(s, which, DB_WITH(db_text(tenant), db_text(name), db_text(tag)), &st, e);

    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    take_snapshot(st, ret);
    sqlite3_reset(st);
    return 0;
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
    int64_t n = 0;
    int r = db_ask(s, DB_SNAPSHOT_COUNT, DB_WITH(db_text(tenant)), &n, e);

    if (r < 0)
        return r;
    *ret = (uint32_t)n;
    return 0;
}

static int insert(struct store *s, const struct store_snapshot *snap, struct sg_error *e)
{
    uint64_t bytes = snap->bytes > INT64_MAX ? INT64_MAX : snap->bytes;

    return db_run(s, DB_SNAPSHOT_ADD,
                  DB_WITH(db_text(snap->id), db_text(snap->tenant), db_text(snap->name),
                          db_text(snap->tag[0] ? snap->tag : DEFAULT_TAG),
                          db_text(snap->sandbox_id), db_text(snap->base_template),
                          db_number(snap->created_ms), db_number((int64_t)bytes)),
                  e);
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

    if (r < 0)
        return r;
    r = replace_locked(s, snap, replaced, e);
    if (r < 0) {
        db_rollback(s);
        return r;
    }
    r = db_commit(s, e);
    if (r == 0)
        memcpy(ret_replaced, replaced, sizeof(replaced));
    return r;
}

int store_snapshots_each(struct store *s, const char *tenant, int64_t before,
                         bool (*fn)(const struct store_snapshot *, void *), void *arg,
                         struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_query(s, DB_SNAPSHOT_LIST, DB_WITH(db_text(tenant), db_number(before)), &st, e);

    if (r < 0)
        return r;
    while ((r = db_step(s, st, e)) > 0) {
        struct store_snapshot snap;

        take_snapshot(st, &snap);
        if (!fn(&snap, arg))
            break;
    }
    sqlite3_reset(st);
    return r < 0 ? r : 0;
}
