#include "lib/text/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX       60 /* bytes of a wrong input quoted in the error */
#define FRACTION_DIGITS 9  /* digits after the point that count */
#define FRACTION_ONE    1000000000u

/* Every error of this file reads: "<what> '<input>' <problem>". */
static int refuse(struct sg_error *e, const char *what, const char *s, const char *problem)
{
    size_t n = strnlen(s, SHOWN_MAX + 1);
    bool cut = n > SHOWN_MAX;

    if (cut)
        for (n = SHOWN_MAX; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    return err_invalid(e, "%s '%.*s%s' %s", what, (int)n, s, cut ? "..." : "", problem);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits at *s, one at least, and moves *s past them. -EINVAL without a digit, -ERANGE on
 * overflow. */
static int take_u64(const char **s, uint64_t *ret)
{
    uint64_t v = 0;

    if (!is_digit(**s))
        return -EINVAL;
    for (; is_digit(**s); (*s)++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**s - '0'), &v))
            return -ERANGE;
    *ret = v;
    return 0;
}

/* Takes "12" or "12.34". The fraction is in billionths; further digits are dropped. */
static int take_decimal(const char **s, uint64_t *ret_whole, uint32_t *ret_fraction)
{
    uint32_t fraction = 0;
    uint64_t whole;
    int r = take_u64(s, &whole);

    if (r < 0)
        return r;
    if (**s == '.') {
        uint32_t place = FRACTION_ONE / 10;
        (*s)++;
        if (!is_digit(**s))
            return -EINVAL;
        for (; is_digit(**s); (*s)++, place /= 10)
            fraction += (uint32_t)(**s - '0') * place;
    }
    *ret_whole = whole;
    *ret_fraction = fraction;
    return 0;
}

int parse_u64(const char *what, const char *s, uint64_t min, uint64_t max, uint64_t *ret,
              struct sg_error *e)
{
    char problem[128];
    const char *p = s;
    uint64_t v = 0;
    int r = take_u64(&p, &v);

    if (r == -EINVAL || (r == 0 && *p != '\0')) {
        snprintf(problem, sizeof(problem),
                 "is not a whole number: use digits only, from %" PRIu64 " to %" PRIu64, min, max);
        return refuse(e, what, s, problem);
    }
    if (r < 0 || v < min || v > max) {
        snprintf(problem, sizeof(problem),
                 "is out of range: use a number from %" PRIu64 " to %" PRIu64, min, max);
        return refuse(e, what, s, problem);
    }
    *ret = v;
    return 0;
}

/* The power of two that a size's suffix stands for, or -1. */
static int size_shift(const char *suffix)
{
    static const char letters[] = "KMGT";

    if (suffix[0] == '\0' || strcmp(suffix, "B") == 0)
        return 0;

    char upper = suffix[0] >= 'a' && suffix[0] <= 'z' ? (char)(suffix[0] - 'a' + 'A') : suffix[0];
    const char *at = strchr(letters, upper);
    const char *rest = suffix + 1;
    if (!at || (rest[0] != '\0' && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0))
        return -1;
    return 10 * (int)(at - letters + 1);
}

int parse_size(const char *what, const char *s, uint64_t *ret_bytes, struct sg_error *e)
{
    const char *p = s;
    uint64_t v = 0;
    int r = take_u64(&p, &v);
    int shift = r == 0 ? size_shift(p) : 0;

    if (r == -EINVAL || shift < 0)
        return refuse(e, what, s,
                      "is not a size: use a number with K, M, G or T, for example 512M");
    if (r < 0 || v > UINT64_MAX >> shift)
        return refuse(e, what, s, "is too large for a size: use at most 16777215T");
    *ret_bytes = v << shift;
    return 0;
}

/* Milliseconds that a duration's suffix stands for, or 0. */
static uint64_t duration_unit_ms(const char *suffix)
{
    static const struct {
        const char *suffix;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strcmp(suffix, units[i].suffix) == 0)
            return units[i].ms;
    return 0;
}

int parse_duration_ms(const char *what, const char *s, uint64_t *ret_ms, struct sg_error *e)
{
    const char *p = s;
    uint64_t whole = 0, ms;
    uint32_t fraction = 0;
    int r = take_decimal(&p, &whole, &fraction);
    uint64_t unit = r == 0 ? duration_unit_ms(p) : 1;

    if (r == -EINVAL || unit == 0)
        return refuse(e, what, s,
                      "is not a duration: use a number with ms, s, m, h or d, for example 30s");

    /* Rounded up, so that a time that is not zero does not become zero. */
    uint64_t part = (fraction * unit + FRACTION_ONE - 1) / FRACTION_ONE;
    if (r < 0 || __builtin_mul_overflow(whole, unit, &ms) || __builtin_add_overflow(ms, part, &ms))
        return refuse(e, what, s, "is too long for a duration: use at most 213503982334d");
    *ret_ms = ms;
    return 0;
}

int parse_milli(const char *what, const char *s, uint32_t *ret, struct sg_error *e)
{
    const char *p = s;
    uint64_t whole = 0;
    uint32_t fraction = 0;
    int r = take_decimal(&p, &whole, &fraction);

    if (r == -EINVAL || (r == 0 && *p != '\0'))
        return refuse(e, what, s, "is not a number: use for example 1, 0.5 or 2.25");

    uint32_t thousandths = fraction / (FRACTION_ONE / 1000);
    if (r < 0 || whole > (UINT32_MAX - thousandths) / 1000)
        return refuse(e, what, s, "is too large: use at most 4294967.295");
    *ret = (uint32_t)whole * 1000 + thousandths;
    return 0;
}

struct unit {
    const char *name;
    uint64_t size; /* in the smallest unit, which the value is given in */
};

/* Writes v in the largest unit that gives at least 1, to one decimal; ".0" is left out. */
static char *format_in_units(uint64_t v, const struct unit *units, size_t n, char *buf, size_t cap)
{
    uint64_t whole = v;
    unsigned tenths = 0;
    size_t i = 0;

    while (i + 1 < n && v >= units[i + 1].size)
        i++;
    for (;; i++) {
        uint64_t size = units[i].size;
        whole = v / size;
        tenths = (unsigned)((v % size * 10 + size / 2) / size);
        whole += tenths / 10;
        tenths %= 10;
        /* Rounding may have reached the next unit: 1 s rather than 1000 ms. */
        if (i + 1 == n || whole * size < units[i + 1].size)
            break;
    }
    if (tenths > 0)
        snprintf(buf, cap, "%" PRIu64 ".%u %s", whole, tenths, units[i].name);
    else
        snprintf(buf, cap, "%" PRIu64 " %s", whole, units[i].name);
    return buf;
}

char *format_size(uint64_t bytes, char *buf, size_t cap)
{
    static const struct unit units[] = {
        {"B", 1},
        {"KiB", 1ull << 10},
        {"MiB", 1ull << 20},
        {"GiB", 1ull << 30},
        {"TiB", 1ull << 40},
        {"PiB", 1ull << 50},
        {"EiB", 1ull << 60},
    };

    return format_in_units(bytes, units, ARRAY_SIZE(units), buf, cap);
}

char *format_duration_us(uint64_t us, char *buf, size_t cap)
{
    static const struct unit units[] = {
        {"us", 1},         {"ms", 1000},       {"s", 1000000},
        {"min", 60000000}, {"h", 3600000000u}, {"d", 86400000000u},
    };

    return format_in_units(us, units, ARRAY_SIZE(units), buf, cap);
}
