/* What builds leave behind: lines of their logs, layers, and archives that were uploaded. */
#include <string.h>

#include "front/store/db.h"
#include "front/store/templates.h"
#include "lib/base/clock.h"

#define UNUSED_AT_ONCE 64

/* ---- logs ------------------------------------------------------------------------------------ */

int store_build_log_begin(struct store *s, struct sg_error *e)
{
    return db_begin_soon(s, false, e);
}

int store_build_log_end(struct store *s, struct sg_error *e)
{
    return db_end(s, 0, e);
}

static int add_line(struct store *s, const char *build, const struct store_log *line,
                    struct sg_error *e)
{
    int64_t n = 0;
    int r = db_ask(s, DB_BUILD_LOG_NEXT, DB_WITH(db_text(build)), &n, e);

    if (r >= 0)
        r = db_run(s, DB_BUILD_LOG_ADD,
                   DB_WITH(db_text(build), db_number(n), db_number(line->ms),
                           db_number(line->level), db_text(line->step), db_text(line->message)),
                   e);
    return r;
}

int store_build_log_add(struct store *s, const char *build, const struct store_log *line,
                        struct sg_error *e)
{
    bool one_of_many = !sqlite3_get_autocommit(s->db);
    int r = one_of_many ? 0 : db_begin_soon(s, false, e);

    if (r == 0)
        r = add_line(s, build, line, e);
    return one_of_many ? r : db_end(s, r, e);
}

int store_build_log_each(struct store *s, const char *build, const struct store_log_query *q,
                         void (*fn)(const struct store_log *, void *), void *arg,
                         struct sg_error *e)
{
    int64_t from = q->offset > INT64_MAX ? INT64_MAX : (int64_t)q->offset;
    struct db_rows rows = db_rows(s, q->backward ? DB_BUILD_LOG_BACK : DB_BUILD_LOG_LIST,
                                  DB_WITH(db_text(build), db_number(from), db_number(q->limit),
                                          db_number(q->level), db_number(q->at_ms)),
                                  e);

    while (db_next(&rows)) {
        struct store_log line = {.ms = sqlite3_column_int64(rows.st, 0),
                                 .level = (unsigned)sqlite3_column_int(rows.st, 1) & 3,
                                 .message = (const char *)sqlite3_column_text(rows.st, 3)};

        db_column(rows.st, 2, line.step, sizeof(line.step));
        fn(&line, arg);
    }
    return db_done(&rows);
}

/* That something was used need not survive a power cut. */
static int note_use(struct store *s, enum db_statement which, const char *tenant, const char *name,
                    struct sg_error *e)
{
    int r = db_begin_soon(s, false, e);

    if (r == 0)
        r = db_run(s, which, DB_WITH(db_text(tenant), db_text(name)), e);
    return db_end(s, r, e);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int add_layer(struct store *s, const char *tenant, const char *key, const char *id,
                     uint64_t bytes, struct sg_error *e)
{
    int64_t size = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    int r =
        db_run(s, DB_BUILD_LAYER_ADD, DB_WITH(db_text(id), db_text(tenant), db_number(size)), e);
    if (r == 0 && key)
        r = db_run(s, DB_CACHE_SET, DB_WITH(db_text(tenant), db_text(key), db_text(id)), e);
    return r;
}

int store_build_layer_add(struct store *s, const char *tenant, const char *key, const char *id,
                          uint64_t bytes, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = add_layer(s, tenant, key, id, bytes, e);
    return db_end(s, r, e);
}

int store_build_layer_share(struct store *s, const char *tenant, const char *snapshot,
                            struct sg_error *e)
{
    return db_run(s, DB_BUILD_LAYER_SHARE, DB_WITH(db_text(tenant), db_text(snapshot)), e);
}

int store_image_add(struct store *s, const char *tenant, const char *key,
                    const struct store_image *image, uint64_t bytes, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = add_layer(s, tenant, key, image->layer, bytes, e);
    if (r == 0)
        r = db_run(s, DB_IMAGE_ADD,
                   DB_WITH(db_text(image->layer), db_text(image->name), db_text(image->digest),
                           db_text(image->config), db_number(image->fetched_ms)),
                   e);
    return db_end(s, r, e);
}

int store_image_get(struct store *s, const char *tenant, const char *key, struct store_image *ret,
                    struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_IMAGE_GET, DB_WITH(db_text(tenant), db_text(key)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    db_column(row.st, 0, ret->layer, sizeof(ret->layer));
    db_column(row.st, 1, ret->name, sizeof(ret->name));
    db_column(row.st, 2, ret->digest, sizeof(ret->digest));
    ret->fetched_ms = sqlite3_column_int64(row.st, 3);
    ret->config = xstrdup((const char *)sqlite3_column_text(row.st, 4));
    return db_done(&row);
}

int store_build_layer_get(struct store *s, const char *tenant, const char *key,
                          char ret[ID_LEN + 1], struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_CACHE_GET, DB_WITH(db_text(tenant), db_text(key)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    db_column(row.st, 0, ret, ID_LEN + 1);
    int r = db_done(&row);
    return r < 0 ? r : note_use(s, DB_CACHE_USE, tenant, key, e);
}

uint64_t store_build_layer_bytes(struct store *s, const char *id)
{
    int64_t bytes = 0;

    db_ask(s, DB_BUILD_LAYER_BYTES, DB_WITH(db_text(id)), &bytes, NULL);
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

/* Removes some layers that nothing names, in the order of their ids and behind `last`, which it moves
 * on. Returns how many it looked at. */
static int sweep_some(struct store *s, const char *tenant, char last[ID_LEN + 1],
                      bool (*needed)(const char *id, void *arg),
                      void (*fn)(const char *id, void *arg), void *arg, struct sg_error *e)
{
    char ids[UNUSED_AT_ONCE][ID_LEN + 1];
    struct db_rows rows =
        db_rows(s, DB_BUILD_LAYER_UNUSED,
                DB_WITH(db_text(tenant), db_number(UNUSED_AT_ONCE), db_text(last)), e);
    int n = 0;

    while (n < UNUSED_AT_ONCE && db_next(&rows))
        db_column(rows.st, 0, ids[n++], sizeof(ids[0]));
    int r = db_done(&rows);
    for (int i = 0; r == 0 && i < n; i++) {
        memcpy(last, ids[i], sizeof(ids[i]));
        if (needed(ids[i], arg))
            continue;
        r = db_run(s, DB_BUILD_LAYER_REMOVE, DB_WITH(db_text(ids[i])), e);
        if (r == 0)
            fn(ids[i], arg);
    }
    return r < 0 ? r : n;
}

uint64_t store_build_layers_named(struct store *s, const char *tenant)
{
    int64_t bytes = 0;

    db_ask(s, DB_BUILD_LAYER_NAMED, DB_WITH(db_text(tenant)), &bytes, NULL);
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

int store_build_layers_sweep(struct store *s, const char *tenant, uint32_t keep, uint64_t bytes,
                             bool (*needed)(const char *id, void *arg),
                             void (*fn)(const char *id, void *arg), void *arg, struct sg_error *e)
{
    uint64_t named = store_build_layers_named(s, tenant) + store_copies_bytes(s, tenant);
    uint64_t left = bytes > named ? bytes - named : 0;
    char last[ID_LEN + 1] = "";
    int r = db_run(s, DB_CACHE_TRIM,
                   DB_WITH(db_text(tenant), db_number(keep),
                           db_number(left > INT64_MAX ? INT64_MAX : (int64_t)left)),
                   e);

    if (r < 0)
        return r;
    do
        r = sweep_some(s, tenant, last, needed, fn, arg, e);
    while (r == UNUSED_AT_ONCE);
    return r < 0 ? r : 0;
}

/* ---- copies of public templates -------------------------------------------------------------- */

enum store_layer_owner store_layer_owner(struct store *s, const char *tenant, const char *layer)
{
    int64_t public = 0;
    int r = db_ask(s, DB_LAYER_FOREIGN, DB_WITH(db_text(tenant), db_text(layer)), &public, NULL);

    return r == 0 ? LAYER_OWN : r > 0 && public ? LAYER_PUBLIC : LAYER_FOREIGN;
}

/* The layer that a statement finds. */
static int find_layer(struct store *s, enum db_statement which, const struct db_value *with,
                      char ret[ID_LEN + 1], struct sg_error *e)
{
    struct db_rows row = db_rows(s, which, with, e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    db_column(row.st, 0, ret, ID_LEN + 1);
    return db_done(&row);
}

int store_copy_get(struct store *s, const char *tenant, const char *source, char ret[ID_LEN + 1],
                   struct sg_error *e)
{
    int r = find_layer(s, DB_COPY_GET, DB_WITH(db_text(tenant), db_text(source)), ret, e);

    if (r == 0)
        r = db_begin_soon(s, false, e);
    if (r < 0)
        return r;
    r = db_run(s, DB_COPY_USE,
               DB_WITH(db_text(tenant), db_text(source), db_number(clock_wall_ms())), e);
    return db_end(s, r, e);
}

int store_copy_add(struct store *s, const char *tenant, const char *source, const char *layer,
                   uint64_t bytes, struct sg_error *e)
{
    int r = db_begin(s, e);

    if (r == 0)
        r = add_layer(s, tenant, NULL, layer, bytes, e);
    if (r == 0)
        r = db_run(
            s, DB_COPY_ADD,
            DB_WITH(db_text(tenant), db_text(source), db_text(layer), db_number(clock_wall_ms())),
            e);
    return db_end(s, r, e);
}

uint64_t store_copies_bytes(struct store *s, const char *tenant)
{
    int64_t bytes = 0;

    db_ask(s, DB_COPY_BYTES, DB_WITH(db_text(tenant)), &bytes, NULL);
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

static int remove_found(struct store *s, int r, const char *layer, struct sg_error *e)
{
    if (r == 0)
        r = db_run(s, DB_BUILD_LAYER_REMOVE, DB_WITH(db_text(layer)), e);
    return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int store_copy_trim(struct store *s, const char *tenant, char ret[ID_LEN + 1], struct sg_error *e)
{
    int r = find_layer(s, DB_COPY_OLDEST, DB_WITH(db_text(tenant)), ret, e);

    return remove_found(s, r, ret, e);
}

int store_copy_expire(struct store *s, int64_t before_ms, char ret[ID_LEN + 1], struct sg_error *e)
{
    int r = find_layer(s, DB_COPY_IDLE, DB_WITH(db_number(before_ms)), ret, e);

    return remove_found(s, r, ret, e);
}

/* ---- uploads --------------------------------------------------------------------------------- */

static int read_upload(struct store *s, const char *tenant, const char *hash,
                       struct store_upload *ret, struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_UPLOAD_GET, DB_WITH(db_text(tenant), db_text(hash)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    db_column(row.st, 0, ret->file, sizeof(ret->file));
    db_column(row.st, 1, ret->digest, sizeof(ret->digest));
    ret->bytes = (uint64_t)sqlite3_column_int64(row.st, 2);
    return db_done(&row);
}

int store_upload_get(struct store *s, const char *tenant, const char *hash,
                     struct store_upload *ret, struct sg_error *e)
{
    int r = read_upload(s, tenant, hash, ret, e);

    return r < 0 ? r : note_use(s, DB_UPLOAD_USE, tenant, hash, e);
}

int store_upload_add(struct store *s, const char *tenant, const char *hash,
                     const struct store_upload *u, char ret_old[ID_LEN + 1], struct sg_error *e)
{
    struct store_upload old = {.file = ""};
    int r = db_begin_soon(s, false, e);

    if (r == 0)
        r = read_upload(s, tenant, hash, &old, e);
    if (r == 0 || r == -ENOENT)
        r = db_run(s, DB_UPLOAD_ADD,
                   DB_WITH(db_text(tenant), db_text(hash), db_text(u->file), db_text(u->digest),
                           db_number((int64_t)u->bytes)),
                   e);
    r = db_end(s, r, e);
    if (r == 0)
        memcpy(ret_old, old.file, sizeof(old.file));
    return r;
}

int store_upload_trim(struct store *s, const char *tenant, const char *but, uint64_t max,
                      uint32_t most, struct store_upload *ret, struct sg_error *e)
{
    char hash[STORE_KEY_HEX + 1];
    int64_t sum = 0;
    uint32_t n = 0;
    int r = db_ask(s, DB_UPLOAD_SUM, DB_WITH(db_text(tenant)), &sum, e);

    if (r >= 0)
        r = db_count(s, DB_UPLOAD_COUNT, DB_WITH(db_text(tenant)), &n, e);
    if (r < 0 || ((uint64_t)sum <= max && n <= most))
        return r < 0 ? r : 0;
    struct db_rows row = db_rows(s, DB_UPLOAD_OLDEST, DB_WITH(db_text(tenant), db_text(but)), e);
    if (!db_next(&row))
        return row.r;
    db_column(row.st, 0, hash, sizeof(hash));
    r = db_done(&row);
    if (r == 0)
        r = read_upload(s, tenant, hash, ret, e);
    if (r == 0)
        r = db_run(s, DB_UPLOAD_REMOVE, DB_WITH(db_text(tenant), db_text(hash)), e);
    return r < 0 ? r : 1;
}

bool store_upload_is_file(struct store *s, const char *file)
{
    uint32_t n = 0;

    return db_count(s, DB_UPLOAD_BY_FILE, DB_WITH(db_text(file)), &n, NULL) < 0 || n > 0;
}
