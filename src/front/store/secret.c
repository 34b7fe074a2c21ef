#include <sys/random.h>

#include "front/store/db.h"

#define SECRET_MAX 64

/* -ENOENT: there is no secret of that name. */
static int read_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e)
{
    sqlite3_stmt *st;
    int r = db_statement(s, DB_SECRET_GET, &st, e);

    if (r < 0)
        return r;
    db_bind(st, 1, name);
    r = db_step(s, st, e);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    bool whole = (size_t)sqlite3_column_bytes(st, 0) == len;
    if (whole)
        memcpy(ret, sqlite3_column_blob(st, 0), len);
    sqlite3_reset(st);
    return whole ? 0
                 : err_set(e, SG_ERR_INVALID, -EUCLEAN, "'%s' holds a '%s' of the wrong length",
                           s->path, name);
}

/* If another process is faster, the secret that it made is kept. */
static int add_secret(struct store *s, const char *name, size_t len, struct sg_error *e)
{
    unsigned char bytes[SECRET_MAX];
    sqlite3_stmt *st;

    if (len > sizeof(bytes) || getrandom(bytes, len, 0) != (ssize_t)len)
        return err_set(e, SG_ERR_INTERNAL, -EIO, "no random bytes");
    int r = db_statement(s, DB_SECRET_ADD, &st, e);
    if (r < 0)
        return r;
    db_bind(st, 1, name);
    sqlite3_bind_blob(st, 2, bytes, (int)len, SQLITE_STATIC);
    return db_run(s, st, e);
}

int store_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e)
{
    int r = read_secret(s, name, ret, len, e);

    if (r != -ENOENT)
        return r;
    r = add_secret(s, name, len, e);
    return r < 0 ? r : read_secret(s, name, ret, len, e);
}
