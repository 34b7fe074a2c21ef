/* W3C's traceparent, which travels between programs, and the random numbers for ids. */
#include "front/telemetry/trace.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "front/telemetry/ids.h"

#define FLAGS_KNOWN 0x03 /* sampled and random; no other flag may be passed on */

/* ---- random numbers -------------------------------------------------------------------------- */

static struct {
    uint64_t state[4];
    bool seeded;
} numbers;

static uint64_t rotate(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

/* xoshiro256**: ids must differ, but need not be hard to guess. A system call for each span would
 * cost more than the span. */
uint64_t trace_random(void)
{
    uint64_t *s = numbers.state, out, old;

    if (!numbers.seeded) {
        ssize_t got = getrandom(s, sizeof(numbers.state), 0);

        assert(got == (ssize_t)sizeof(numbers.state));
        numbers.seeded = true;
    }
    out = rotate(s[1] * 5, 7) * 9;
    old = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= old;
    s[3] = rotate(s[3], 45);
    return out;
}

void trace_random_bytes(uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t v = trace_random();

        /* An id may not be all zeros. */
        while (v == 0)
            v = trace_random();
        memcpy(out + i, &v, n - i < sizeof(v) ? n - i : sizeof(v));
    }
}

/* ---- traceparent ----------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads n bytes in hexadecimal, and the character that must follow. */
static bool read_hex(const char **at, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit((*at)[0]), low = high < 0 ? -1 : hex_digit((*at)[1]);

        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
        *at += 2;
    }
    return true;
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

bool trace_parse(const char *traceparent, struct trace_ref *ret)
{
    struct trace_ref r = {.set = true};
    const char *at = traceparent;
    uint8_t version;

    *ret = (struct trace_ref){0};
    if (!read_hex(&at, &version, 1) || version == 0xff || *at++ != '-' ||
        !read_hex(&at, r.trace, sizeof(r.trace)) || *at++ != '-' ||
        !read_hex(&at, r.span, sizeof(r.span)) || *at++ != '-' || !read_hex(&at, &r.flags, 1))
        return false;
    /* A later version of traceparent may have more fields, after another dash. */
    if (*at != '\0' && (version == 0 || *at != '-'))
        return false;
    if (all_zero(r.trace, sizeof(r.trace)) || all_zero(r.span, sizeof(r.span)))
        return false;
    r.flags &= FLAGS_KNOWN;
    *ret = r;
    return true;
}

void trace_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

void trace_format(const struct trace_ref *r, char ret[TRACEPARENT_LEN + 1])
{
    ret[0] = '\0';
    if (!r->set)
        return;
    memcpy(ret, "00-", 3);
    trace_hex(r->trace, sizeof(r->trace), ret + 3);
    ret[35] = '-';
    trace_hex(r->span, sizeof(r->span), ret + 36);
    ret[52] = '-';
    trace_hex(&r->flags, 1, ret + 53);
    ret[TRACEPARENT_LEN] = '\0';
}
