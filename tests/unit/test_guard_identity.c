/* Tokens of sandboxes: the keys of a time, what a token says, and what becomes of it on an
 * inspected connection. */
#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/param_build.h>

#include "guard/identity.h"
#include "inspect_rig.h"
#include "lib/text/base64.h"

#define NOW    1800000000
#define BORDER (NOW / IDENTITY_PERIOD_S * IDENTITY_PERIOD_S) /* a period begins */
#define MEMBERS                                                                             \
    "\"identity\":{\"issuer\":\"https://box.test\",\"spiffeId\":\"spiffe://box.test/x\","   \
    "\"tenant\":\"acme\",\"template\":\"base\",\"tokens\":{\"aws\":\"sts.test\"}},"         \
    "\"rules\":[{\"domain\":\"api.test\",\"headers\":[[\"Authorization\","                  \
    "\"Bearer "                                                                             \
    "${e2b.identity.tokens.aws}\"],[\"X-Key\",\"${e2b.secrets.key}\"],[\"X-Typo\",\"${e2b." \
    "identity.tokens.AWS} $\"]]}]"

/* ---- keys ------------------------------------------------------------------------------------ */

static json_t *keys_at(const struct vault_key *k, int64_t now_s)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(65536);
    struct sg_error e = {0};

    EXPECT(identity_keys(k, now_s, &out, &e) == 0);
    return json_loads(out.buf, 0, NULL);
}

static const json_t *key_of(const json_t *set, const char *kid)
{
    const json_t *key;
    size_t i;

    json_array_foreach(json_object_get(set, "keys"), i,
                       key) if (strcmp(json_string_value(json_object_get(key, "kid")), kid) ==
                                0) return key;
    return NULL;
}

static bool same_kid(const json_t *a, size_t i, const json_t *b, size_t k)
{
    return json_equal(json_array_get(json_object_get(a, "keys"), i),
                      json_array_get(json_object_get(b, "keys"), k));
}

TEST(a_key_is_published_before_it_is_used_and_until_its_last_token_has_expired)
{
    struct vault_key *k = vault_key_new(), *other = vault_key_new();
    json_t *before = keys_at(k, BORDER - 1), *after = keys_at(k, BORDER + IDENTITY_LIFE_S),
           *late = keys_at(k, BORDER + IDENTITY_OVERLAP_S), *stranger = keys_at(other, BORDER - 1);

    EXPECT(json_array_size(json_object_get(before, "keys")) == 2);
    EXPECT(json_array_size(json_object_get(after, "keys")) == 3);
    EXPECT(json_array_size(json_object_get(late, "keys")) == 2);
    EXPECT(same_kid(before, 0, after, 0) && same_kid(before, 1, after, 1));
    EXPECT(same_kid(after, 1, late, 0) && !same_kid(before, 0, before, 1));
    EXPECT(!same_kid(before, 0, stranger, 0));
    json_decref(before);
    json_decref(after);
    json_decref(late);
    json_decref(stranger);
    vault_key_free(k);
    vault_key_free(other);
}

/* ---- a token --------------------------------------------------------------------------------- */

static struct strbuf decoded(const char *p, size_t len)
{
    struct strbuf out = strbuf_upto(65536);

    EXPECT(base64_decode(&out, p, len) == 0);
    return out;
}

static json_t *part(const char *token, size_t skip)
{
    while (skip-- > 0)
        token += strcspn(token, ".") + 1;
    AUTO(strbuf_done) struct strbuf text = decoded(token, strcspn(token, "."));
    return json_loads(text.buf, 0, NULL);
}

static bool signed_by(const char *token, const json_t *jwk)
{
    const char *dot = strrchr(token, '.');
    AUTO(strbuf_done)
    struct strbuf raw = decoded(dot + 1, strlen(dot + 1)), point = strbuf_upto(65);
    const char *x = json_string_value(json_object_get(jwk, "x"));
    const char *y = json_string_value(json_object_get(jwk, "y"));
    unsigned char *der = NULL;
    EVP_PKEY *key = NULL;

    strbuf_addch(&point, 4);
    EXPECT(base64_decode(&point, x, strlen(x)) == 0 && base64_decode(&point, y, strlen(y)) == 0);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char[]){"prime256v1"}, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.buf, point.len),
        OSSL_PARAM_construct_end()};
    EVP_PKEY_CTX *make = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    EXPECT(EVP_PKEY_fromdata_init(make) == 1 &&
           EVP_PKEY_fromdata(make, &key, EVP_PKEY_PUBLIC_KEY, params) == 1);
    ECDSA_SIG *sig = ECDSA_SIG_new();
    EXPECT(raw.len == 64);
    ECDSA_SIG_set0(sig, BN_bin2bn((unsigned char *)raw.buf, 32, NULL),
                   BN_bin2bn((unsigned char *)raw.buf + 32, 32, NULL));
    int len = i2d_ECDSA_SIG(sig, &der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(ctx, der, (size_t)len, (const unsigned char *)token,
                                 (size_t)(dot - token)) == 1;
    EVP_MD_CTX_free(ctx);
    OPENSSL_free(der);
    ECDSA_SIG_free(sig);
    EVP_PKEY_CTX_free(make);
    EVP_PKEY_free(key);
    return good;
}

static void expect_text(const json_t *o, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(o, key));

    EXPECT_STR(text ? text : "(none)", want);
}

TEST(what_a_token_says)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8192), again = strbuf_upto(8192);
    struct vault_key *k = vault_key_new();
    struct policy_identity who = {
        "https://box.test", "spiffe://box.test/x", "sandbox", "tid", "acme", "base\"", NULL, 0};
    struct policy_token what = {"aws", "sts.test"};
    struct sg_error e = {0};

    EXPECT(identity_make(k, &who, &what, NOW, &out, &e) == 0);
    EXPECT(identity_make(k, &who, &what, NOW, &again, &e) == 0);
    json_t *head = part(out.buf, 0), *claims = part(out.buf, 1), *other = part(again.buf, 1);
    json_t *set = keys_at(k, NOW), *past = keys_at(k, NOW + IDENTITY_LIFE_S);
    const char *kid = json_string_value(json_object_get(head, "kid"));

    expect_text(head, "alg", "ES256");
    expect_text(claims, "iss", "https://box.test");
    expect_text(claims, "sub", "spiffe://box.test/x");
    expect_text(claims, "aud", "sts.test");
    expect_text(claims, "template", "base\"");
    EXPECT(json_integer_value(json_object_get(claims, "exp")) == NOW + IDENTITY_LIFE_S);
    EXPECT(!json_equal(json_object_get(claims, "jti"), json_object_get(other, "jti")));
    EXPECT(kid && signed_by(out.buf, key_of(set, kid)));
    EXPECT(kid && key_of(past, kid));
    out.buf[out.len / 2] ^= 1;
    EXPECT(kid && !signed_by(out.buf, key_of(set, kid)));
    json_decref(head);
    json_decref(claims);
    json_decref(other);
    json_decref(set);
    json_decref(past);
    vault_key_free(k);
}

/* ---- on a connection ------------------------------------------------------------------------- */

static void ask(struct rig_end *e)
{
    rig_send(e, "GET / HTTP/1.1\r\nHost: api.test\r\nAuthorization: own\r\n\r\n");
    rig_expect(e, "end");
    rig_send(e, "GET /2 HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    rig_rest(e);
}

/* Gives back the token that it got. */
static void echo(struct rig_end *e)
{
    const char *at;

    rig_expect_head(e);
    at = strstr(e->log.buf, "Bearer ");
    at = at ? at + strlen("Bearer ") : "";
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(65536);
    strbuf_addf(&out, "HTTP/1.1 200 OK\r\nX-Echo: %.*s\r\nContent-Length: %zu\r\n\r\n%.*send",
                (int)strcspn(at, "\r"), at, strcspn(at, "\r") + 3, (int)strcspn(at, "\r"), at);
    rig_send(e, out.buf);
    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    rig_rest(e);
}

/* With a secret beside it. */
TEST(a_token_is_put_in_and_does_not_come_back)
{
    struct rig r = {.name = "api.test", .client = ask, .server = echo};
    AUTO(strbuf_done) struct strbuf document = strbuf_upto(16384);

    rig_open(&r);
    strbuf_addf(&document, MEMBERS ",\"secrets\":[{\"name\":\"key\",%s}]",
                rig_sealed("key", "0123456789abcdef"));
    r.document = document.buf;
    rig_play(&r);
    const char *at = strstr(r.s.log.buf, "Bearer eyJ");
    EXPECT(at && !strstr(r.s.log.buf, "own") && strstr(at + 1, "Bearer eyJ"));
    EXPECT(strstr(r.s.log.buf, "x-typo: ${e2b.identity.tokens.AWS} $\r\n"));
    EXPECT(strstr(r.s.log.buf, "x-key: 0123456789abcdef\r\n"));
    EXPECT(!strstr(r.c.log.buf, "0123456789abcdef"));
    EXPECT(strstr(r.c.log.buf, "X-Echo: ****") && strstr(r.c.log.buf, "****end"));
    EXPECT(!strstr(r.c.log.buf, "eyJ"));
    EXPECT(strstr(rig_records.buf, "token allow api.test [] (rules api.test)\n"));
    rig_done(&r);
}

TEST(tokens_are_made_once_until_they_are_old)
{
    struct rig r = {.name = "api.test"};
    struct sg_error e = {0};

    rig_open(&r);
    struct policy *p = rig_policy(MEMBERS), *other = rig_policy(MEMBERS);
    struct sandbox s = {.guard = &rig_guard, .refs = 1};
    struct identity_live *a = identity_take(&s, p, &e), *b = identity_take(&s, p, &e),
                         *c = identity_take(&s, other, &e);
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8192);
    EXPECT(a && a == b && c && c != a && s.identity == c);
    EXPECT(!identity_token(a, "AWS", 3) && !identity_token(a, "aw", 2));
    /* The tokens that were replaced are still looked for. */
    const struct secret *old = identity_token(a, "aws", 3);
    scrub_text(identity_scrub(c), (const char *)old->bytes, old->len, &out);
    EXPECT(out.len == old->len && strspn(out.buf, "*") == old->len);
    identity_unref(a);
    identity_unref(b);
    identity_unref(c);
    identity_unref(s.identity);
    policy_unref(p);
    policy_unref(other);
    rig_done(&r);
}

TEST(documents_that_are_wrong)
{
    static const char *const bad[] = {
        "{\"default\":\"allow\",\"identity\":7}",
        "{\"default\":\"allow\",\"tenant\":\"t\",\"sandbox\":\"s\",\"identity\":{}}",
        ("{\"default\":\"allow\",\"identity\":{\"issuer\":\"i\",\"spiffeId\":\"s\",\"tenant\":"
         "\"t\","
         "\"template\":\"b\",\"tokens\":{}}}"),
    };
    struct policy *p;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(policy_parse(bad[i], strlen(bad[i]), NULL, &p, &e) < 0);
}

TAP_MAIN
