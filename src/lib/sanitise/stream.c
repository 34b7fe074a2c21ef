/* A stream: a window over the text. Text that is decided goes out.
 *
 *   | context | held: not decided |
 *             ^ done
 *
 * Context is text that has gone out already; it is kept because a find may depend on the text
 * before it. It reaches back to the beginning of the line at most. If held text was let go early
 * (sanitise_flush), a find may begin in the context: then the rest of the find is replaced, which
 * is as much as can still be done. */

#include "lib/sanitise/impl.h"

#define CONTEXT   AHEAD
#define LINE_MAX_ SANITISE_HOLD /* what custom patterns see at once */

struct sanitise_stream {
    struct sanitiser *s;
    bool counts_on_it; /* it holds a reference to the sanitiser */
    enum sanitise_mode mode;
    struct sanitise_counts counts;
    struct strbuf window;
    size_t done;     /* of the window, as raw text */
    bool after_mark; /* the last thing that went out was a mark */
    enum tail tail;  /* the tail of a find that goes on */
    bool in_run;     /* state of TAIL_PEM */
    /* Whether the place quoted_to is in a string, if this is JSON. Strings end with the line. */
    bool in_string;
    size_t quoted_to; /* a place in the view */
    /* For custom patterns: the line so far, with the marks in it. */
    struct strbuf line;
    struct mark *marks;
    size_t n_marks, marks_cap;
    struct strbuf sink; /* report-only: what would have gone out */
};

static const uint16_t tail_classes[TAIL_MAX_] = {
    [TAIL_TOKEN] = CC_TOKEN, [TAIL_DOTTED] = CC_TOKEN | CC_DOT, [TAIL_BASE64] = CC_TOKEN | CC_B64,
    [TAIL_URL] = CC_ADDR,    [TAIL_URLS] = CC_ADDR | CC_COMMA,
};

void finds_add(struct finds *f, struct find one)
{
    f->of = xgrow(f->of, f->n, &f->cap, sizeof(f->of[0]));
    f->of[f->n++] = one;
}

void find_add(struct finds *f, size_t start, size_t end, enum sanitise_kind kind, enum tail tail)
{
    finds_add(f, (struct find){.start = (uint32_t)start,
                               .end = (uint32_t)end,
                               .kind = (uint8_t)kind,
                               .tail = (uint8_t)tail});
}

/* ---- what goes out --------------------------------------------------------------------------- */

static void remember_mark(struct sanitise_stream *st, size_t start, size_t end)
{
    st->marks = xgrow(st->marks, st->n_marks, &st->marks_cap, sizeof(st->marks[0]));
    st->marks[st->n_marks++] = (struct mark){(uint32_t)start, (uint32_t)end};
}

/* Lets the first n bytes of the line go out: they are complete. */
static void line_out(struct sanitise_stream *st, size_t n, struct strbuf *out)
{
    size_t k = 0, left = 0;

    while (k < st->n_marks && st->marks[k].end <= n)
        k++;
    custom_line(st->s->custom, st->line.buf, n, st->marks, k, out, &st->counts);
    strbuf_consume(&st->line, n);
    for (; k < st->n_marks; k++, left++)
        st->marks[left] =
            (struct mark){st->marks[k].start - (uint32_t)n, st->marks[k].end - (uint32_t)n};
    st->n_marks = left;
}

/* Where to cut a line that is too long: at a blank or a sign near its end, and not in a mark. */
static size_t cut_place(const struct sanitise_stream *st)
{
    size_t n = LINE_MAX_;

    for (size_t i = LINE_MAX_; i > LINE_MAX_ - AHEAD; i--) {
        if (strchr(" \t,;\"'", st->line.buf[i - 1])) {
            n = i;
            break;
        }
    }
    for (size_t i = 0; i < st->n_marks; i++) {
        if (st->marks[i].start < n && st->marks[i].end > n)
            return st->marks[i].start;
    }
    return n;
}

static void lines_out(struct sanitise_stream *st, struct strbuf *out)
{
    for (;;) {
        const char *newline = memchr(st->line.buf, '\n', st->line.len);
        size_t n = newline ? (size_t)(newline - st->line.buf) : st->line.len;
        if (n >= LINE_MAX_) {
            line_out(st, cut_place(st), out);
        } else if (newline) {
            line_out(st, n, out);
            strbuf_addch(out, '\n');
            strbuf_consume(&st->line, 1);
            for (size_t i = 0; i < st->n_marks; i++) {
                st->marks[i].start--;
                st->marks[i].end--;
            }
        } else {
            return;
        }
    }
}

static void text_out(struct sanitise_stream *st, const char *text, size_t len, struct strbuf *out)
{
    if (!len)
        return;
    st->after_mark = false;
    if (!st->s->custom) {
        strbuf_add(out, text, len);
        return;
    }
    /* In pieces, so that the line never grows beyond its bound. */
    while (len) {
        size_t n = len < LINE_MAX_ ? len : LINE_MAX_;
        strbuf_add(&st->line, text, n);
        lines_out(st, out);
        text += n;
        len -= n;
    }
}

/* Whether a place is in a JSON string. Goes on from the place of the last call. */
static bool in_string(struct sanitise_stream *st, const struct view *v, size_t at)
{
    const unsigned char *from = v->p + st->quoted_to;

    if (at <= st->quoted_to)
        return st->in_string;
    const unsigned char *newline = memrchr(from, '\n', at - st->quoted_to);
    if (newline) {
        st->in_string = false;
        from = newline;
    }
    for (; from < v->p + at; from++)
        st->in_string ^= *from == '"';
    st->quoted_to = at;
    return st->in_string;
}

static void mark_out(struct sanitise_stream *st, const struct view *v, const struct find *f,
                     struct strbuf *out)
{
    struct strbuf *to = st->s->custom ? &st->line : out;
    size_t start = to->len, len = 0;
    const char *quote = "\"";

    st->after_mark = true;
    st->counts.of[f->kind]++;
    if (f->quote == QUOTE_LIST) {
        len = !in_string(st, v, f->start);
    } else if (f->quote) {
        /* A quote as the key has it, escaped or not. */
        quote = st->window.buf + view_raw(v, f->quote);
        len = view_raw(v, f->quote + 1) - view_raw(v, f->quote);
    }
    strbuf_add(to, quote, len);
    mark_add(to, builtin_name(f->kind));
    strbuf_add(to, quote, len);
    if (st->s->custom) {
        remember_mark(st, start, to->len);
        lines_out(st, out);
    }
}

/* ---- what is decided ------------------------------------------------------------------------- */

/* Where the rest of a find ends. If it goes on to the end of the window, st->tail says so. */
static size_t swallow(struct sanitise_stream *st, const struct view *v, size_t at, enum tail tail)
{
    bool over = false;

    if (tail == TAIL_PEM)
        at = pem_swallow(v, at, &st->in_run, &over);
    else if (tail != TAIL_NONE)
        at += view_span(v, at, tail_classes[tail], v->n);
    st->tail = over || (tail != TAIL_PEM && at < v->n) ? TAIL_NONE : tail;
    return at;
}

static int by_place(const void *a, const void *b)
{
    const struct find *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->kind > y->kind ? -1 : x->kind < y->kind; /* a JWT rather than a nameless key */
}

/* The place up to which everything is decided. */
static size_t decided(const struct view *v, const struct finds *f)
{
    size_t line = v->n, limit = v->n > AHEAD ? v->n - AHEAD : 0;

    if (v->final)
        return v->n;
    while (line > limit && v->p[line - 1] != '\n' && v->p[line - 1] != '\r')
        line--;
    limit = line;
    for (size_t i = 0; i < f->n; i++) {
        if (f->of[i].more && f->of[i].start < limit)
            limit = f->of[i].start;
    }
    return limit;
}

/* Lets the window go out up to the decided place, with marks in place of finds. */
static void commit(struct sanitise_stream *st, const struct view *v, struct finds *f,
                   struct strbuf *out)
{
    size_t limit = decided(v, f);

    if (f->n > 1)
        qsort(f->of, f->n, sizeof(*f->of), by_place);
    for (size_t i = 0; i < f->n && f->of[i].start < limit; i++) {
        const struct find *one = &f->of[i];
        size_t start = view_raw(v, one->start);
        enum tail before = st->tail;
        if (one->tail == TAIL_NONE && view_raw(v, one->end) <= st->done)
            continue;
        st->in_run = false;
        size_t end = view_raw(v, swallow(st, v, one->end, one->tail));
        if (end <= st->done) {
            st->tail = before;
            continue;
        }
        if (start > st->done)
            text_out(st, st->window.buf + st->done, start - st->done, out);
        if (start >= st->done || !st->after_mark)
            mark_out(st, v, one, out);
        st->done = end;
        if (st->tail != TAIL_NONE)
            return;
    }
    size_t end = view_raw(v, limit);
    if (end > st->done) {
        text_out(st, st->window.buf + st->done, end - st->done, out);
        st->done = end;
    }
}

/* Forgets what no decision needs any more. */
static void slide(struct sanitise_stream *st, const struct view *v)
{
    size_t done = view_index(v, st->done), keep = done;

    while (keep > 0 && done - keep < CONTEXT && v->p[keep - 1] != '\n' && v->p[keep - 1] != '\r')
        keep--;
    in_string(st, v, done);
    st->quoted_to -= keep;
    size_t raw = view_raw(v, keep);
    if (raw > st->done) /* a flush has cut an escape */
        raw = st->done;
    strbuf_consume(&st->window, raw);
    st->done -= raw;
}

static void look(struct sanitise_stream *st, bool final, struct strbuf *out)
{
    struct sanitiser *s = st->s;
    struct view v;

    view_make(&v, &s->space, st->window.buf, st->window.len, final);
    if (st->tail != TAIL_NONE)
        st->done = view_raw(&v, swallow(st, &v, view_index(&v, st->done), st->tail));
    if (st->tail == TAIL_NONE) {
        s->finds.n = 0;
        patterns_scan(s, &v, &s->finds);
        commit(st, &v, &s->finds, out);
    }
    /* A key that goes on beyond the held text is let go. */
    if (final && st->done < st->window.len) {
        text_out(st, st->window.buf + st->done, st->window.len - st->done, out);
        st->done = st->window.len;
    }
    slide(st, &v);
}

static void run(struct sanitise_stream *st, const char *data, size_t len, struct strbuf *out)
{
    while (len) {
        size_t n = WINDOW_MAX - st->window.len;
        strbuf_reset(&st->sink);
        n = len < n ? len : n;
        strbuf_add(&st->window, data, n);
        data += n;
        len -= n;
        look(st, false, out);
    }
}

/* ---- the interface --------------------------------------------------------------------------- */

struct sanitise_stream *sanitise_stream_new(struct sanitiser *s, enum sanitise_mode mode)
{
    /* It does not count on the sanitiser if it is `own`, which is the first stream made. */
    struct sanitise_stream *st =
        NEW(struct sanitise_stream, .s = s, .counts_on_it = s->own != NULL, .mode = mode);

    s->refs += st->counts_on_it;
    strbuf_init(&st->window, WINDOW_MAX);
    strbuf_init(&st->line, 3 * LINE_MAX_);
    strbuf_init(&st->sink, 8 * WINDOW_MAX);
    return st;
}

void sanitise_stream_free(struct sanitise_stream *st)
{
    if (!st)
        return;
    strbuf_done(&st->window);
    strbuf_done(&st->line);
    strbuf_done(&st->sink);
    free(st->marks);
    if (st->counts_on_it)
        sanitiser_free(st->s);
    free(st);
}

void stream_restart(struct sanitise_stream *st, enum sanitise_mode mode)
{
    st->mode = mode;
    st->counts = (struct sanitise_counts){0};
    strbuf_reset(&st->window);
    strbuf_reset(&st->line);
    st->done = st->n_marks = st->quoted_to = 0;
    st->tail = TAIL_NONE;
    st->after_mark = st->in_run = st->in_string = false;
}

void sanitise_feed(struct sanitise_stream *st, const char *data, size_t len, struct strbuf *out)
{
    if (st->mode != SANITISE_ENFORCE)
        strbuf_add(out, data, len);
    if (st->mode == SANITISE_OFF)
        return;
    run(st, data, len, st->mode == SANITISE_REPORT ? &st->sink : out);
}

void sanitise_flush(struct sanitise_stream *st, struct strbuf *out)
{
    if (st->mode == SANITISE_OFF)
        return;
    if (st->mode == SANITISE_REPORT) {
        strbuf_reset(&st->sink);
        out = &st->sink;
    }
    if (st->window.len > st->done)
        look(st, true, out);
    if (st->line.len)
        line_out(st, st->line.len, out);
}

bool sanitise_holds(const struct sanitise_stream *st)
{
    return st->mode == SANITISE_ENFORCE && (st->window.len > st->done || st->line.len);
}

const struct sanitise_counts *sanitise_stream_counts(const struct sanitise_stream *st)
{
    return &st->counts;
}
