#include <sys/random.h>

#include "front/store/db.h"

#define SECRET_MAX 64

/* -ENOENT: there is no secret of that name. */
static int read_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e)
{
    struct db_rows row = db_rows(s, DB_SECRET_GET, DB_WITH(db_text(name)), e);

    if (!db_next(&row))
        return row.r < 0 ? row.r : -ENOENT;
    bool whole = (size_t)sqlite3_column_bytes(row.st, 0) == len;
    if (whole)
        memcpy(ret, sqlite3_column_blob(row.st, 0), len);
    db_done(&row);
    return whole ? 0
                 : err_set(e, SG_ERR_INVALID, -EUCLEAN, "'%s' holds a '%s' of the wrong length",
                           s->path, name);
}

/* If another process is faster, the secret that it made is kept. */
static int add_secret(struct store *s, const char *name, size_t len, struct sg_error *e)
{
    unsigned char bytes[SECRET_MAX];

    if (len > sizeof(bytes) || getrandom(bytes, len, 0) != (ssize_t)len)
        return err_set(e, SG_ERR_INTERNAL, -EIO, "no random bytes");
    return db_run(s, DB_SECRET_ADD, DB_WITH(db_text(name), db_bytes(bytes, len)), e);
}

int store_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e)
{
    int r = read_secret(s, name, ret, len, e);

    if (r != -ENOENT)
        return r;
    r = add_secret(s, name, len, e);
    return r < 0 ? r : read_secret(s, name, ret, len, e);
}
