#include "pull/sigv4.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <string.h>

#include "pull/digest.h"

#define ALGORITHM   "AWS4-HMAC-SHA256"
#define TERMINATOR  "aws4_request"
#define KEY_LEN     32
#define REQUEST_MAX (64u << 10)

void sigv4_time(time_t t, char ret[SIGV4_TIME_LEN])
{
    struct tm tm = {0};

    gmtime_r(&t, &tm);
    strftime(ret, SIGV4_TIME_LEN, "%Y%m%dT%H%M%SZ", &tm);
}

static void hmac(const void *key, size_t key_len, const char *text, size_t len,
                 unsigned char ret[KEY_LEN])
{
    const unsigned char *done =
        HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, len, ret, NULL);

    assert(done);
}

static void add_signed_names(const struct sigv4 *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->n_headers; i++)
        strbuf_addf(out, "%s%s", i ? ";" : "", s->headers[i].name);
}

static void add_hash(struct strbuf *out, const void *data, size_t len)
{
    struct digest d = digest_of(data, len, NULL);

    strbuf_addstr(out, digest_hex(&d));
}

/* The request in the one form that both sides hash. */
static void add_canonical(const struct sigv4 *s, struct strbuf *out)
{
    strbuf_addf(out, "%s\n%s\n%s\n", s->method, s->path, s->query);
    for (size_t i = 0; i < s->n_headers; i++)
        strbuf_addf(out, "%s:%s\n", s->headers[i].name, s->headers[i].value);
    strbuf_addch(out, '\n');
    add_signed_names(s, out);
    strbuf_addch(out, '\n');
    add_hash(out, s->body ? s->body : "", s->body_len);
}

/* The key of one day, region and service. */
static void make_key(const struct sigv4 *s, const char *day, unsigned char ret[KEY_LEN])
{
    const char *const steps[] = {day, s->region, s->service, TERMINATOR};
    struct strbuf first = strbuf_upto(4 + strlen(s->secret));

    strbuf_reserve(&first);
    strbuf_addf(&first, "AWS4%s", s->secret);
    hmac(first.buf, first.len, steps[0], strlen(steps[0]), ret);
    for (size_t i = 1; i < ARRAY_SIZE(steps); i++)
        hmac(ret, KEY_LEN, steps[i], strlen(steps[i]), ret);
    strbuf_wipe(&first);
}

void sigv4_sign(const struct sigv4 *s, struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf canonical = strbuf_upto(REQUEST_MAX);
    AUTO(strbuf_done) struct strbuf scope = strbuf_upto(REQUEST_MAX);
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(REQUEST_MAX);
    unsigned char key[KEY_LEN], sum[KEY_LEN];
    char stamp[SIGV4_TIME_LEN], day[9];

    sigv4_time(s->time, stamp);
    memcpy(day, stamp, 8);
    day[8] = '\0';
    strbuf_addf(&scope, "%s/%s/%s/" TERMINATOR, day, s->region, s->service);
    add_canonical(s, &canonical);
    strbuf_addf(&text, ALGORITHM "\n%s\n%s\n", stamp, scope.buf);
    add_hash(&text, canonical.buf, canonical.len);
    assert(!canonical.truncated && !text.truncated);
    make_key(s, day, key);
    hmac(key, sizeof(key), text.buf, text.len, sum);
    OPENSSL_cleanse(key, sizeof(key));

    strbuf_addf(out, ALGORITHM " Credential=%s/%s, SignedHeaders=", s->key_id, scope.buf);
    add_signed_names(s, out);
    strbuf_addstr(out, ", Signature=");
    for (size_t i = 0; i < sizeof(sum); i++)
        strbuf_addf(out, "%02x", sum[i]);
}
