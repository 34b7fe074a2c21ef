#include "lib/text/strbuf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAP 64

/* buf points here before the first allocation. Nobody writes to it, since cap is 0 then. */
static char empty[1];

struct strbuf strbuf_upto(size_t max)
{
    /* One byte is kept for the NUL, and no object can be larger than PTRDIFF_MAX. */
    size_t largest = PTRDIFF_MAX - 1;

    return (struct strbuf){.buf = empty, .max = max < largest ? max : largest};
}

void strbuf_init(struct strbuf *s, size_t max)
{
    *s = strbuf_upto(max);
}

void strbuf_done(struct strbuf *s)
{
    if (s->cap > 0)
        free(s->buf);
    strbuf_init(s, s->max);
}

void strbuf_reset(struct strbuf *s)
{
    s->len = 0;
    s->truncated = false;
    if (s->cap > 0)
        s->buf[0] = '\0';
}

/* Makes room for up to `more` bytes and the NUL. Returns how many of them fit; if not all do, the
 * buffer is marked as truncated. */
static size_t make_room(struct strbuf *s, size_t more)
{
    if (s->truncated)
        return 0;
    if (more > s->max - s->len) {
        more = s->max - s->len;
        s->truncated = true;
    }

    size_t need = s->len + more + 1;
    if (need <= s->cap)
        return more;

    size_t cap = s->cap > 0 ? s->cap : FIRST_CAP;
    while (cap < need)
        cap = cap > s->max / 2 ? s->max + 1 : cap * 2;

    char *grown = realloc(s->cap > 0 ? s->buf : NULL, cap);
    if (!grown) {
        s->truncated = true;
        return 0;
    }
    s->buf = grown;
    s->cap = cap;
    s->buf[s->len] = '\0';
    return more;
}

void strbuf_reserve(struct strbuf *s)
{
    make_room(s, s->max - s->len);
}

void strbuf_wipe(struct strbuf *s)
{
    if (s->cap > 0)
        explicit_bzero(s->buf, s->cap);
    strbuf_done(s);
}

void strbuf_add(struct strbuf *s, const void *data, size_t len)
{
    size_t n = len > 0 ? make_room(s, len) : 0;

    if (n == 0)
        return;
    memcpy(s->buf + s->len, data, n);
    s->len += n;
    s->buf[s->len] = '\0';
}

void strbuf_addstr(struct strbuf *s, const char *str)
{
    strbuf_add(s, str, strlen(str));
}

void strbuf_addch(struct strbuf *s, char c)
{
    strbuf_add(s, &c, 1);
}

void strbuf_addf(struct strbuf *s, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int want = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (want < 0)
        s->truncated = true;
    if (want > 0) {
        size_t n = make_room(s, (size_t)want);
        if (n > 0)
            vsnprintf(s->buf + s->len, n + 1, fmt, again);
        s->len += n;
    }
    va_end(again);
}

void strbuf_consume(struct strbuf *s, size_t n)
{
    assert(n <= s->len);
    if (n == 0)
        return;
    s->len -= n;
    memmove(s->buf, s->buf + n, s->len + 1);
}

char *strbuf_detach(struct strbuf *s, size_t *ret_len)
{
    char *out = s->cap > 0 ? s->buf : xstrdup("");

    if (ret_len)
        *ret_len = s->len;
    s->buf = empty;
    s->len = 0;
    s->cap = 0;
    return out;
}
