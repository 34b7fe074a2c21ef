/* Reads escapes as the characters they stand for: \n, \t, \", \/, \u0040. One, two or three
 * backslashes mean the same, because JSON is put into JSON. So texts that are written with escapes
 * are found, and a find never begins or ends inside an escape, which would break JSON. A sequence
 * that sets colours on a terminal is one character, so that it does not touch the word after it.
 *
 * A pair of backslashes that escapes nothing is one character. Reading goes from left to right and
 * never looks further than one escape, so a text may be cut before any character and reading begin
 * there again. */

#include "lib/sanitise/impl.h"
#include "lib/text/parse.h"

#define D  (CC_DIGIT | CC_HEX)
#define UH (CC_UPPER | CC_HEX)
#define LH (CC_LOWER | CC_HEX)
#define H  CC_MAIL

const uint16_t cc_of[256] = {
    ['0' ... '9'] = D,
    ['A' ... 'F'] = UH,
    ['G' ... 'Z'] = CC_UPPER,
    ['a' ... 'f'] = LH,
    ['g' ... 'z'] = CC_LOWER,
    ['-'] = CC_DASH,
    ['_'] = CC_DASH,
    ['.'] = CC_DOT | CC_SIGN,
    ['+'] = CC_B64 | CC_MAIL,
    ['/'] = CC_B64 | CC_SLASH,
    ['='] = CC_B64 | CC_SIGN,
    ['%'] = CC_MAIL | CC_URL,
    ['\''] = CC_MAIL | CC_SIGN,
    [','] = CC_COMMA,
    ['~'] = CC_TILDE,
    ['!'] = CC_URL,
    ['#'] = CC_URL | CC_SIGN,
    ['$'] = CC_URL,
    ['&'] = CC_URL,
    ['*'] = CC_URL,
    [':'] = CC_URL | CC_SIGN,
    ['?'] = CC_URL,
    ['@'] = CC_URL,
    ['['] = CC_URL,
    [']'] = CC_URL,
    ['^'] = CC_URL,
    [' '] = CC_SIGN,
    ['\t'] = CC_SIGN,
    ['"'] = CC_SIGN,
    [ESCAPED_QUOTE] = CC_SIGN,
    ['`'] = CC_SIGN,
    ['>'] = CC_SIGN,
    ['('] = CC_SIGN,
    [0x80 ... 0xff] = CC_MAIL | CC_URL,
};

/* The character that the escape after the backslashes at p stands for. Returns the escape's length;
 * 0 if it is none. */
static size_t escaped(const unsigned char *p, size_t n, unsigned char *ret)
{
    static const char names[] = "nrtbf\"/'", values[] = "\v\v\t\b\f\2/'";
    const char *at = n && *p ? strchr(names, *p) : NULL;
    unsigned code = 0;

    if (at) {
        *ret = (unsigned char)values[at - names];
        return 1;
    }
    if (n < 5 || *p != 'u')
        return 0;
    for (size_t i = 1; i < 5; i++) {
        int h = parse_hex(p[i]);
        if (h < 0)
            return 0;
        code = code << 4 | (unsigned)h;
    }
    *ret = code < 0x80 ? (unsigned char)code : 0xc3; /* stands for any letter beyond ASCII */
    return 5;
}

#define ESC           0x1b
#define COLOUR_MAX    24
#define CHARACTER_MAX (COLOUR_MAX + 16)

/* The length of the rest of a terminal's control sequence after ESC: [1;31m */
static size_t control_sequence(const unsigned char *p, size_t n)
{
    size_t i = 1;

    if (n < 2 || *p != '[')
        return 0;
    while (i < n && i < COLOUR_MAX && ((p[i] >= '0' && p[i] <= '9') || p[i] == ';'))
        i++;
    return i < n && p[i] >= '@' && p[i] <= '~' ? i + 1 : 0;
}

/* The length of the character that begins with the backslash or ESC at p. */
static size_t one_escape(const unsigned char *p, size_t n, unsigned char *ret)
{
    size_t slashes = *p == '\\', len = 1;

    while (slashes && slashes < 3 && slashes < n && p[slashes] == '\\')
        slashes++;
    *ret = *p;
    if (slashes)
        len = escaped(p + slashes, n - slashes, ret);
    if (len && *ret == ESC)
        len += control_sequence(p + slashes + len, n - slashes - len);
    if (len)
        return slashes + len;
    *ret = '\\';
    return slashes >= 2 ? 2 : 1;
}

/* Whether n bytes of a control sequence, without ESC, may be the beginning of a longer one. */
static bool sequence_is_cut(const unsigned char *p, size_t n)
{
    size_t i = 1;

    if (n == 0 || *p != '[')
        return n == 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || p[i] == ';'))
        i++;
    return i == n && n < COLOUR_MAX;
}

/* Whether the n bytes at p, which begin with a backslash or ESC, may be the beginning of a longer
 * character. */
static bool is_cut(const unsigned char *p, size_t n)
{
    size_t slashes = 0, i;
    unsigned char c;

    if (*p == ESC)
        return sequence_is_cut(p + 1, n - 1);
    while (slashes < 3 && slashes < n && p[slashes] == '\\')
        slashes++;
    if (slashes == n)
        return true;
    if (p[slashes] != 'u')
        return false;
    for (i = slashes + 1; i < n && i < slashes + 5 && parse_hex(p[i]) >= 0; i++)
        continue;
    if (i < slashes + 5)
        return i == n;
    return escaped(p + slashes, n - slashes, &c) && c == ESC && sequence_is_cut(p + i, n - i);
}

/* The next backslash and the next ESC; each is searched for only once. */
struct escapes {
    const unsigned char *slash, *esc, *end;
};

static const unsigned char *next_escape(struct escapes *e, const unsigned char *p)
{
    if (e->slash && e->slash < p)
        e->slash = memchr(p, '\\', (size_t)(e->end - p));
    if (e->esc && e->esc < p)
        e->esc = memchr(p, ESC, (size_t)(e->end - p));
    return !e->slash || (e->esc && e->esc < e->slash) ? e->esc : e->slash;
}

/* Allocates once, since every view fits. */
static void make_room(struct view_space *s)
{
    if (!s->text) {
        s->text = xcalloc(1, WINDOW_MAX);
        s->steps = xcalloc(WINDOW_MAX / 2, sizeof(*s->steps));
    }
}

void view_make(struct view *v, struct view_space *space, const char *raw, size_t len, bool final)
{
    const unsigned char *p = (const unsigned char *)raw, *end = p + len;
    struct escapes escapes = {memchr(p, '\\', len), memchr(p, ESC, len), end};
    const unsigned char *at = next_escape(&escapes, p);

    *v = (struct view){.p = p, .n = len, .final = final};
    if (!at)
        return;
    make_room(space);
    unsigned char *out = space->text;
    size_t shift = 0;
    for (; at; at = next_escape(&escapes, p)) {
        if (!final && end - at < CHARACTER_MAX && is_cut(at, (size_t)(end - at))) {
            end = at; /* left for the next view, when the escape is whole */
            break;
        }
        memcpy(out, p, (size_t)(at - p));
        out += at - p;
        size_t used = one_escape(at, (size_t)(end - at), out++);
        p = at + used;
        shift += used - 1;
        if (used > 1)
            space->steps[v->n_steps++] =
                (struct view_step){(uint32_t)(out - space->text), (uint32_t)shift};
    }
    memcpy(out, p, (size_t)(end - p));
    v->p = space->text;
    v->n = (size_t)(out - space->text) + (size_t)(end - p);
    v->steps = space->steps;
}

void view_space_done(struct view_space *space)
{
    free(space->text);
    free(space->steps);
}

size_t view_raw(const struct view *v, size_t at)
{
    size_t low = 0, high = v->n_steps;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (v->steps[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return at + (low ? v->steps[low - 1].shift : 0);
}

size_t view_index(const struct view *v, size_t raw)
{
    size_t low = 0, high = v->n;

    if (!v->n_steps)
        return raw;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (view_raw(v, middle) < raw)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_word(const unsigned char *p, const char *word, size_t len)
{
    for (size_t i = len; i-- > 0;) {
        int c = p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32 : p[i];
        if (c != word[i])
            return false;
    }
    return true;
}

bool view_has(const struct view *v, size_t at, const char *word)
{
    size_t len = strlen(word);

    return at <= v->n && v->n - at >= len && same_word(v->p + at, word, len);
}

bool view_named(const struct view *v, size_t at, const struct name *names)
{
    for (size_t gap = 0; gap < 5 && cc_is(view_at(v, at - 1), CC_SIGN); gap++)
        at--;
    if (!cc_is(view_at(v, at - 1), CC_ALPHA))
        return false;
    for (; names->len; names++) {
        if (at >= names->len && same_word(v->p + at - names->len, names->text, names->len) &&
            !cc_is(view_at(v, at - names->len - 1), CC_ALNUM))
            return true;
    }
    return false;
}
