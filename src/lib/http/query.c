/* Query parameters. */
#include "lib/http/impl.h"
#include "lib/text/parse.h"

/* Decodes one byte at p, of `left` bytes, and returns how many it took. */
static size_t decode_byte(const char *p, size_t left, bool plus, char *ret)
{
    if (*p == '%' && left >= 3 && parse_hex(p[1]) >= 0 && parse_hex(p[2]) >= 0) {
        *ret = (char)(parse_hex(p[1]) << 4 | parse_hex(p[2]));
        return 3;
    }
    *ret = *p == '+' && plus ? ' ' : *p;
    return 1;
}

char *http_decode(struct http_req *req, const char *text, size_t len, bool plus)
{
    char *out = http_req_alloc(req, len + 1), *end = out;

    for (size_t i = 0; i < len; end++) {
        i += decode_byte(text + i, len - i, plus, end);
        if (*end == '\0')
            return NULL;
    }
    *end = '\0';
    return out;
}

/* Whether the encoded name, of `len` bytes, is `name`. */
static bool name_is(const char *text, size_t len, const char *name)
{
    for (size_t i = 0; i < len; name++) {
        char c;

        i += decode_byte(text + i, len - i, true, &c);
        if (c == '\0' || c != *name)
            return false;
    }
    return *name == '\0';
}

/* The parameter's value before decoding, of *ret_len bytes; NULL if it is absent. n: how many of that
 * name come before. */
static const char *find(const struct http_req *req, const char *name, size_t n, size_t *ret_len)
{
    for (const char *p = req->query; *p;) {
        size_t pair = strcspn(p, "&"), key = strcspn(p, "=&");

        if (name_is(p, key, name) && n-- == 0) {
            *ret_len = key < pair ? pair - key - 1 : 0;
            return p + (key < pair ? key + 1 : pair);
        }
        p += pair + (p[pair] == '&');
    }
    return NULL;
}

const char *http_query_nth(struct http_req *req, const char *name, size_t n)
{
    size_t len;
    const char *value = find(req, name, n, &len);

    return value ? http_decode(req, value, len, true) : NULL;
}

const char *http_query_get(struct http_req *req, const char *name)
{
    return http_query_nth(req, name, 0);
}

bool http_query_has(const struct http_req *req, const char *name)
{
    size_t len;

    return find(req, name, 0, &len) != NULL;
}
