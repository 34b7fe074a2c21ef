#include "guard/ca.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/vault/vault.h"

#define KEY_FILE   "ca.key"
#define CERT_FILE  "ca.pem"
#define FILE_MAX   (16u * 1024)
#define HOUR       3600l
#define DAY        (24 * HOUR)
#define YEAR       (365 * DAY)
#define NAMES_MAX  2048
#define NAME_LEN   255 /* of a name, perhaps with "*." */
#define SCALAR_LEN 48 /* 128 bits more than the group's order, so the remainder is nearly uniform */
#define POINT_LEN  65

int ca_error(struct sg_error *e, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return err_set(e, SG_ERR_INTERNAL, -EIO, "%s: %s", what, reason ? reason : "unknown error");
}

/* ---- a certificate --------------------------------------------------------------------------- */

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
static bool add_names(X509 *x, X509V3_CTX *ctx, const struct ca_certificate_spec *s)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(NAMES_MAX * (NAME_LEN + 20));
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

static bool fill(X509 *x, const struct ca_certificate_spec *s)
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

X509 *ca_make_certificate(const struct ca_certificate_spec *spec, struct sg_error *e)
{
    X509 *x = X509_new();

    if (x && fill(x, spec) && X509_sign(x, spec->issuer_key, EVP_sha256()) > 0)
        return x;
    X509_free(x);
    ca_error(e, "make a certificate");
    return NULL;
}

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
        ca_error(e, "derive a key");
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
        return ca_error(e, "write a certificate");
    return out->truncated ? err_set(e, SG_ERR_LIMIT, -E2BIG, "the certificate is too long") : 0;
}

int ca_certificate(struct ca *ca, const char *sandbox_id, const char *const *names, size_t n,
                   struct strbuf *pem, char hash[16], struct sg_error *e)
{
    char common_name[64];
    EVP_PKEY *key;
    X509 *x = NULL;
    int r;

    if (n == 0 || n > NAMES_MAX)
        return err_invalid(e, "a sandbox's CA is for 1 to %d names, these are %zu", NAMES_MAX, n);
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

static X509 *make_root(EVP_PKEY *key, struct sg_error *e)
{
    return CERTIFICATE(e, .common_name = "Sandglass guard", .key = key, .issuer_key = key,
                       .from_s = -DAY, .to_s = 10 * YEAR, .path = 1);
}

/* Writes a file beside its place and moves it there, so that nobody finds half of it. */
static int put_file(int dirfd, const char *name, const char *text, size_t len, mode_t mode,
                    struct sg_error *e)
{
    char temporary[32];
    AUTO(close_p) int fd = -1;
    int r;

    snprintf(temporary, sizeof(temporary), ".%s.new", name);
    unlinkat(dirfd, temporary, 0);
    fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_errno(e, "make %s in the guard's directory", name);
    r = fd_write_all(fd, text, len);
    if (r < 0)
        return errno = -r, err_errno(e, "write %s in the guard's directory", name);
    if (fsync(fd) < 0 || renameat(dirfd, temporary, dirfd, name) < 0)
        return err_errno(e, "write %s in the guard's directory", name);
    return 0;
}

/* Writes a BIO that OpenSSL has filled to a file, wipes its text and frees it. */
static int put_pem(int dirfd, const char *name, BIO *bio, mode_t mode, struct sg_error *e)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    int r = len > 0 ? put_file(dirfd, name, text, (size_t)len, mode, e) : ca_error(e, name);

    if (len > 0)
        explicit_bzero(text, (size_t)len);
    BIO_free(bio);
    return r;
}

static BIO *read_pem(int dirfd, const char *name, char **ret_text, size_t *ret_len)
{
    return file_read(dirfd, name, FILE_MAX, ret_text, ret_len) == 0
               ? BIO_new_mem_buf(*ret_text, (int)*ret_len)
               : NULL;
}

/* A key that exists but cannot be read is not replaced, because everything that trusts it would
 * stop working. */
static int load_key(struct ca *ca, int dirfd, struct sg_error *e)
{
    char *text = NULL;
    size_t len = 0;
    BIO *bio = read_pem(dirfd, KEY_FILE, &text, &len);

    if (bio)
        ca->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "");
    BIO_free(bio);
    if (text)
        explicit_bzero(text, len);
    free(text);
    if (ca->key)
        return EVP_PKEY_is_a(ca->key, "EC")
                   ? 0
                   : err_invalid(e, "%s is not a key of the guard", KEY_FILE);
    if (bio || faccessat(dirfd, KEY_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return ca_error(e, "read " KEY_FILE);
    ca->key = EVP_EC_gen("P-256");
    bio = BIO_new(BIO_s_mem());
    if (!ca->key || !bio ||
        PEM_write_bio_PrivateKey(bio, ca->key, NULL, NULL, 0, NULL, NULL) != 1) {
        BIO_free(bio);
        return ca_error(e, "make " KEY_FILE);
    }
    return put_pem(dirfd, KEY_FILE, bio, 0600, e);
}

/* The certificate follows from the key, so one that is missing, expires within 30 days or belongs
 * to another key is made anew. */
static int load_certificate(struct ca *ca, int dirfd, struct sg_error *e)
{
    time_t month = time(NULL) + 30 * DAY;
    char *text = NULL;
    size_t len = 0;
    BIO *bio = read_pem(dirfd, CERT_FILE, &text, &len);
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    free(text);
    if (x && X509_check_private_key(x, ca->key) == 1 &&
        X509_cmp_time(X509_get0_notAfter(x), &month) > 0) {
        ca->cert = x;
        return 0;
    }
    X509_free(x);
    ERR_clear_error();
    ca->cert = make_root(ca->key, e);
    if (!ca->cert)
        return -EIO;
    bio = BIO_new(BIO_s_mem());
    if (!bio || PEM_write_bio_X509(bio, ca->cert) != 1) {
        BIO_free(bio);
        return ca_error(e, "make " CERT_FILE);
    }
    return put_pem(dirfd, CERT_FILE, bio, 0644, e);
}

static int make_in_memory(struct ca *ca, struct sg_error *e)
{
    ca->key = EVP_EC_gen("P-256");
    if (!ca->key)
        return ca_error(e, "make the guard's CA");
    ca->cert = make_root(ca->key, e);
    return ca->cert ? 0 : -EIO;
}

int ca_new(struct guard *g, int dirfd, struct ca **ret, struct sg_error *e)
{
    struct ca *ca = xcalloc(1, sizeof(*ca));
    int r;

    ERR_clear_error();
    ca->guard = g;
    r = dirfd < 0 ? make_in_memory(ca, e) : load_key(ca, dirfd, e);
    if (r == 0 && dirfd >= 0)
        r = load_certificate(ca, dirfd, e);
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
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    free(ca);
}
