#include "image/pax.h"

#include <string.h>

#include "image/path.h"
#include "lib/text/parse.h"

#define XATTR "SCHILY.xattr."

void pax_begin(struct pax *p, const struct pax *global)
{
    p->has = global->has;
    p->size = global->size;
    p->uid = global->uid;
    p->gid = global->gid;
    p->mtime = global->mtime;
    p->mtime_ns = global->mtime_ns;
    p->attrs.len = global->attrs.len;
    memcpy(p->attrs.v, global->attrs.v, global->attrs.len);
}

struct record {
    const char *key, *value;
    size_t value_len;
};

static int bad_value(const struct record *r, struct sg_error *e)
{
    return err_invalid(e, "an extended header has a value for '%s' that is none: '%s'",
                       PATH_SHOW(r->key), PATH_SHOW(r->value));
}

static int take_text(const struct record *r, char *to, struct sg_error *e)
{
    if (strlen(r->value) != r->value_len)
        return err_invalid(e, "an extended header has a name with a zero byte: '%s'",
                           PATH_SHOW(r->value));
    if (r->value_len > IMAGE_PATH_MAX)
        return err_invalid(e, "the name '%s' has more than %u bytes", PATH_SHOW(r->value),
                           IMAGE_PATH_MAX);
    memcpy(to, r->value, r->value_len + 1);
    return 0;
}

static int take_number(const struct record *r, uint64_t *ret, struct sg_error *e)
{
    if (strlen(r->value) != r->value_len ||
        parse_u64("number", r->value, 0, INT64_MAX, ret, NULL) < 0)
        return bad_value(r, e);
    return 0;
}

/* An owner below zero is nobody that a world knows. */
static int take_id(const struct record *r, uint64_t *ret, struct sg_error *e)
{
    struct record positive = *r;

    if (r->value[0] != '-')
        return take_number(r, ret, e);
    positive.value++;
    positive.value_len--;
    int code = take_number(&positive, ret, e);
    if (code == 0)
        *ret = UINT64_MAX;
    return code;
}

/* "-1.25" is 1.25 s before 1970: second -2 and 750,000,000 ns. */
static int take_time(const struct record *r, int64_t *ret, uint32_t *ret_ns, struct sg_error *e)
{
    bool negative = r->value[0] == '-';
    const char *p = r->value + negative;
    uint64_t seconds = 0;
    uint32_t ns = 0, unit = 100000000;

    if (*p < '0' || *p > '9' || strlen(r->value) != r->value_len)
        return bad_value(r, e);
    for (; *p >= '0' && *p <= '9'; p++) {
        seconds = seconds * 10 + (uint64_t)(*p - '0');
        if (seconds > INT64_MAX / 20)
            return bad_value(r, e);
    }
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
            ns += unit * (uint32_t)(*p - '0');
    if (*p != '\0')
        return bad_value(r, e);
    *ret = negative ? -(int64_t)seconds : (int64_t)seconds;
    *ret_ns = ns;
    if (negative && ns > 0) {
        *ret -= 1;
        *ret_ns = 1000000000 - ns;
    }
    return 0;
}

static int take_xattr(struct pax *p, const struct record *r, const struct image_limits *limits,
                      struct sg_error *e)
{
    const char *name = r->key + strlen(XATTR);
    int code = attrs_set(&p->attrs, name, r->value, r->value_len, limits->xattrs);

    if (code < 0)
        return err_set(
            e, SG_ERR_LIMIT, code,
            "a file has more than %llu bytes of attributes, or more than 64 of them, with '%s'",
            (unsigned long long)limits->xattrs, PATH_SHOW(name));
    return 0;
}

static int take(struct pax *p, const struct record *r, bool global,
                const struct image_limits *limits, struct sg_error *e)
{
    static const char *const keys[] = {"path", "linkpath", "size", "uid", "gid", "mtime"};
    unsigned field = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(r->key, keys[i]) == 0)
            field = 1u << i;
    if (strncmp(r->key, "GNU.sparse.", 11) == 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "a sparse file cannot be taken: pack the layer without --sparse");
    if (strncmp(r->key, XATTR, strlen(XATTR)) == 0)
        return take_xattr(p, r, limits, e);
    if (field == 0)
        return 0;
    if (global && field <= PAX_SIZE)
        return err_invalid(e, "a global header has '%s', which can only be said of one file",
                           r->key);
    p->has &= ~field;
    if (r->value_len == 0) /* by the standard: as if it had not been there */
        return 0;
    p->has |= field;
    switch ((enum pax_field)field) {
    case PAX_PATH:
        return take_text(r, p->path, e);
    case PAX_LINK:
        return take_text(r, p->link, e);
    case PAX_SIZE:
        return take_number(r, &p->size, e);
    case PAX_UID:
        return take_id(r, &p->uid, e);
    case PAX_GID:
        return take_id(r, &p->gid, e);
    case PAX_MTIME:
        return take_time(r, &p->mtime, &p->mtime_ns, e);
    }
    return 0;
}

/* The length at the beginning of a record; 0: there is none. */
static size_t record_length(const char *text, size_t len, size_t *ret_digits)
{
    size_t n = 0, digits = 0;

    while (digits < len && digits < 8 && text[digits] >= '0' && text[digits] <= '9')
        n = n * 10 + (size_t)(text[digits++] - '0');
    *ret_digits = digits;
    return digits > 0 && digits < len && text[digits] == ' ' && n <= len && n > digits + 3 ? n : 0;
}

int pax_read(struct pax *p, char *text, size_t len, bool global, const struct image_limits *limits,
             struct sg_error *e)
{
    size_t digits, n;

    for (; len > 0; text += n, len -= n) {
        n = record_length(text, len, &digits);
        char *key = text + digits + 1;
        char *equal =
            n > 0 && text[n - 1] == '\n' ? memchr(key, '=', (size_t)(text + n - 1 - key)) : NULL;

        if (!equal || memchr(key, '\0', (size_t)(equal - key)))
            return err_invalid(e, "an extended header of the layer is broken");
        *equal = text[n - 1] = '\0';
        struct record r = {key, equal + 1, (size_t)(text + n - 1 - (equal + 1))};
        int code = take(p, &r, global, limits, e);
        if (code < 0)
            return code;
    }
    return 0;
}
