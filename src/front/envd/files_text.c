#include "front/envd/files_text.h"

#include <string.h>
#include <strings.h>

#include "wire/agent.h"
#include "lib/channel/wire.h"

#define METADATA_HEADER "x-metadata-"
#define NAME_SHOWN_MAX  255

/* Reads digits only. False: there is none, or the number does not fit. */
static bool read_number(const char **p, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;

    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    *p = s;
    *ret = v;
    return true;
}

struct range range_parse(const char *header)
{
    struct range none = {0}, r = {.kind = RANGE_FROM, .last = UINT64_MAX};
    const char *p = header;

    if (!p || strncasecmp(p, "bytes=", 6) != 0)
        return none;
    p += 6;
    p += strspn(p, " \t");
    if (*p == '-') {
        p++;
        r.kind = RANGE_SUFFIX;
        if (!read_number(&p, &r.last))
            return none;
    } else {
        if (!read_number(&p, &r.first) || *p++ != '-')
            return none;
        if (*p >= '0' && *p <= '9' && (!read_number(&p, &r.last) || r.last < r.first))
            return none;
    }
    p += strspn(p, " \t");
    return *p == '\0' ? r : none;
}

bool range_resolve(const struct range *r, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
    uint64_t first = r->first, last = r->last < size ? r->last : size - 1;

    if (r->kind == RANGE_SUFFIX) {
        if (r->last == 0)
            return false;
        first = r->last < size ? size - r->last : 0;
        last = size - 1;
    }
    if (first >= size)
        return false;
    *ret_first = first;
    *ret_len = last - first + 1;
    return true;
}

/* Whether every browser takes this character of a quoted string for itself. */
static bool plain_in_quotes(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%' && c != '/';
}

static bool plain_in_value(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~!#$&+^`|", c));
}

void disposition_write(struct strbuf *out, const char *path)
{
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/' && end - start < NAME_SHOWN_MAX)
        start--;

    bool plain = true;
    strbuf_addstr(out, "attachment; filename=\"");
    for (size_t i = start; i < end; i++) {
        bool ok = plain_in_quotes((unsigned char)path[i]);
        strbuf_addch(out, ok ? path[i] : '_');
        plain &= ok;
    }
    strbuf_addch(out, '"');
    if (plain)
        return;
    strbuf_addstr(out, "; filename*=UTF-8''");
    for (size_t i = start; i < end; i++) {
        if (plain_in_value((unsigned char)path[i]))
            strbuf_addch(out, path[i]);
        else
            strbuf_addf(out, "%%%02X", (unsigned char)path[i]);
    }
}

/* Whether the quality of one item of Accept-Encoding is zero. */
static bool quality_is_zero(const char *params, size_t len)
{
    const char *q = memchr(params, '=', len);

    if (!q || q == params || (q[-1] != 'q' && q[-1] != 'Q'))
        return false;
    q++;
    size_t digits = strspn(q, "0.");
    return digits > 0 && (q + digits == params + len || strchr(" \t,;", q[digits]));
}

bool identity_refused(const char *accept)
{
    bool identity_named = false, identity_zero = false, any_zero = false;

    for (const char *p = accept; p && *p;) {
        p += strspn(p, " \t,");
        size_t len = strcspn(p, ","), name = strcspn(p, " \t,;");
        bool zero = quality_is_zero(p + name, len - name);

        if (name == 8 && strncasecmp(p, "identity", 8) == 0) {
            identity_named = true;
            identity_zero = zero;
        } else if (name == 1 && *p == '*') {
            any_zero = zero;
        }
        p += len;
    }
    return identity_named ? identity_zero : any_zero;
}

bool media_type_is(const char *content_type, const char *type)
{
    size_t len = strlen(type);

    return content_type && strncasecmp(content_type, type, len) == 0 &&
           strchr(" \t;", content_type[len]); /* finds the NUL at the end, too */
}

static bool key_valid(const char *key)
{
    size_t len = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789._-");

    return len > 0 && key[len] == '\0';
}

static bool printable(const char *s)
{
    for (; *s; s++)
        if (*s < 0x20 || *s > 0x7e)
            return false;
    return true;
}

static bool came_before(const struct http_header *headers, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(headers[k].name, headers[i].name) == 0)
            return true;
    return false;
}

int metadata_from_headers(const struct http_header *headers, size_t n, struct strbuf *ret,
                          struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf pairs = strbuf_upto(4 * FILE_META_MAX + n * 16);
    size_t total = 0;
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++) {
        const char *key = headers[i].name + strlen(METADATA_HEADER);
        if (strncmp(headers[i].name, METADATA_HEADER, strlen(METADATA_HEADER)) != 0 ||
            came_before(headers, i))
            continue;
        if (!key_valid(key))
            return err_invalid(e,
                               "invalid metadata: key '%.64s' has other characters than a-z, 0-9, "
                               "'.', '_' and '-'",
                               key);
        if (strlen(key) > FILE_META_KEY_MAX)
            return err_invalid(e, "invalid metadata: key '%.64s...' exceeds %d bytes", key,
                               FILE_META_KEY_MAX);
        if (!printable(headers[i].value))
            return err_invalid(
                e, "invalid metadata: the value for key '%.64s' is not printable ASCII", key);
        total += strlen(FILE_XATTR_PREFIX) + strlen(key) + strlen(headers[i].value);
        if (total > FILE_META_MAX)
            return err_invalid(e, "invalid metadata: the total size exceeds %d bytes",
                               FILE_META_MAX);
        wire_put_str(&pairs, key);
        wire_put_str(&pairs, headers[i].value);
        count++;
    }
    wire_put_u32(ret, count);
    strbuf_add(ret, pairs.buf, pairs.len);
    return 0;
}
