#include <assert.h>
#include <openssl/sha.h>

#include "lib/audit/audit_impl.h"
#include "lib/text/json.h"

#define HASH_KEY ",\"hash\":\""
#define PREV_KEY ",\"prev\":\""
#define SIGN_KEY ",\"signature\":\""
#define LINE_END "\"}"

void audit_place_init(struct audit_place *p)
{
    *p = (struct audit_place){0};
    memset(p->hash, '0', AUDIT_HASH_LEN);
}

void audit_hash_text(const char *line, size_t len, char ret[AUDIT_HASH_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)line, len, sum);
    for (size_t i = 0; i < sizeof(sum); i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
    }
    ret[AUDIT_HASH_LEN] = '\0';
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_ascii(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80)
            return false;
    return true;
}

/* Takes one character of valid UTF-8 that is not ASCII. */
static uint32_t take_character(const unsigned char **p)
{
    unsigned lead = *(*p)++;
    unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    uint32_t c = lead & (0x3fu >> more);

    for (; more > 0; more--)
        c = c << 6 | (*(*p)++ & 0x3f);
    return c;
}

/* Escapes all that is not ASCII as well: some characters above it control terminals, end lines, or
 * change the direction of writing. */
static void add_escaped(struct json *j, const char *value)
{
    AUTO(strbuf_done) struct strbuf quoted = strbuf_upto(AUDIT_LINE_MAX);
    AUTO(strbuf_done) struct strbuf ascii = strbuf_upto(AUDIT_LINE_MAX);
    struct json plain = {.out = &quoted};

    jw_string(&plain, value);
    for (const unsigned char *p = (const unsigned char *)quoted.buf; *p;) {
        if (*p < 0x80) {
            strbuf_addch(&ascii, (char)*p++);
            continue;
        }
        uint32_t c = take_character(&p);
        if (c < 0x10000)
            strbuf_addf(&ascii, "\\u%04x", c);
        else
            strbuf_addf(&ascii, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                        0xdc00 + (c & 0x3ff));
    }
    jw_raw(j, ascii.buf, ascii.len);
}

static void add_text(struct json *j, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    jw_key(j, key);
    if (is_ascii(value))
        jw_string(j, value);
    else
        add_escaped(j, value);
}

static void add_number(struct json *j, const char *key, uint64_t value)
{
    if (value == 0)
        return;
    jw_u64(jw_key(j, key), value);
}

static void begin_line(struct json *j, struct audit_place *p, int64_t time_ms, const char *kind)
{
    char time[AUDIT_TIME_LEN + 1];

    clock_text(time_ms, time);
    jw_object_begin(j);
    add_number(j, "seq", ++p->seq);
    add_text(j, "time", time);
    add_text(j, "kind", kind);
}

/* Adds the hash to a line. start: where the line begins in out, which has all of it but the
 * hash. */
static void end_line(struct strbuf *out, size_t start, struct audit_place *p)
{
    audit_hash_text(out->buf + start, out->len - start, p->hash);
    strbuf_addf(out, HASH_KEY "%s" LINE_END "\n", p->hash);
}

void audit_print_record(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint64_t count,
                        const struct audit_record *r)
{
    size_t start = out->len;
    struct json j = {.out = out};

    begin_line(&j, p, time_ms, r->kind);
    add_text(&j, "tenant", r->tenant);
    add_text(&j, "sandbox", r->sandbox);
    add_text(&j, "name", r->name);
    add_text(&j, "address", r->address);
    add_number(&j, "port", r->port);
    add_text(&j, "protocol", r->protocol);
    add_text(&j, "verdict", r->verdict);
    add_text(&j, "rule", r->rule);
    add_text(&j, "detail", r->detail);
    add_number(&j, "up", r->up);
    add_number(&j, "down", r->down);
    add_number(&j, "ms", r->ms);
    add_text(&j, "policy", r->policy);
    add_number(&j, "count", count);
    add_text(&j, "prev", p->hash);
    end_line(out, start, p);
    p->records++;
    p->since_head++;
}

void audit_print_head(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint32_t file,
                      const struct audit_signer *signer)
{
    AUTO(strbuf_done) struct strbuf signature = strbuf_upto(256);
    size_t start = out->len;
    struct json j = {.out = out};

    begin_line(&j, p, time_ms, "head");
    jw_u64(jw_key(&j, "file"), file);
    jw_u64(jw_key(&j, "records"), p->records);
    add_text(&j, "prev", p->hash);
    audit_sign(signer, out->buf + start, out->len - start, &signature);
    add_text(&j, "signature", signature.buf);
    end_line(out, start, p);
    p->head.seq = p->seq;
    memcpy(p->head.hash, p->hash, sizeof(p->hash));
    p->since_head = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool take(const char **p, const char *end, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(end - *p) < n || memcmp(*p, text, n) != 0)
        return false;
    *p += n;
    return true;
}

static bool take_number(const char **p, const char *end, uint64_t *ret)
{
    const char *start = *p;
    uint64_t v = 0;

    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        if (v > (UINT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(**p - '0');
    }
    *ret = v;
    return *p > start;
}

/* Takes a text of a hash's length, with its key before it, off the end of [start, *end); *end moves
 * to its beginning. */
static const char *take_back(const char *start, const char **end, const char *key)
{
    size_t key_len = strlen(key);
    const char *value, *at;

    if ((size_t)(*end - start) < key_len + AUDIT_HASH_LEN)
        return NULL;
    value = *end - AUDIT_HASH_LEN;
    at = value - key_len;
    if (memcmp(at, key, key_len) != 0)
        return NULL;
    *end = at;
    return value;
}

/* Reads the end of the frame: hash, signature if there is one, prev. */
static int read_end(const char *line, size_t len, struct audit_line *ret)
{
    const char *end = line + len;

    if (len < strlen(LINE_END) || memcmp(end - strlen(LINE_END), LINE_END, strlen(LINE_END)) != 0)
        return -EINVAL;
    end -= strlen(LINE_END);
    ret->hash = take_back(line, &end, HASH_KEY);
    if (!ret->hash || end == line || end[-1] != '"')
        return -EINVAL;
    ret->hashed = (size_t)(end - line);
    ret->signature = audit_line_text(line, ret->hashed, "signature", &ret->signature_len);
    if (ret->signature) {
        if (ret->signature + ret->signature_len + 1 != end)
            return -EINVAL;
        end = ret->signature - strlen(SIGN_KEY);
        ret->signed_len = (size_t)(end - line);
    }
    if (end <= line || end[-1] != '"')
        return -EINVAL;
    end--;
    ret->prev = take_back(line, &end, PREV_KEY);
    return ret->prev ? 0 : -EINVAL;
}

int audit_line_read(const char *line, size_t len, struct audit_line *ret)
{
    const char *p = line, *end = line + len;
    struct audit_line l = {0};

    if (len > AUDIT_LINE_MAX || !take(&p, end, "{\"seq\":") || !take_number(&p, end, &l.seq) ||
        !take(&p, end, ",\"time\":\"") || end - p < AUDIT_TIME_LEN)
        return -EINVAL;
    l.time = p;
    p += AUDIT_TIME_LEN;
    if (!take(&p, end, "\",\"kind\":\"") || read_end(line, len, &l) < 0)
        return -EINVAL;
    bool head = take(&p, end, "head\"");
    if (head != (l.signature != NULL))
        return -EINVAL;
    if (head && (!take(&p, end, ",\"file\":") || !take_number(&p, end, &l.file) ||
                 !take(&p, end, ",\"records\":") || !take_number(&p, end, &l.records)))
        return -EINVAL;
    *ret = l;
    return 0;
}

const char *audit_line_text(const char *line, size_t len, const char *key, size_t *ret_len)
{
    char needle[32];
    int n = snprintf(needle, sizeof(needle), ",\"%s\":\"", key);
    const char *end = line + len, *at, *p;

    assert(n > 0 && (size_t)n < sizeof(needle));
    at = memmem(line, len, needle, (size_t)n);
    if (!at)
        return NULL;
    at += n;
    for (p = at; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    if (p >= end)
        return NULL;
    *ret_len = (size_t)(p - at);
    return at;
}
