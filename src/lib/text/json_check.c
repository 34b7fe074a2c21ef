#include "lib/text/json_check.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 64

struct cursor {
    const unsigned char *p, *end;
    unsigned depth;
};

static void skip_blanks(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool take(struct cursor *c, unsigned char wanted)
{
    skip_blanks(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(c->end - c->p) < len || memcmp(c->p, word, len) != 0)
        return false;
    c->p += len;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool take_escape(struct cursor *c)
{
    if (c->p == c->end)
        return false;
    unsigned char letter = *c->p++;
    if (letter != 'u')
        return letter && strchr("\"\\/bfnrt", letter);
    for (int i = 0; i < 4; i++, c->p++)
        if (c->p == c->end || !*c->p || !strchr("0123456789abcdefABCDEF", *c->p))
            return false;
    return true;
}

/* Takes the bytes of one character after its first. Overlong forms, surrogates and code points
 * beyond U+10FFFF are refused. */
static bool take_tail(struct cursor *c, unsigned char first)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    int n = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    uint32_t code = first & (0x3fu >> n);

    if (first < 0xc2 || first > 0xf4 || c->end - c->p < n)
        return false;
    for (int i = 0; i < n; i++, c->p++) {
        if ((*c->p & 0xc0) != 0x80)
            return false;
        code = code << 6 | (*c->p & 0x3f);
    }
    return code >= least[n] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
}

static bool take_string(struct cursor *c)
{
    if (!take(c, '"'))
        return false;
    while (c->p < c->end) {
        unsigned char b = *c->p++;

        if (b == '"')
            return true;
        if (b < 0x20 || (b == '\\' && !take_escape(c)) || (b >= 0x80 && !take_tail(c, b)))
            return false;
    }
    return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool take_digits(struct cursor *c)
{
    const unsigned char *from = c->p;

    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        c->p++;
    return c->p > from;
}

static bool take_number(struct cursor *c)
{
    if (c->p < c->end && *c->p == '-')
        c->p++;
    if (c->p < c->end && *c->p == '0')
        c->p++;
    else if (!take_digits(c))
        return false;
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if (!take_digits(c))
            return false;
    }
    if (c->p == c->end || (*c->p != 'e' && *c->p != 'E'))
        return true;
    c->p++;
    if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
        c->p++;
    return take_digits(c);
}

static bool take_value(struct cursor *c);

static bool take_members(struct cursor *c, bool named, unsigned char close)
{
    if (++c->depth > DEPTH_MAX)
        return false;
    if (!take(c, close)) {
        do {
            if (named && (!take_string(c) || !take(c, ':')))
                return false;
            if (!take_value(c))
                return false;
        } while (take(c, ','));
        if (!take(c, close))
            return false;
    }
    c->depth--;
    return true;
}

static bool take_value(struct cursor *c)
{
    skip_blanks(c);
    if (c->p == c->end)
        return false;
    switch (*c->p) {
    case '{':
        c->p++;
        return take_members(c, true, '}');
    case '[':
        c->p++;
        return take_members(c, false, ']');
    case '"':
        return take_string(c);
    case 't':
        return take_word(c, "true");
    case 'f':
        return take_word(c, "false");
    case 'n':
        return take_word(c, "null");
    default:
        return take_number(c);
    }
}

bool json_check_object(const char *text, size_t len)
{
    struct cursor c = {.p = (const unsigned char *)text, .end = (const unsigned char *)text + len};

    skip_blanks(&c);
    if (c.p == c.end || *c.p != '{' || !take_value(&c))
        return false;
    skip_blanks(&c);
    return c.p == c.end;
}

/* ---- weight ---------------------------------------------------------------------------------- */

struct json_weight json_weigh(const char *text, size_t len)
{
    struct json_weight w = {0};
    bool in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == ',') {
            w.values++;
        } else if (c == '{' || c == '[') {
            w.values += JSON_WEIGHT_NESTED;
            w.nested++;
            depth++;
            w.depth = depth > w.depth ? depth : w.depth;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return w;
}
