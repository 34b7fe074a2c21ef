#include "front/interpreter/escape.h"

#include <string.h>

#define REPLACEMENT 0xfffdu

#define ONES  0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words here have the first byte of the text lowest"
#endif

/* Makes the four digits at once, each in a byte of a word. */
char *escape_unit(char *out, uint32_t unit)
{
    uint32_t digits = unit >> 12 | (unit & 0xf00) | (unit & 0xf0) << 12 | (unit & 0xf) << 24;
    uint32_t letters = (digits + 0x06060606) >> 4 & 0x01010101;

    digits += 0x30303030 + letters * ('a' - '0' - 10);
    memcpy(out, "\\u", 2);
    memcpy(out + 2, &digits, sizeof(digits));
    return out + 6;
}

static char *put_code(char *out, uint32_t code)
{
    if (code < 0x10000)
        return escape_unit(out, code);
    code -= 0x10000;
    out = escape_unit(out, 0xd800 | code >> 10);
    return escape_unit(out, 0xdc00 | (code & 0x3ff));
}

/* Writes a byte below 0x80 that a JSON string must escape. */
static char *put_special(char *out, unsigned char c)
{
    static const char letters[128] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                      ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\'};

    if (!letters[c])
        return escape_unit(out, c);
    out[0] = '\\';
    out[1] = letters[c];
    return out + 2;
}

static char *put_one(char *out, unsigned char c)
{
    if (c < 0x20 || c == '"' || c == '\\')
        return put_special(out, c);
    *out++ = (char)c;
    return out;
}

/* The index of the first byte of a word, in the order of the text, with its high bit set. */
static inline size_t first_byte(uint64_t highs)
{
    return (size_t)__builtin_ctzll(highs) / 8;
}

/* The high bit of each byte that is zero. Above the first such byte there may be false ones. */
static inline uint64_t zero_bytes(uint64_t v)
{
    return (v - ONES) & ~v & HIGHS;
}

/* The same for bytes that must be escaped: controls, `"` and `\`, all but ASCII. */
static inline uint64_t special_bytes(uint64_t v)
{
    return (((v - ONES * 0x20) | v) & HIGHS) | zero_bytes(v ^ ONES * '"') |
           zero_bytes(v ^ ONES * '\\');
}

/* Copies ASCII, eight bytes at a time, up to the first byte that must be escaped or to the last few
 * bytes of the text. Whole words are written: there is room for six times the rest. Returns where
 * it stopped. */
static const unsigned char *put_ascii(char **out, const unsigned char *p, const unsigned char *end)
{
    char *o = *out;
    uint64_t v;

    while (end - p >= (ptrdiff_t)sizeof(v)) {
        memcpy(&v, p, sizeof(v));
        memcpy(o, &v, sizeof(v));
        uint64_t special = special_bytes(v);
        size_t n = special ? first_byte(special) : sizeof(v);
        p += n;
        o += n;
        if (!special)
            continue;
        if (*p >= 0x80)
            break;
        o = put_special(o, *p++);
    }
    *out = o;
    return p;
}

/* Takes the first byte of a character of several bytes. False: no character starts with it. The
 * range of the second byte keeps out overlong forms, surrogates, and codes beyond U+10FFFF. */
static bool begin(struct escape *e, unsigned char c)
{
    e->lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    e->hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    e->need = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    e->code = c & (0x3fu >> e->need);
    if (c >= 0xc2 && c <= 0xf4)
        return true;
    e->need = 0;
    return false;
}

/* Writes a run of whole and valid characters of two or three bytes, the usual ones outside ASCII.
 * Returns where it stopped. */
static const unsigned char *put_run(char **out, const unsigned char *p, const unsigned char *end)
{
    char *o = *out;

    while (end - p >= 3) {
        uint32_t code = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);

        if ((p[0] & 0xf0) == 0xe0 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
            code >= 0x800 && (code & 0xf800) != 0xd800) {
            o = escape_unit(o, code);
            p += 3;
        } else if (p[0] >= 0xc2 && p[0] <= 0xdf && (p[1] & 0xc0) == 0x80) {
            o = escape_unit(o, (p[0] & 31u) << 6 | (p[1] & 63u));
            p += 2;
        } else {
            break;
        }
    }
    *out = o;
    return p;
}

/* Takes a further byte of a character. False: the byte is no part of it, so the start was
 * invalid. */
static bool next(struct escape *e, char **out, unsigned char c)
{
    if (c < e->lo || c > e->hi) {
        e->need = 0;
        *out = escape_unit(*out, REPLACEMENT);
        return false;
    }
    e->code = e->code << 6 | (c & 63u);
    e->lo = 0x80;
    e->hi = 0xbf;
    if (--e->need == 0)
        *out = put_code(*out, e->code);
    return true;
}

size_t escape_text(struct escape *e, char *out, const void *text, size_t len)
{
    const unsigned char *p = text, *end = p + len;
    char *o = out;

    while (p < end) {
        if (e->need > 0) {
            p += next(e, &o, *p);
        } else if (*p < 0x80) {
            p = put_ascii(&o, p, end);
            if (p < end && *p < 0x80)
                o = put_one(o, *p++);
        } else {
            p = put_run(&o, p, end);
            if (p < end && *p >= 0x80 && !begin(e, *p++))
                o = escape_unit(o, REPLACEMENT);
        }
    }
    return (size_t)(o - out);
}

size_t escape_end(struct escape *e, char *out)
{
    bool unfinished = e->need > 0;

    *e = (struct escape){0};
    return unfinished ? (size_t)(escape_unit(out, REPLACEMENT) - out) : 0;
}
