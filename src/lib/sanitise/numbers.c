/* Finds numbers: looks at every run of digits once, at its length and the characters around it.
 *
 * As patterns of vectorscan, cards, phone numbers and addresses made of digits cost five times as
 * much as all the rest on tables of numbers (190 MB/s of CSV; 700 this way), because nothing in
 * them is rare. Code by hand looks at the length of a run and the character after it, and that
 * rules out nearly all runs. */
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/sanitise/impl.h"

#define RUN_MAX 34

#define BLOCK 64

/* A mask with a bit for each byte that is a digit. */
static uint64_t digits_of(const unsigned char p[BLOCK])
{
    uint64_t bits = 0;

#ifdef __SSE2__
    const __m128i zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9);
    for (unsigned i = 0; i < BLOCK; i += 16) {
        __m128i v = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + i)), zero);
        __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(v, nine), v);
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(digit) << i;
    }
#else
    for (unsigned i = 0; i < BLOCK; i++)
        bits |= (uint64_t)(p[i] >= '0' && p[i] <= '9') << i;
#endif
    return bits;
}

/* Whether the find stands where JSON, or a program's list, would have a number: after `"key":`, or
 * between the brackets and commas of a list, perhaps one to a line and indented. */
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

/* Whether the digits can be in the first group of an IPv6 address. Addresses in use begin with a
 * group of four, or with 64, or with ::ffff:. So times are none, nor other hexadecimal. */
static bool may_be_ipv6(const struct view *v, size_t from, size_t to)
{
    size_t start = from;

    if (view_at(v, from - 1) == ':')
        return cc_is(view_at(v, from - 2), CC_ALPHA);
    while (from - start < 4 && cc_is(view_at(v, start - 1), CC_HEX))
        start--;
    while (to - start < 5 && cc_is(view_at(v, to), CC_HEX))
        to++;
    return view_at(v, to) == ':' &&
           (to - start == 4 || (to - start == 2 && view_has(v, start, "64")));
}

/* True for most numbers: short, and followed by a character that no kind can have there, or by the
 * decimals of a fraction. */
static bool is_dull(const struct view *v, size_t to, size_t len, int before, int after)
{
    if (len > 6 || before == '+')
        return false;
    if (after == '.')
        return view_at(v, to + 2) != '.' && view_at(v, to + 3) != '.' && view_at(v, to + 4) != '.';
    return after != '-' && after != ' ' && after != ')';
}

static void look_at_run(const struct view *v, size_t from, size_t to, struct finds *out)
{
    size_t len = to - from;
    int before = view_at(v, from - 1), after = view_at(v, to);

    if (len <= 4 && (after == ':' || before == ':' || cc_is(after, CC_HEX)) &&
        may_be_ipv6(v, from, to) && number_ipv6(v, from, to, out))
        return;
    if (cc_is(before, CC_ALPHA) || before == '_') {
        if (len >= 2 && cc_is(before, CC_UPPER))
            number_iban(v, from, to, out);
        return;
    }
    if (is_dull(v, to, len, before, after))
        return;
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

static uint64_t digits_at(const struct view *v, size_t base)
{
    unsigned char last[BLOCK] = {0};

    if (v->n - base >= BLOCK)
        return digits_of(v->p + base);
    memcpy(last, v->p + base, v->n - base);
    return digits_of(last);
}

void numbers_scan(const struct view *v, struct finds *out)
{
    size_t start = 0;
    bool open = false; /* a run has begun in a block before */

    for (size_t base = 0; base < v->n; base += BLOCK) {
        uint64_t bits = digits_at(v, base);
        for (;;) {
            uint64_t edges = open ? ~bits : bits;
            if (!edges)
                break;
            unsigned at = (unsigned)__builtin_ctzll(edges);
            if (!open)
                start = base + at;
            else if (base + at - start <= RUN_MAX)
                look_at_run(v, start, base + at, out);
            open = !open;
            /* Clears the edges before `at`, which are done with. */
            bits = open ? bits | ((1ull << at) - 1) : bits & ~((1ull << at) - 1);
        }
    }
    if (open && v->n - start <= RUN_MAX)
        look_at_run(v, start, v->n, out);
}
