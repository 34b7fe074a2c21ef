#include "guard/identity.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "guard/ca.h"
#include "lib/text/base64.h"
#include "lib/text/json.h"
#include "lib/tls/certificate.h"

#define COORDINATE  32 /* bytes of a number of P-256 */
#define COORD_TEXT  44 /* the same in base64url */
#define KID_LEN     43 /* a SHA-256 in base64url */
#define JTI_LEN     16
#define DER_MAX     80 /* of an ECDSA signature */
#define HEADER_MAX  256
#define PAYLOAD_MAX 4096

struct signing_key {
    EVP_PKEY *pair;
    char x[COORD_TEXT], y[COORD_TEXT], kid[KID_LEN + 1];
};

/* ---- text ------------------------------------------------------------------------------------ */

/* Base64 with the alphabet of URLs, and without padding. */
static void add_base64url(struct strbuf *out, const void *data, size_t len)
{
    size_t from = out->len;

    base64_encode(out, data, len);
    for (size_t i = from; i < out->len; i++) {
        char *c = &out->buf[i];

        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    }
    while (out->len > from && out->buf[out->len - 1] == '=')
        out->buf[--out->len] = '\0';
}

static void copy_base64url(char *ret, size_t cap, const void *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(cap - 1);

    /* Padding needs room, too. */
    text.max += 2;
    add_base64url(&text, data, len);
    snprintf(ret, cap, "%s", text.buf);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The name of a key: its thumbprint (RFC 7638). */
static void name_key(struct signing_key *k)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    char text[256];

    snprintf(text, sizeof(text), "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%s\",\"y\":\"%s\"}",
             k->x, k->y);
    SHA256((const unsigned char *)text, strlen(text), sum);
    copy_base64url(k->kid, sizeof(k->kid), sum, sizeof(sum));
}

static bool read_coordinate(const EVP_PKEY *pair, const char *which, char ret[COORD_TEXT])
{
    unsigned char bytes[COORDINATE];
    BIGNUM *n = NULL;
    bool ok = EVP_PKEY_get_bn_param(pair, which, &n) == 1 &&
              BN_bn2binpad(n, bytes, sizeof(bytes)) == sizeof(bytes);

    if (ok)
        copy_base64url(ret, COORD_TEXT, bytes, sizeof(bytes));
    BN_free(n);
    return ok;
}

static int64_t period_at(int64_t now_s)
{
    return now_s / IDENTITY_PERIOD_S;
}

static void key_done(struct signing_key *k)
{
    EVP_PKEY_free(k->pair);
}

static int key_of(const struct vault_key *vault, int64_t period, struct signing_key *ret,
                  struct sg_error *e)
{
    char label[64];

    snprintf(label, sizeof(label), "identity/%lld", (long long)period);
    ret->pair = ca_derived_key(vault, label, e);
    if (!ret->pair)
        return -EIO;
    if (!read_coordinate(ret->pair, OSSL_PKEY_PARAM_EC_PUB_X, ret->x) ||
        !read_coordinate(ret->pair, OSSL_PKEY_PARAM_EC_PUB_Y, ret->y)) {
        key_done(ret);
        return certificate_error(e, "read the key that signs tokens");
    }
    name_key(ret);
    return 0;
}

static int print_key(struct json *j, const struct vault_key *vault, int64_t period,
                     struct sg_error *e)
{
    struct signing_key k;
    int r = key_of(vault, period, &k, e);

    if (r < 0)
        return r;
    jw_object_begin(j);
    jw_string(jw_key(j, "kid"), k.kid);
    jw_string(jw_key(j, "x"), k.x);
    jw_string(jw_key(j, "y"), k.y);
    jw_i64(jw_key(j, "until"), (period + 1) * IDENTITY_PERIOD_S + IDENTITY_OVERLAP_S);
    jw_object_end(j);
    key_done(&k);
    return 0;
}

int identity_keys(const struct vault_key *k, int64_t now_s, struct strbuf *out, struct sg_error *e)
{
    int64_t now = period_at(now_s), first = period_at(now_s - IDENTITY_OVERLAP_S);
    struct json j = {.out = out};
    int r = 0;

    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "keys"));
    for (int64_t period = first; r == 0 && period <= now + 1; period++)
        r = print_key(&j, k, period, e);
    jw_array_end(&j);
    jw_object_end(&j);
    return r;
}

/* ---- a token --------------------------------------------------------------------------------- */

static void add_header(struct strbuf *out, const struct signing_key *k)
{
    char text[HEADER_MAX];

    snprintf(text, sizeof(text), "{\"alg\":\"ES256\",\"kid\":\"%s\",\"typ\":\"JWT\"}", k->kid);
    add_base64url(out, text, strlen(text));
}

static bool add_payload(struct strbuf *out, const struct policy_identity *who,
                        const struct policy_token *what, int64_t now_s)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(PAYLOAD_MAX);
    struct json j = {.out = &text};
    unsigned char random[JTI_LEN];
    char jti[2 * JTI_LEN];

    if (RAND_bytes(random, sizeof(random)) != 1)
        return false;
    copy_base64url(jti, sizeof(jti), random, sizeof(random));
    jw_object_begin(&j);
    jw_string(jw_key(&j, "iss"), who->issuer);
    jw_string(jw_key(&j, "sub"), who->spiffe_id);
    jw_string(jw_key(&j, "aud"), what->audience);
    jw_i64(jw_key(&j, "iat"), now_s);
    jw_i64(jw_key(&j, "nbf"), now_s);
    jw_i64(jw_key(&j, "exp"), now_s + IDENTITY_LIFE_S);
    jw_string(jw_key(&j, "jti"), jti);
    jw_string(jw_key(&j, "sandbox_id"), who->sandbox_id);
    jw_string(jw_key(&j, "tenant_id"), who->tenant_id);
    jw_string(jw_key(&j, "tenant"), who->tenant);
    jw_string(jw_key(&j, "template"), who->template_id);
    jw_object_end(&j);
    add_base64url(out, text.buf, text.len);
    return !text.truncated;
}

/* JWS has the two numbers of a signature one after the other, OpenSSL has them in DER. */
static bool add_signature(struct strbuf *out, EVP_PKEY *pair, const char *p, size_t len)
{
    unsigned char der[DER_MAX], raw[2 * COORDINATE];
    const unsigned char *at = der;
    size_t n = sizeof(der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    ECDSA_SIG *sig = NULL;
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, pair) == 1 &&
              EVP_DigestSign(ctx, der, &n, (const unsigned char *)p, len) == 1 &&
              (sig = d2i_ECDSA_SIG(NULL, &at, (long)n)) &&
              BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, COORDINATE) == COORDINATE &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + COORDINATE, COORDINATE) == COORDINATE;

    if (ok)
        add_base64url(out, raw, sizeof(raw));
    ECDSA_SIG_free(sig);
    EVP_MD_CTX_free(ctx);
    return ok;
}

int identity_make(const struct vault_key *k, const struct policy_identity *who,
                  const struct policy_token *what, int64_t now_s, struct strbuf *out,
                  struct sg_error *e)
{
    struct signing_key key;
    size_t from = out->len, signed_len;
    int r = key_of(k, period_at(now_s), &key, e);

    if (r < 0)
        return r;
    add_header(out, &key);
    strbuf_addch(out, '.');
    bool ok = add_payload(out, who, what, now_s);
    signed_len = out->len - from;
    if (ok && !out->truncated) {
        strbuf_addch(out, '.');
        ok = add_signature(out, key.pair, out->buf + from, signed_len);
    }
    key_done(&key);
    if (!ok)
        return certificate_error(e, "sign a token");
    return out->truncated ? err_set(e, SG_ERR_LIMIT, -E2BIG, "the token is too long") : 0;
}
