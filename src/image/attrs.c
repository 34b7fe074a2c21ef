#include "image/attrs.h"

#include <string.h>

#define HEAD  4  /* bytes before the name */
#define COUNT 64 /* attributes of a file: each is compared with the others */

struct attr {
    uint8_t prefix;
    const uint8_t *name, *value;
    size_t name_len, value_len, total;
};

static size_t padded(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

/* A world's attributes by their prefix: `name` is what comes after it. */
static bool is_kept(uint8_t prefix, const uint8_t *name, size_t len)
{
    static const char overlay[] = "overlay.", capability[] = "capability";

    if (len == 0 || len > IMAGE_NAME_MAX || memchr(name, '\0', len))
        return false;
    if (prefix == ATTR_USER)
        return len < strlen(overlay) || memcmp(name, overlay, strlen(overlay)) != 0;
    return prefix == ATTR_SECURITY && len == strlen(capability) &&
           memcmp(name, capability, len) == 0;
}

static bool take(const uint8_t *v, size_t len, struct attr *ret)
{
    if (len < HEAD)
        return false;
    *ret = (struct attr){.prefix = v[1],
                         .name = v + HEAD,
                         .name_len = v[0],
                         .value = v + HEAD + v[0],
                         .value_len = v[2] | (size_t)v[3] << 8};
    ret->total = padded(HEAD + ret->name_len + ret->value_len);
    return ret->total <= len;
}

static bool same_name(const struct attr *a, const struct attr *b)
{
    return a->prefix == b->prefix && a->name_len == b->name_len &&
           memcmp(a->name, b->name, a->name_len) == 0;
}

/* Takes the attribute of this name out. Returns how many there are. */
static size_t drop(struct attrs *a, const struct attr *name)
{
    struct attr old;
    size_t n = 0;

    for (size_t at = 0; take(a->v + at, a->len - at, &old); at += old.total, n++) {
        if (!same_name(&old, name))
            continue;
        memmove(a->v + at, a->v + at + old.total, a->len - at - old.total);
        a->len -= old.total;
        old.total = 0;
        n--;
    }
    return n;
}

int attrs_set(struct attrs *a, const char *name, const void *value, size_t len, size_t max)
{
    struct attr new = {.prefix = strncmp(name, "user.", 5) == 0       ? ATTR_USER
                                 : strncmp(name, "security.", 9) == 0 ? ATTR_SECURITY
                                                                      : 0};
    uint8_t *to;

    if (new.prefix == 0)
        return 0;
    new.name = (const uint8_t *)strchr(name, '.') + 1;
    new.name_len = strlen((const char *)new.name);
    if (!is_kept(new.prefix, new.name, new.name_len))
        return 0;
    if (drop(a, &new) >= COUNT || len > UINT16_MAX)
        return -E2BIG;
    new.total = padded(HEAD + new.name_len + len);
    if (max > sizeof(a->v) || a->len > max || new.total > max - a->len)
        return -E2BIG;
    to = a->v + a->len;
    memset(to, 0, new.total);
    to[0] = (uint8_t) new.name_len;
    to[1] = new.prefix;
    to[2] = (uint8_t)len;
    to[3] = (uint8_t)(len >> 8);
    memcpy(to + HEAD, new.name, new.name_len);
    if (len > 0)
        memcpy(to + HEAD + new.name_len, value, len);
    a->len += new.total;
    return 0;
}

static bool zeros(const uint8_t *v, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (v[i] != 0)
            return false;
    return true;
}

bool attrs_are_valid(const uint8_t *v, size_t len)
{
    struct attr a, other;
    size_t n = 0;

    if (len > IMAGE_XATTRS_MAX)
        return false;
    for (size_t at = 0; at < len; at += a.total) {
        if (++n > COUNT || !take(v + at, len - at, &a) || !is_kept(a.prefix, a.name, a.name_len) ||
            !zeros(a.value + a.value_len, (size_t)(v + at + a.total - a.value) - a.value_len))
            return false;
        for (size_t before = 0; before < at; before += other.total)
            if (!take(v + before, at - before, &other) || same_name(&a, &other))
                return false;
    }
    return true;
}
