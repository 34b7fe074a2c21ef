#include "lib/text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void jw_init(struct json *j, struct strbuf *out)
{
    *j = (struct json){.out = out};
}

/* Writes what must stand before a value: nothing after a key, a comma after an earlier element. */
static void before_value(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    if (j->need_comma[j->depth - 1])
        strbuf_addch(j->out, ',');
    j->need_comma[j->depth - 1] = true;
}

static void begin(struct json *j, char bracket)
{
    before_value(j);
    assert(j->depth < JSON_DEPTH_MAX);
    j->need_comma[j->depth++] = false;
    strbuf_addch(j->out, bracket);
}

static void end(struct json *j, char bracket)
{
    assert(j->depth > 0 && !j->after_key);
    j->depth--;
    strbuf_addch(j->out, bracket);
}

void jw_object_begin(struct json *j)
{
    begin(j, '{');
}

void jw_object_end(struct json *j)
{
    end(j, '}');
}

void jw_array_begin(struct json *j)
{
    begin(j, '[');
}

void jw_array_end(struct json *j)
{
    end(j, ']');
}

/* Overlong forms, surrogates and code points beyond U+10FFFF are invalid: the second byte's range
 * depends on the first. */
size_t jw_utf8_sequence(const unsigned char *p, size_t len)
{
    unsigned char lo = 0x80, hi = 0xbf;
    size_t n;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        n = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        n = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (len < n)
        return 0;

    if (p[0] == 0xe0)
        lo = 0xa0;
    else if (p[0] == 0xed)
        hi = 0x9f;
    else if (p[0] == 0xf0)
        lo = 0x90;
    else if (p[0] == 0xf4)
        hi = 0x8f;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void add_escape(struct strbuf *out, unsigned char c)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    const char *at = c ? strchr(from, c) : NULL;

    if (at)
        strbuf_addf(out, "\\%c", to[at - from]);
    else
        strbuf_addf(out, "\\u%04x", c);
}

static void add_quoted(struct strbuf *out, const void *data, size_t len)
{
    const unsigned char *p = data, *last = p + len;

    strbuf_addch(out, '"');
    while (p < last) {
        const unsigned char *run = p;
        while (p < last && is_plain(*p))
            p++;
        strbuf_add(out, run, (size_t)(p - run));
        if (p == last)
            break;

        size_t n = jw_utf8_sequence(p, (size_t)(last - p));
        if (n == 0)
            strbuf_addstr(out, REPLACEMENT);
        else if (n == 1)
            add_escape(out, *p);
        else
            strbuf_add(out, p, n);
        p += n > 0 ? n : 1;
    }
    strbuf_addch(out, '"');
}

struct json *jw_key(struct json *j, const char *key)
{
    assert(j->depth > 0 && !j->after_key);
    before_value(j);
    add_quoted(j->out, key, strlen(key));
    strbuf_addch(j->out, ':');
    j->after_key = true;
    return j;
}

void jw_bytes(struct json *j, const void *data, size_t len)
{
    before_value(j);
    add_quoted(j->out, data, len);
}

void jw_string(struct json *j, const char *s)
{
    if (s)
        jw_bytes(j, s, strlen(s));
    else
        jw_null(j);
}

void jw_u64(struct json *j, uint64_t v)
{
    before_value(j);
    strbuf_addf(j->out, "%" PRIu64, v);
}

void jw_i64(struct json *j, int64_t v)
{
    before_value(j);
    strbuf_addf(j->out, "%" PRId64, v);
}

void jw_fixed(struct json *j, uint64_t v, unsigned decimals)
{
    uint64_t scale = 1;

    assert(decimals <= 19); /* 10^19 is the largest power that fits */
    if (decimals == 0) {
        jw_u64(j, v);
        return;
    }
    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    before_value(j);
    strbuf_addf(j->out, "%" PRIu64 ".%0*" PRIu64, v / scale, (int)decimals, v % scale);
}

void jw_bool(struct json *j, bool v)
{
    before_value(j);
    strbuf_addstr(j->out, v ? "true" : "false");
}

void jw_null(struct json *j)
{
    before_value(j);
    strbuf_addstr(j->out, "null");
}

void jw_raw(struct json *j, const char *json, size_t len)
{
    before_value(j);
    strbuf_add(j->out, json, len);
}
