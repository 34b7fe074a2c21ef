#include "guard/scrub_decode.h"

#include "lib/text/parse.h"

#define ENTITY_MAX \
    10 /* Reads hexadecimal digits behind `before` bytes. Returns how many bytes the escape has in all; 1:
 * it is no such escape; SCRUB_NEEDS_MORE. */
static ssize_t read_hex(const unsigned char *t, size_t len, size_t before, size_t digits,
                        unsigned char *ret)
{
    unsigned v = 0;

    for (size_t i = before; i < before + digits; i++) {
        if (i >= len)
            return SCRUB_NEEDS_MORE;
        if (parse_hex(t[i]) < 0)
            return 1;
        v = v << 4 | (unsigned)parse_hex(t[i]);
    }
    if (v > 0xff)
        return 1;
    *ret = (unsigned char)v;
    return (ssize_t)(before + digits);
}

static ssize_t read_backslash(const unsigned char *t, size_t len, unsigned char *ret)
{
    static const char from[] = "nrt/\"\\'", to[] = "\n\r\t/\"\\'";
    const char *at;

    if (len < 2)
        return SCRUB_NEEDS_MORE;
    if (t[1] == 'u')
        return read_hex(t, len, 2, 4, ret);
    if (t[1] == 'x')
        return read_hex(t, len, 2, 2, ret);
    at = t[1] ? strchr(from, t[1]) : NULL;
    if (!at)
        return 1;
    *ret = (unsigned char)to[at - from];
    return 2;
}

static bool read_number(const unsigned char *t, size_t len, unsigned base, unsigned char *ret)
{
    unsigned v = 0;

    for (size_t i = 0; i < len; i++) {
        int digit = parse_hex(t[i]);

        if (digit < 0 || (unsigned)digit >= base)
            return false;
        v = v * base + (unsigned)digit;
        if (v > 0xff)
            return false;
    }
    *ret = (unsigned char)v;
    return len > 0;
}

/* t: the text between & and ; */
static bool read_entity_name(const unsigned char *t, size_t len, unsigned char *ret)
{
    static const struct {
        const char *name;
        unsigned char c;
    } known[] = {{"amp", '&'},   {"lt", '<'},   {"gt", '>'},     {"quot", '"'},
                 {"apos", '\''}, {"plus", '+'}, {"equals", '='}, {"sol", '/'}};

    if (len > 1 && t[0] == '#' && (t[1] | 0x20) == 'x')
        return read_number(t + 2, len - 2, 16, ret);
    if (len > 0 && t[0] == '#')
        return read_number(t + 1, len - 1, 10, ret);
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strlen(known[i].name) == len && memcmp(known[i].name, t, len) == 0) {
            *ret = known[i].c;
            return true;
        }
    return false;
}

static bool in_entity(unsigned char c)
{
    unsigned char lower = c | 0x20;

    return c == '#' || (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

static ssize_t read_entity(const unsigned char *t, size_t len, unsigned char *ret)
{
    size_t n = 1;

    while (n < len && n < ENTITY_MAX && in_entity(t[n]))
        n++;
    if (n == ENTITY_MAX)
        return 1;
    if (n == len)
        return SCRUB_NEEDS_MORE;
    return t[n] == ';' && read_entity_name(t + 1, n - 1, ret) ? (ssize_t)(n + 1) : 1;
}

ssize_t scrub_decode(const unsigned char *t, size_t len, unsigned char *ret)
{
    unsigned char c = t[0];
    ssize_t n = 1;

    if (c == '%')
        n = read_hex(t, len, 1, 2, ret);
    else if (c == '\\')
        n = read_backslash(t, len, ret);
    else if (c == '&')
        n = read_entity(t, len, ret);
    if (n == 1)
        *ret = c;
    return n;
}
