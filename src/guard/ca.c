#include "guard/ca.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "lib/vault/vault.h"

#define DAY        (24 * 3600l)
#define YEAR       (365 * DAY)
#define SCALAR_LEN 48 /* 128 bits more than the group's order, so the remainder is nearly uniform */
#define POINT_LEN  65

/* ---- keys that are derived ------------------------------------------------------------------- */

static EVP_PKEY *key_from_scalar(const BIGNUM *scalar, const EC_GROUP *group, BN_CTX *ctx)
{
    unsigned char point[POINT_LEN];
    EC_POINT *public = EC_POINT_new(group);
    OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *make = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM *params = NULL;
    EVP_PKEY *key = NULL;

    if (public && bld && make && EC_POINT_mul(group, public, scalar, NULL, NULL, ctx) == 1 &&
        EC_POINT_point2oct(group, public, POINT_CONVERSION_UNCOMPRESSED, point, sizeof(point),
                           ctx) == sizeof(point) &&
        OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) == 1 &&
        OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_PRIV_KEY, scalar) == 1 &&
        (params = OSSL_PARAM_BLD_to_param(bld)) && EVP_PKEY_fromdata_init(make) == 1 &&
        EVP_PKEY_fromdata(make, &key, EVP_PKEY_KEYPAIR, params) != 1)
        key = NULL;
    EC_POINT_free(public);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(bld);
    EVP_PKEY_CTX_free(make);
    return key;
}

EVP_PKEY *ca_derived_key(const struct vault_key *from, const char *label, struct sg_error *e)
{
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BN_CTX *ctx = BN_CTX_secure_new();
    BIGNUM *scalar = BN_secure_new(), *top = BN_new();
    EVP_PKEY *key = NULL;
    unsigned char bytes[SCALAR_LEN];

    vault_key_derive(from, label, bytes, sizeof(bytes));
    /* The scalar is in 1 to order - 1, and the same each time. */
    if (group && ctx && scalar && top && BN_bin2bn(bytes, sizeof(bytes), scalar) &&
        BN_copy(top, EC_GROUP_get0_order(group)) && BN_sub_word(top, 1) == 1 &&
        BN_nnmod(scalar, scalar, top, ctx) == 1 && BN_add_word(scalar, 1) == 1) {
        BN_set_flags(scalar, BN_FLG_CONSTTIME);
        key = key_from_scalar(scalar, group, ctx);
    }
    explicit_bzero(bytes, sizeof(bytes));
    BN_clear_free(scalar);
    BN_free(top);
    BN_CTX_free(ctx);
    EC_GROUP_free(group);
    if (!key)
        certificate_error(e, "derive a key");
    return key;
}

EVP_PKEY *ca_sandbox_key(struct ca *ca, const char *sandbox_id, struct sg_error *e)
{
    char label[64];

    snprintf(label, sizeof(label), "sandbox-ca/%s", sandbox_id);
    return ca_derived_key(ca->guard->key, label, e);
}

void ca_sandbox_name(const char *sandbox_id, char ret[64])
{
    snprintf(ret, 64, "Sandglass sandbox %s", sandbox_id);
}

static int write_pem(struct strbuf *out, X509 *x, struct sg_error *e)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long len = bio && PEM_write_bio_X509(bio, x) == 1 ? BIO_get_mem_data(bio, &text) : 0;

    if (len > 0)
        strbuf_add(out, text, (size_t)len);
    BIO_free(bio);
    if (len <= 0)
        return certificate_error(e, "write a certificate");
    return out->truncated ? err_set(e, SG_ERR_LIMIT, -E2BIG, "the certificate is too long") : 0;
}

int ca_certificate(struct ca *ca, const char *sandbox_id, const char *const *names, size_t n,
                   struct strbuf *pem, char hash[16], struct sg_error *e)
{
    char common_name[64];
    EVP_PKEY *key;
    X509 *x = NULL;
    int r;

    if (n == 0 || n > CERTIFICATE_NAMES_MAX)
        return err_invalid(e, "a sandbox's CA is for 1 to %d names, these are %zu",
                           CERTIFICATE_NAMES_MAX, n);
    key = ca_sandbox_key(ca, sandbox_id, e);
    ca_sandbox_name(sandbox_id, common_name);
    /* Only one sandbox trusts this certificate, and only while it lives; a paused sandbox can live
     * long. */
    if (key)
        x = CERTIFICATE(e, .common_name = common_name, .key = key, .issuer_key = key,
                        .from_s = -DAY, .to_s = 10 * YEAR, .names = names, .n_names = n);
    EVP_PKEY_free(key);
    if (!x)
        return -EIO;
    r = write_pem(pem, x, e);
    if (r == 0)
        snprintf(hash, 16, "%08lx",
                 X509_NAME_hash_ex(X509_get_subject_name(x), NULL, NULL, NULL) & 0xffffffffu);
    X509_free(x);
    return r;
}

/* ---- the guard's CA -------------------------------------------------------------------------- */

int ca_new(struct guard *g, int dirfd, struct ca **ret, struct sg_error *e)
{
    static const struct authority_spec spec = {.common_name = "Sandglass guard", .path = 1};
    struct ca *ca = NEW(struct ca, .guard = g);
    int r = authority_open(dirfd, &spec, &ca->root, e);

    if (r == 0)
        r = ca_contexts(ca, e);
    if (r < 0) {
        ca_free(ca);
        return r;
    }
    *ret = ca;
    return 0;
}

void ca_free(struct ca *ca)
{
    if (!ca)
        return;
    ca_contexts_done(ca);
    authority_done(&ca->root);
    free(ca);
}
