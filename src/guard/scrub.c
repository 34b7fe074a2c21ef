#include "guard/scrub.h"

#include <assert.h>

#include "lib/base/list.h"
#include "lib/text/base64.h"
#include "guard/scrub_decode.h"

#define STEP       SCRUB_VALUE_MAX /* bytes of a feed that are handled at a time */
#define BASE64_MIN 6               /* least characters that depend on the secret alone */
#define GAP_MAX    64              /* bytes that may be left out between two symbols */
#define LITTLE     2               /* symbols that may go out while a match is unclear */

struct pattern {
    struct list link;
    enum scrub_view view;
    size_t index;           /* among the patterns of its view */
    const unsigned char *p; /* the secret's own bytes, or a copy in another form */
    size_t len;
    size_t part;         /* a beginning of so many symbols counts too */
    size_t bytes_max;    /* most bytes of the stream that a match can take */
    unsigned char *own;  /* the copy, or NULL */
    uint16_t *fall_back; /* [k]: of k matched symbols, how many still match without the first */
};

struct scrub {
    struct list patterns[VIEW_MAX_];
    size_t n[VIEW_MAX_];
    size_t ring[VIEW_MAX_];     /* ring's size: a power of two that holds the longest pattern */
    bool leads[VIEW_MAX_][256]; /* symbols that a pattern begins with */
    bool idle[256];             /* bytes at which no match and no escape can begin */
};

/* The symbol that a byte stands for in a view. */
static unsigned char symbol(enum scrub_view view, unsigned char c)
{
    switch (view) {
    case VIEW_BASE64:
        return c == '-' ? '+' : c == '_' ? '/' : c;
    case VIEW_TEXT:
        if (c == '+')
            return ' ';
        break;
    case VIEW_RAW:
    case VIEW_HEX:
    case VIEW_MAX_:
        break;
    }
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool left_out(enum scrub_view view, unsigned char c)
{
    if (view == VIEW_BASE64 || view == VIEW_HEX)
        return c == '\r' || c == '\n' || c == ' ' || c == '\t' || c == '\0';
    return view == VIEW_TEXT && c == '\0';
}

/* ---- patterns -------------------------------------------------------------------------------- */

static unsigned char at(const struct pattern *p, size_t i)
{
    return symbol(p->view, p->p[i]);
}

static void find_falls(struct pattern *p)
{
    size_t k = 0;

    p->fall_back = xcalloc(p->len + 1, sizeof(*p->fall_back));
    for (size_t i = 1; i < p->len; i++) {
        while (k > 0 && at(p, k) != at(p, i))
            k = p->fall_back[k];
        k += at(p, k) == at(p, i);
        p->fall_back[i + 1] = (uint16_t)k;
    }
}

static void add_lead(struct scrub *s, const struct pattern *p)
{
    s->leads[p->view][at(p, 0)] = true;
    for (unsigned c = 0; c < 256; c++)
        if (symbol(p->view, (unsigned char)c) == at(p, 0))
            s->idle[c] = false;
}

/* own: a copy of len bytes, which is taken over; NULL: p stays where it is. */
static void add_pattern(struct scrub *s, enum scrub_view view, size_t value_len, const void *p,
                        size_t len, unsigned char *own)
{
    size_t half = len / 2 + 1;
    struct pattern *n = NEW(struct pattern, .view = view, .index = s->n[view]++, .p = own ? own : p,
                            .len = len, .part = half < SCRUB_PART_MIN ? SCRUB_PART_MIN : half,
                            .bytes_max = value_len * SCRUB_STRETCH, .own = own);

    list_push(&s->patterns[view], &n->link);
    find_falls(n);
    add_lead(s, n);
    while (s->ring[view] < len)
        s->ring[view] *= 2;
}

/* Adds the base64 form of a value that has `before` bytes before it, up to two: the characters that
 * depend on the value alone. */
static void add_base64(struct scrub *s, const void *value, size_t len, size_t before)
{
    static const char zero[2];
    AUTO(strbuf_done) struct strbuf plain = {0}, text = {0};
    size_t from = (before * 8 + 5) / 6, to = (before + len) * 8 / 6;
    unsigned char *own;

    if (to - from < BASE64_MIN)
        return;
    strbuf_init(&plain, len + 2);
    strbuf_init(&text, (len + 6) * 4 / 3 + 4);
    strbuf_add(&plain, zero, before);
    strbuf_add(&plain, value, len);
    base64_encode(&text, plain.buf, plain.len);
    own = xcalloc(1, to - from);
    memcpy(own, text.buf + from, to - from);
    add_pattern(s, VIEW_BASE64, len, NULL, to - from, own);
    explicit_bzero(plain.buf, plain.len);
    explicit_bzero(text.buf, text.len);
}

static void add_hex(struct scrub *s, const unsigned char *value, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char *own = xcalloc(2, len);

    for (size_t i = 0; i < len; i++) {
        own[2 * i] = (unsigned char)digits[value[i] >> 4];
        own[2 * i + 1] = (unsigned char)digits[value[i] & 15];
    }
    add_pattern(s, VIEW_HEX, len, NULL, 2 * len, own);
}

struct scrub *scrub_new(void)
{
    struct scrub *s = xcalloc(1, sizeof(*s));

    memset(s->idle, true, sizeof(s->idle));
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++)
        s->ring[v] = 1;
    return s;
}

static void pattern_free(struct pattern *p)
{
    if (p->own)
        explicit_bzero(p->own, p->len);
    free(p->own);
    explicit_bzero(p->fall_back, p->len * sizeof(*p->fall_back));
    free(p->fall_back);
    free(p);
}

void scrub_free(struct scrub *s)
{
    if (!s)
        return;
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++)
        LIST_EACH(struct pattern, p, &s->patterns[v], link)
            pattern_free(p);
    free(s);
}

static bool is_known(const struct scrub *s, const void *value, size_t len)
{
    return LIST_FIND(const struct pattern, p, &s->patterns[VIEW_RAW], link,
                     p->len == len && memcmp(p->p, value, len) == 0);
}

void scrub_add(struct scrub *s, const void *value, size_t len)
{
    assert(len <= SCRUB_VALUE_MAX);
    if (len < SCRUB_VALUE_MIN || is_known(s, value, len))
        return;
    add_pattern(s, VIEW_RAW, len, value, len, NULL);
    add_pattern(s, VIEW_TEXT, len, value, len, NULL);
    for (size_t before = 0; before < 3; before++)
        add_base64(s, value, len, before);
    add_hex(s, value, len);
    for (const char *c = SCRUB_ESCAPES; *c; c++)
        s->idle[(unsigned char)*c] = false;
}

/* ---- streams --------------------------------------------------------------------------------- */

void scrub_stream_init(struct scrub_stream *st, const struct scrub *s)
{
    *st = (struct scrub_stream){.scrub = s};
    strbuf_init(&st->held, SCRUB_HELD_MAX);
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++) {
        st->views[v].matched = xcalloc(s->n[v] + 1, sizeof(uint16_t));
        st->views[v].from = v == VIEW_RAW ? NULL : xcalloc(s->ring[v], sizeof(uint64_t));
    }
}

void scrub_stream_done(struct scrub_stream *st)
{
    if (!st->scrub)
        return;
    explicit_bzero(st->held.buf, st->held.len);
    strbuf_done(&st->held);
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++) {
        free(st->views[v].matched);
        free(st->views[v].from);
    }
    *st = (struct scrub_stream){0};
}

/* Where the last k symbols begin. */
static uint64_t begin_of(const struct scrub_stream *st, enum scrub_view view, size_t k)
{
    const struct scrub_view_state *v = &st->views[view];

    if (view == VIEW_RAW)
        return v->end - k;
    return v->from[(v->seen - k) & (st->scrub->ring[view] - 1)];
}

/* Writes asterisks over bytes [from, to) of the stream, as far as they have not gone out. */
static void mask(struct scrub_stream *st, uint64_t from, uint64_t to)
{
    /* Repeating text matches again and again, so only the new part is written. */
    if (from >= st->masked[0] && from <= st->masked[1])
        from = st->masked[1];
    else
        st->masked[0] = from;
    if (from < st->base)
        from = st->base;
    if (to <= from)
        return;
    memset(st->held.buf + (from - st->base), '*', (size_t)(to - from));
    st->masked[1] = to;
}

/* Ends a match that does not go on; what has matched may be enough of a secret as it is. */
static void give_up(struct scrub_stream *st, const struct pattern *p)
{
    struct scrub_view_state *v = &st->views[p->view];

    if (v->matched[p->index] >= p->part)
        mask(st, begin_of(st, p->view, v->matched[p->index]), v->end);
    v->matched[p->index] = 0;
}

static void give_up_view(struct scrub_stream *st, enum scrub_view view)
{
    LIST_EACH(const struct pattern, p, &st->scrub->patterns[view], link)
        give_up(st, p);
    st->views[view].active = 0;
}

/* Advances a pattern by the symbol c, the last one seen. end: where the symbols before it end. */
static void step(struct scrub_stream *st, const struct pattern *p, unsigned char c, uint64_t end)
{
    struct scrub_view_state *v = &st->views[p->view];
    size_t k = v->matched[p->index];

    if (k >= p->part && at(p, k) != c)
        mask(st, begin_of(st, p->view, k + 1), end);
    while (k > 0 && at(p, k) != c)
        k = p->fall_back[k];
    k += at(p, k) == c;
    if (k == p->len) {
        mask(st, begin_of(st, p->view, k), v->end);
        k = p->fall_back[k];
    }
    v->matched[p->index] = (uint16_t)k;
    if (k > 0 && v->end - begin_of(st, p->view, k) > p->bytes_max)
        give_up(st, p);
    v->active += v->matched[p->index] > 0;
}

/* Feeds a view the symbol that bytes [from, to) of the stream stand for. */
static void see(struct scrub_stream *st, enum scrub_view view, unsigned char byte, uint64_t from,
                uint64_t to)
{
    struct scrub_view_state *v = &st->views[view];
    unsigned char c = symbol(view, byte);
    uint64_t end = v->end;

    if (v->active == 0 && !st->scrub->leads[view][c])
        return;
    if (v->from)
        v->from[v->seen & (st->scrub->ring[view] - 1)] = from;
    v->seen++;
    v->end = to;
    v->gap = 0;
    v->active = 0;
    LIST_EACH(const struct pattern, p, &st->scrub->patterns[view], link)
        step(st, p, c, end);
}

/* Feeds all views n bytes that stand for one character. */
static void see_character(struct scrub_stream *st, const unsigned char *t, size_t n,
                          unsigned char c)
{
    uint64_t from = st->base + st->at;
    unsigned char raw[16];

    /* A copy, because one view may put asterisks over bytes that another has not read yet. */
    memcpy(raw, t, n);
    for (size_t i = 0; i < n; i++)
        see(st, VIEW_RAW, raw[i], from + i, from + i + 1);
    for (enum scrub_view v = VIEW_TEXT; v < VIEW_MAX_; v++) {
        if (!left_out(v, c))
            see(st, v, c, from, from + n);
        else if (st->views[v].active > 0 && (st->views[v].gap += (unsigned)n) > GAP_MAX)
            give_up_view(st, v);
    }
}

static bool is_active(const struct scrub_stream *st)
{
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++)
        if (st->views[v].active > 0)
            return true;
    return false;
}

static void read_held(struct scrub_stream *st, bool last)
{
    const unsigned char *t = (const unsigned char *)st->held.buf;
    size_t len = st->held.len;

    while (st->at < len) {
        unsigned char c;
        ssize_t n;

        if (!is_active(st)) {
            while (st->at < len && st->scrub->idle[t[st->at]])
                st->at++;
            if (st->at == len)
                return;
        }
        n = scrub_decode(t + st->at, len - st->at, &c);
        if (n == SCRUB_NEEDS_MORE) {
            if (!last)
                return;
            n = 1;
            c = t[st->at];
        }
        see_character(st, t + st->at, (size_t)n, c);
        st->at += (size_t)n;
    }
}

/* How many of the held bytes come before every match that has begun. */
static size_t clear_bytes(const struct scrub_stream *st)
{
    uint64_t clear = st->base + st->at;

    for (enum scrub_view v = 0; v < VIEW_MAX_; v++) {
        for (size_t i = 0; st->views[v].active > 0 && i < st->scrub->n[v]; i++) {
            size_t k = st->views[v].matched[i];
            uint64_t from = k > 0 ? begin_of(st, v, k) : clear;

            if (from < clear)
                clear = from;
        }
    }
    return (size_t)(clear - st->base);
}

static void release(struct scrub_stream *st, bool last, struct strbuf *out)
{
    size_t n;

    for (enum scrub_view v = 0; last && v < VIEW_MAX_; v++)
        give_up_view(st, v);
    n = clear_bytes(st);
    if (n > st->given)
        strbuf_add(out, st->held.buf + st->given, n - st->given);
    st->given = st->given > n ? st->given - n : 0;
    strbuf_consume(&st->held, n);
    st->base += n;
    st->at -= n;
}

void scrub_feed(struct scrub_stream *st, const char *p, size_t len, bool last, struct strbuf *out)
{
    do {
        size_t n = len < STEP ? len : STEP;

        if (n > 0) { /* p may be NULL if n is 0 */
            strbuf_add(&st->held, p, n);
            p += n;
        }
        len -= n;
        read_held(st, last && len == 0);
        release(st, last && len == 0, out);
    } while (len > 0);
}

bool scrub_holds_little(const struct scrub_stream *st)
{
    if (!st->scrub || st->held.len <= st->given)
        return false;
    for (enum scrub_view v = 0; v < VIEW_MAX_; v++)
        for (size_t i = 0; i < st->scrub->n[v]; i++)
            if (st->views[v].matched[i] > LITTLE)
                return false;
    return true;
}

void scrub_give(struct scrub_stream *st, struct strbuf *out)
{
    strbuf_add(out, st->held.buf + st->given, st->held.len - st->given);
    st->given = st->held.len;
}

void scrub_text(const struct scrub *s, const char *p, size_t len, struct strbuf *out)
{
    struct scrub_stream st;

    scrub_stream_init(&st, s);
    scrub_feed(&st, p, len, true, out);
    scrub_stream_done(&st);
}
