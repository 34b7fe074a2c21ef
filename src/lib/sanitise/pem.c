/* Finds private keys in PEM and in OpenPGP's armour: from BEGIN to END, over lines, as text with \n
 * in it, or as the strings of a program. The mark goes out when the body has begun; the body is
 * swallowed as it comes, so that its length does not matter.
 *
 * A body is headers (`DEK-Info: ...`), then runs of base64, each at least RUN_MIN long except the
 * last ones before END. Anything else ends the key, so that a key that was cut off does not take
 * the text after it along. */

#include "lib/sanitise/impl.h"

#define RUN_MIN    16
#define GAP_MAX    64
#define HEADER_MAX 256
#define NAME_MAX_  32
#define END_MAX    80
#define CC_BODY    (CC_ALNUM | CC_B64)

static const char end_line[] = "-----end ";

static size_t skip_gap(const struct view *v, size_t at)
{
    size_t n = 0;

    for (; n < GAP_MAX; n++) {
        int c = view_at(v, at + n);
        if (c <= 0 || !strchr(" \t\r\n\v\"',>|#*\2", c))
            break;
    }
    /* A plus between two strings, not one of base64. */
    if (n && view_at(v, at + n) == '+' && !cc_is(view_at(v, at + n + 1), CC_BODY))
        return skip_gap(v, at + n + 1);
    return at + n;
}

enum piece { PIECE_END, PIECE_HEADER, PIECE_RUN, PIECE_NONE, PIECE_WAIT };

/* Whether "-----END X-----" is at `at`; *ret: the place behind it. */
static enum piece at_end_line(const struct view *v, size_t at, size_t *ret)
{
    size_t n = 0;

    while (n < sizeof(end_line) - 1 && at + n < v->n &&
           (v->p[at + n] | 0x20) == (end_line[n] | 0x20))
        n++;
    if (n < sizeof(end_line) - 1)
        return at + n == v->n && !v->final ? PIECE_WAIT : PIECE_NONE;
    for (size_t i = at + n; i < at + END_MAX; i++) {
        if (i + 5 > v->n)
            return v->final ? PIECE_NONE : PIECE_WAIT;
        if (memcmp(v->p + i, "-----", 5) == 0) {
            *ret = i + 5;
            return PIECE_END;
        }
    }
    return PIECE_NONE;
}

/* Whether `Name: value` is at `at`; *ret: the end of its line. */
static enum piece at_header(const struct view *v, size_t at, size_t *ret)
{
    size_t name = view_span(v, at, CC_TOKEN, NAME_MAX_), i;

    if (name < NAME_MAX_ && at + name + 1 >= v->n && !v->final)
        return PIECE_WAIT;
    if (name == 0 || view_at(v, at + name) != ':' || view_at(v, at + name + 1) != ' ')
        return PIECE_NONE;
    for (i = at + name; i < at + HEADER_MAX; i++) {
        if (i >= v->n)
            return v->final ? PIECE_NONE : PIECE_WAIT;
        if (v->p[i] == '\n' || v->p[i] == '\r' || v->p[i] == ESCAPED_LINE) {
            *ret = i;
            return PIECE_HEADER;
        }
    }
    return PIECE_NONE;
}

/* The next piece of the body; *ret: where it ends. */
static enum piece next_piece(const struct view *v, size_t from, size_t *ret)
{
    size_t at = skip_gap(v, from);

    if (at >= v->n)
        return PIECE_WAIT;
    enum piece p = v->p[at] == '-' ? at_end_line(v, at, ret) : at_header(v, at, ret);
    if (p != PIECE_NONE)
        return p;
    size_t run = view_span(v, at, CC_BODY, HEADER_MAX);
    *ret = at + run;
    if (run >= RUN_MIN)
        return PIECE_RUN;
    if (at + run >= v->n)
        return PIECE_WAIT;
    /* Short runs are the last line, and the checksum of OpenPGP after it. */
    size_t next = at + run;
    for (int i = 0; run && i < 3; i++) {
        size_t begin = skip_gap(v, next);
        if (begin >= v->n)
            return PIECE_WAIT;
        p = at_end_line(v, begin, &next);
        if (p != PIECE_NONE) {
            *ret = next;
            return p;
        }
        next = begin + view_span(v, begin, CC_BODY, RUN_MIN);
        if (next >= v->n)
            return PIECE_WAIT;
        if (next == begin)
            break;
    }
    return PIECE_NONE;
}

size_t pem_swallow(const struct view *v, size_t at, bool *in_run, bool *ret_over)
{
    *ret_over = false;
    for (;;) {
        size_t end = at;
        if (*in_run) {
            at += view_span(v, at, CC_BODY, v->n);
            if (at >= v->n)
                return at;
            *in_run = false;
        }
        enum piece p = next_piece(v, at, &end);
        if (p == PIECE_WAIT)
            return v->final && skip_gap(v, at) < v->n ? v->n : at;
        *ret_over = p == PIECE_END || p == PIECE_NONE;
        if (p == PIECE_NONE)
            return at;
        at = end;
        if (p == PIECE_END)
            return at;
        *in_run = p == PIECE_RUN;
    }
}

void spot_pem(const struct view *v, size_t to, struct finds *out)
{
    size_t start = to - 5, end;

    while (to - start < 64 &&
           (cc_is(view_at(v, start - 1), CC_UPPER | CC_DIGIT) || view_at(v, start - 1) == ' '))
        start--;
    if (start < 5 || memcmp(v->p + start - 5, "-----BEGIN ", 11) != 0)
        return;
    start -= 5;
    enum piece p = next_piece(v, to, &end);
    /* At the end of the text the first line alone is enough, because the rest may come yet. */
    if (p == PIECE_NONE || (p == PIECE_WAIT && v->final && skip_gap(v, to) < v->n))
        return;
    finds_add(out, (struct find){.start = (uint32_t)start,
                                 .end = (uint32_t)to,
                                 .kind = KIND_PRIVATE_KEY,
                                 .tail = TAIL_PEM,
                                 .more = p == PIECE_WAIT && !v->final});
}
