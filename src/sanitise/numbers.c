/* Numbers: every run of digits is looked at once, by its length and what stands around it.
 *
 * As patterns of vectorscan, cards, phone numbers and addresses made of digits cost five times as
 * much as all the rest on tables of numbers (190 MB/s of CSV; 1,000 this way), because nothing in
 * them is rare. By hand a run is told apart by its length and the character after it, and nearly
 * all are done with there. */
#include <string.h>

#include "sanitise/impl.h"

#define RUN_MAX 34

#define ONES (~0ull / 255)

/* Of eight bytes: the high bit of those that are digits. */
static uint64_t digit_bits(const unsigned char *p)
{
    uint64_t x, seven;

    memcpy(&x, p, sizeof(x));
    seven = x & ONES * 0x7f;
    /* Above '/' and below ':'. */
    return (seven + ONES * (0x7f - '/')) & ~(seven + ONES * (0x80 - ':')) & ~x & ONES * 0x80;
}

static size_t first_byte(uint64_t bits)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(bits) / 8;
#else
    return (size_t)__builtin_clzll(bits) / 8;
#endif
}

/* The first digit from i on, or the first that is none. */
static size_t next(const struct view *v, size_t i, bool digit)
{
    uint64_t other = digit ? 0 : ONES * 0x80;

    for (; i + 8 <= v->n; i += 8) {
        uint64_t bits = digit_bits(v->p + i) ^ other;
        if (bits)
            return i + first_byte(bits);
    }
    while (i < v->n && cc_is(v->p[i], CC_DIGIT) != digit)
        i++;
    return i;
}

/* Where JSON, or a program's list, would have a number: after `"key":`, or between the brackets and
 * commas of a list, perhaps one to a line and indented. */
static uint32_t quote_for(const struct view *v, size_t start, size_t end)
{
    size_t before = start, after = end;

    while (start - before < 64 && (view_at(v, before - 1) == ' ' || view_at(v, before - 1) == '\t'))
        before--;
    while (after - end < 8 && view_at(v, after) == ' ')
        after++;
    int left = view_at(v, before - 1), right = view_at(v, after);
    bool line_ends = right == '\n' || right == '\r' || right < 0;
    bool list = right == ',' || right == ']';
    if (left == ':') {
        int quote = view_at(v, before - 2);
        bool key = quote == '"' || quote == '\'' || quote == ESCAPED_QUOTE;
        return key && (line_ends || list || right == '}') ? (uint32_t)before - 2 : 0;
    }
    if (left == '[' || left == ',')
        list = list || (left == ',' && line_ends);
    else
        list = before < start && (left == '\n' || left == '\r' || left < 0) &&
               (right == ',' || line_ends);
    return list ? QUOTE_LIST : 0;
}

void number_add(const struct view *v, size_t start, size_t end, enum sanitise_kind kind,
                struct finds *out)
{
    bool plain = view_span(v, start, CC_DIGIT, end - start) == end - start;

    finds_add(out, (struct find){.start = (uint32_t)start,
                                 .end = (uint32_t)end,
                                 .kind = (uint8_t)kind,
                                 .quote = plain ? quote_for(v, start, end) : 0});
}

/* Whether the digits are in the first group of an IPv6 address that has any. */
static bool is_group(const struct view *v, size_t from, size_t to)
{
    int before = view_at(v, from - 1);

    if (before == ':')
        return cc_is(view_at(v, from - 2), CC_ALPHA);
    while (to - from < 4 && cc_is(view_at(v, to), CC_HEX))
        to++;
    return view_at(v, to) == ':' && to - from <= 4;
}

/* Most numbers: short, and followed by what stands in nothing that is looked for, or by the
 * decimals of a fraction. */
static bool is_dull(const struct view *v, size_t to, size_t len, int before, int after)
{
    if (len > 6 || cc_is(before, CC_ALPHA) || before == '+')
        return false;
    if (after == '.')
        return view_at(v, to + 2) != '.' && view_at(v, to + 3) != '.' && view_at(v, to + 4) != '.';
    return after != '-' && after != ' ' && after != ')' && after != ':' && !cc_is(after, CC_HEX);
}

static void look_at_run(const struct view *v, size_t from, size_t to, struct finds *out)
{
    size_t len = to - from;
    int before = view_at(v, from - 1), after = view_at(v, to);

    if (is_dull(v, to, len, before, after))
        return;
    if (is_group(v, from, to) && number_ipv6(v, from, to, out))
        return;
    if (cc_is(before, CC_ALPHA) || before == '_') {
        if (len >= 2 && cc_is(before, CC_UPPER))
            number_iban(v, from, to, out);
        return;
    }
    if (after == '.' && len <= 3 && number_ipv4(v, from, to, out))
        return;
    if (len == 7 && cc_is(after, CC_ALPHA) && number_ppsn(v, from, to, out))
        return;
    if ((len >= 12 || len == 4) && number_card(v, from, to, out))
        return;
    if ((len == 3 || len == 9) && number_ssn(v, from, to, out))
        return;
    if (after == ':' && len >= 8 && len <= 10 && number_bot_key(v, from, to, out))
        return;
    number_phone(v, from, to, out);
}

void numbers_scan(const struct view *v, struct finds *out)
{
    for (size_t i = next(v, 0, true), end; i < v->n; i = next(v, end, true)) {
        end = next(v, i, false);
        if (end - i <= RUN_MAX)
            look_at_run(v, i, end, out);
    }
}
