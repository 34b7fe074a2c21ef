#include "guard/scrub.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"

#define FILTER_BITS 4096
#define HELD_MAX    (4 * SCRUB_VALUE_MAX)
#define BASE64_MIN  6 /* characters that depend on the secret alone */

enum form {
    FORM_PLAIN,   /* byte by byte */
    FORM_PERCENT, /* each byte as it is or as %XX */
};

struct pattern {
    struct pattern *next;
    enum form form;
    const unsigned char *p;
    size_t len;
    unsigned char own[]; /* unless the bytes are the secret's */
};

struct scrub {
    struct pattern *patterns;
    uint64_t pairs[FILTER_BITS / 64]; /* of the first two bytes of a pattern, hashed */
    uint64_t first[4];                /* bytes that a pattern begins with */
};

/* ---- patterns -------------------------------------------------------------------------------- */

static unsigned pair_hash(unsigned char a, unsigned char b)
{
    return (a * 67u + b) % FILTER_BITS;
}

static void add_pair(struct scrub *s, unsigned char a, unsigned char b)
{
    unsigned h = pair_hash(a, b);

    s->pairs[h / 64] |= 1ull << h % 64;
    s->first[a / 64] |= 1ull << a % 64;
}

static void add_pattern(struct scrub *s, enum form form, const void *p, size_t len, bool copy)
{
    struct pattern *n = xcalloc(1, sizeof *n + (copy ? len : 0));

    *n = (struct pattern){.next = s->patterns, .form = form, .p = p, .len = len};
    if (copy) {
        memcpy(n->own, p, len);
        n->p = n->own;
    }
    s->patterns = n;
    add_pair(s, n->p[0], n->p[1]);
    if (form == FORM_PERCENT) {
        static const char digits[] = "0123456789abcdefABCDEF";

        add_pair(s, n->p[0], '%');
        for (size_t i = 0; i < sizeof digits - 1; i++)
            add_pair(s, '%', (unsigned char)digits[i]);
        if (n->p[0] == ' ')
            add_pair(s, '+', n->p[1]), add_pair(s, '+', '%'), add_pair(s, '+', '+');
        if (n->p[1] == ' ')
            add_pair(s, n->p[0], '+');
    }
}

/* With `before` bytes before it, up to two: the characters that depend on the value alone. */
static void add_base64(struct scrub *s, const void *value, size_t len, size_t before)
{
    static const char zero[2];
    AUTO(strbuf_done) struct strbuf plain = {0}, text = {0};
    size_t from = (before * 8 + 5) / 6, to = (before + len) * 8 / 6;

    if (to - from < BASE64_MIN)
        return;
    strbuf_init(&plain, len + 2);
    strbuf_init(&text, (len + 6) * 4 / 3 + 4);
    strbuf_add(&plain, zero, before);
    strbuf_add(&plain, value, len);
    base64_encode(&text, plain.buf, plain.len);
    add_pattern(s, FORM_PLAIN, text.buf + from, to - from, true);
    bool other = false;
    for (size_t i = from; i < to; i++) {
        if (text.buf[i] != '+' && text.buf[i] != '/')
            continue;
        text.buf[i] = text.buf[i] == '+' ? '-' : '_';
        other = true;
    }
    if (other)
        add_pattern(s, FORM_PLAIN, text.buf + from, to - from, true);
    explicit_bzero(plain.buf, plain.len);
    explicit_bzero(text.buf, text.len);
}

struct scrub *scrub_new(void)
{
    return xcalloc(1, sizeof(struct scrub));
}

void scrub_free(struct scrub *s)
{
    struct pattern *next;

    if (!s)
        return;
    for (struct pattern *p = s->patterns; p; p = next) {
        next = p->next;
        if (p->p == p->own)
            explicit_bzero(p->own, p->len);
        free(p);
    }
    free(s);
}

bool scrub_add(struct scrub *s, const void *value, size_t len)
{
    assert(len <= SCRUB_VALUE_MAX);
    for (const struct pattern *p = s->patterns; p; p = p->next)
        if (p->form == FORM_PERCENT && p->len == len && memcmp(p->p, value, len) == 0)
            return false;
    if (len < SCRUB_VALUE_MIN)
        return true;
    add_pattern(s, FORM_PERCENT, value, len, false);
    /* %25 in the value itself is read as an encoded % by the form above. */
    if (memchr(value, '%', len))
        add_pattern(s, FORM_PLAIN, value, len, false);
    for (size_t before = 0; before < 3; before++)
        add_base64(s, value, len, before);
    return true;
}

/* ---- looking --------------------------------------------------------------------------------- */

#define NEEDS_MORE (-1)

static int hex(unsigned char c)
{
    unsigned char lower = c | 0x20;

    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* How many bytes of t stand for the byte c; 0: they do not; NEEDS_MORE. */
static ssize_t match_byte(unsigned char c, const unsigned char *t, size_t len)
{
    if (len == 0)
        return NEEDS_MORE;
    if (t[0] == '%') {
        if (len >= 2 && hex(t[1]) != c >> 4)
            return c == '%';
        if (len >= 3)
            return hex(t[2]) == (c & 15) ? 3 : c == '%';
        return NEEDS_MORE;
    }
    return t[0] == c || (c == ' ' && t[0] == '+');
}

/* How long the match is that begins at t; 0: there is none; NEEDS_MORE: there could be. */
static ssize_t match(const struct pattern *p, const unsigned char *t, size_t len)
{
    size_t at = 0;

    if (p->form == FORM_PLAIN) {
        size_t n = len < p->len ? len : p->len;

        if (memcmp(p->p, t, n) != 0)
            return 0;
        return n == p->len ? (ssize_t)n : NEEDS_MORE;
    }
    for (size_t i = 0; i < p->len; i++) {
        ssize_t n = match_byte(p->p[i], t + at, len - at);

        if (n <= 0)
            return n;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static bool may_begin(const struct scrub *s, const unsigned char *t, size_t len)
{
    unsigned h;

    if (len < 2)
        return s->first[t[0] / 64] >> t[0] % 64 & 1;
    h = pair_hash(t[0], t[1]);
    return s->pairs[h / 64] >> h % 64 & 1;
}

/* The longest match; NEEDS_MORE if it could be longer with what is to come. */
static ssize_t longest(const struct scrub *s, const unsigned char *t, size_t len, bool last)
{
    ssize_t best = 0;

    for (const struct pattern *p = s->patterns; p; p = p->next) {
        ssize_t n = match(p, t, len);

        if (n == NEEDS_MORE && !last)
            return NEEDS_MORE;
        if (n > best)
            best = n;
    }
    return best;
}

static void put(struct strbuf *out, const unsigned char *t, size_t len, size_t *masked)
{
    static const char stars[] = "****************************************************************";

    while (len > 0 && *masked > 0) {
        size_t n = len < *masked ? len : *masked;

        n = n < sizeof stars - 1 ? n : sizeof stars - 1;
        strbuf_add(out, stars, n);
        *masked -= n;
        t += n;
        len -= n;
    }
    strbuf_add(out, t, len);
}

/* Returns how many bytes it is done with. */
static size_t scan(const struct scrub *s, const unsigned char *t, size_t len, bool last,
                   size_t *masked, struct strbuf *out)
{
    size_t done = 0, at;

    for (at = 0; at < len; at++) {
        ssize_t n;

        if (!may_begin(s, t + at, len - at))
            continue;
        n = longest(s, t + at, len - at, last);
        if (n == NEEDS_MORE)
            break;
        if (n == 0)
            continue;
        put(out, t + done, at - done, masked);
        done = at;
        if ((size_t)n > *masked)
            *masked = (size_t)n;
    }
    put(out, t + done, at - done, masked);
    return at;
}

void scrub_stream_init(struct scrub_stream *st)
{
    *st = (struct scrub_stream){0};
    strbuf_init(&st->held, HELD_MAX);
}

void scrub_stream_done(struct scrub_stream *st)
{
    strbuf_done(&st->held);
}

void scrub_feed(const struct scrub *s, struct scrub_stream *st, const char *p, size_t len,
                bool last, struct strbuf *out)
{
    const size_t step = HELD_MAX - 3 * SCRUB_VALUE_MAX;

    p = p ? p : "";
    /* What is held is at most what a secret can take; a step fits beside it. */
    for (;;) {
        size_t n = len < step ? len : step;
        const char *t = p;
        size_t t_len = n, done;

        if (st->held.len > 0) {
            strbuf_add(&st->held, p, n);
            t = st->held.buf;
            t_len = st->held.len;
        }
        p += n;
        len -= n;
        done = scan(s, (const unsigned char *)t, t_len, last && len == 0, &st->masked, out);
        if (st->held.len > 0)
            strbuf_consume(&st->held, done);
        else
            strbuf_add(&st->held, t + done, t_len - done);
        if (len == 0)
            return;
    }
}

void scrub_text(const struct scrub *s, const char *p, size_t len, struct strbuf *out)
{
    size_t masked = 0;

    scan(s, (const unsigned char *)p, len, true, &masked, out);
}
