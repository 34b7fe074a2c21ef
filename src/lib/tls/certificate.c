#include "lib/tls/certificate.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "lib/text/strbuf.h"

#define NAME_LEN  255 /* of a name, perhaps with "*." */
#define POINT_LEN 65

int certificate_error(struct sg_error *e, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return err_set(e, SG_ERR_INTERNAL, -EIO, "%s: %s", what, reason ? reason : "unknown error");
}

static bool set_serial(X509 *x)
{
    unsigned char bytes[16];
    BIGNUM *bn = NULL;
    bool ok = RAND_bytes(bytes, sizeof(bytes)) == 1;

    bytes[0] = (unsigned char)((bytes[0] & 0x3f) | 0x40); /* positive, and of fixed length */
    ok = ok && (bn = BN_bin2bn(bytes, sizeof(bytes), NULL)) &&
         BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x));
    BN_free(bn);
    return ok;
}

static bool set_sandbox(X509 *x, const char *common_name)
{
    X509_NAME *name = X509_get_subject_name(x);

    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Sandglass",
                                      -1, -1, 0) == 1 &&
           (!common_name ||
            X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name,
                                       -1, -1, 0) == 1);
}

static bool key_id(EVP_PKEY *key, unsigned char ret[20])
{
    unsigned char point[POINT_LEN], hash[EVP_MAX_MD_SIZE];
    size_t len = 0;

    if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point,
                                        sizeof(point), &len) != 1 ||
        EVP_Digest(point, len, hash, NULL, EVP_sha256(), NULL) != 1)
        return false;
    memcpy(ret, hash, 20);
    return true;
}

static bool add_ids(X509 *x, EVP_PKEY *own, EVP_PKEY *issuer)
{
    unsigned char id[20];
    ASN1_OCTET_STRING *sandbox = ASN1_OCTET_STRING_new();
    AUTHORITY_KEYID *authority = AUTHORITY_KEYID_new();
    bool ok = sandbox && authority && key_id(own, id) &&
              ASN1_OCTET_STRING_set(sandbox, id, sizeof(id)) == 1 &&
              X509_add1_ext_i2d(x, NID_subject_key_identifier, sandbox, 0, 0) == 1;

    ok = ok && (authority->keyid = ASN1_OCTET_STRING_new()) && key_id(issuer, id) &&
         ASN1_OCTET_STRING_set(authority->keyid, id, sizeof(id)) == 1 &&
         X509_add1_ext_i2d(x, NID_authority_key_identifier, authority, 0, 0) == 1;
    ASN1_OCTET_STRING_free(sandbox);
    AUTHORITY_KEYID_free(authority);
    return ok;
}

static bool add_extension(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, ctx, nid, value);
    bool ok = extension && X509_add_ext(x, extension, -1) == 1;

    X509_EXTENSION_free(extension);
    return ok;
}

static bool add_usage(X509 *x, X509V3_CTX *ctx, int path)
{
    char basic[48] = "critical,CA:FALSE";
    bool ca = path >= 0;

    if (ca)
        snprintf(basic, sizeof(basic), "critical,CA:TRUE,pathlen:%d", path);
    return add_extension(x, ctx, NID_basic_constraints, basic) &&
           add_extension(x, ctx, NID_key_usage,
                         ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") &&
           add_extension(x, ctx, NID_ext_key_usage, "serverAuth");
}

/* Whether a name can be put into the text of an extension: it has no sign that means something
 * there. */
static bool is_plain(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.*")] == '\0';
}

/* Of a CA: constraints, which also exclude all addresses (networks whose masks are zero). Of a leaf:
 * its one name. */
static bool add_names(X509 *x, X509V3_CTX *ctx, const struct certificate_spec *s)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(CERTIFICATE_NAMES_MAX * (NAME_LEN + 20));
    bool ca = s->path >= 0, ok = true;

    if (ca)
        strbuf_addstr(&text, "critical,excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::");
    for (size_t i = 0; i < s->n_names && ok; i++) {
        ok = is_plain(s->names[i]);
        /* A constraint for *.x is written .x */
        strbuf_addf(&text, "%sDNS:%s", ca ? ",permitted;" : "",
                    s->names[i] + (ca && s->names[i][0] == '*'));
    }
    return ok && !text.truncated &&
           add_extension(x, ctx, ca ? NID_name_constraints : NID_subject_alt_name, text.buf);
}

static bool fill(X509 *x, const struct certificate_spec *s)
{
    X509_NAME *issuer;
    X509V3_CTX ctx;

    if (X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
        !X509_gmtime_adj(X509_getm_notBefore(x), s->from_s) ||
        !X509_gmtime_adj(X509_getm_notAfter(x), s->to_s) || X509_set_pubkey(x, s->key) != 1 ||
        !set_sandbox(x, s->common_name))
        return false;
    issuer = X509_get_subject_name(s->issuer ? s->issuer : x);
    X509V3_set_ctx(&ctx, s->issuer ? s->issuer : x, x, NULL, NULL, 0);
    return X509_set_issuer_name(x, issuer) == 1 && add_usage(x, &ctx, s->path) &&
           add_ids(x, s->key, s->issuer_key) && (s->n_names == 0 || add_names(x, &ctx, s));
}

X509 *certificate_make(const struct certificate_spec *spec, struct sg_error *e)
{
    X509 *x = X509_new();

    if (x && fill(x, spec) && X509_sign(x, spec->issuer_key, EVP_sha256()) > 0)
        return x;
    X509_free(x);
    certificate_error(e, "make a certificate");
    return NULL;
}
