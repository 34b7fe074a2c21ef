/* An authority of our own: its files, and whom it can speak for. */
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "tap.h"

static const char *const names[] = {"localhost"};
static const struct authority_spec spec = {.common_name = "here", .names = names, .n_names = 1};

/* What OpenSSL says of a certificate for that name. */
static int verify(const struct authority *a, const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *leaf = CERTIFICATE(NULL, .key = key, .issuer = a->cert, .issuer_key = a->key,
                             .from_s = -60, .to_s = 60, .path = -1, .names = &name, .n_names = 1);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int r;

    X509_STORE_add_cert(store, a->cert);
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), name, 0);
    r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(leaf);
    EVP_PKEY_free(key);
    return r;
}

TEST(it_speaks_for_its_names_alone)
{
    struct authority a = {0};

    EXPECT(authority_open(-1, &spec, &a, NULL) == 0);
    EXPECT(verify(&a, "localhost") == X509_V_OK);
    EXPECT(verify(&a, "api.localhost") == X509_V_OK);
    EXPECT(verify(&a, "3000-abc.localhost") == X509_V_OK);
    EXPECT(verify(&a, "example.com") == X509_V_ERR_PERMITTED_VIOLATION);
    EXPECT(verify(&a, "notlocalhost") == X509_V_ERR_PERMITTED_VIOLATION);
    EXPECT(verify(&a, "localhost.example.com") == X509_V_ERR_PERMITTED_VIOLATION);
    authority_done(&a);
}

TEST(its_files_are_kept)
{
    char path[] = "/tmp/test_tls_authority.XXXXXX";
    AUTO(close_p) int fd = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct authority first = {0}, again = {0}, other = {0};
    struct stat st;

    EXPECT(authority_open(fd, &spec, &first, NULL) == 0);
    EXPECT(fstatat(fd, "ca.key", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    EXPECT(authority_open(fd, &spec, &again, NULL) == 0);
    EXPECT(X509_cmp(first.cert, again.cert) == 0);
    unlinkat(fd, "ca.pem", 0); /* follows from the key: whoever trusted the old one trusts it */
    EXPECT(authority_open(fd, &spec, &other, NULL) == 0);
    EXPECT(EVP_PKEY_eq(first.key, other.key) == 1);
    EXPECT(fstatat(fd, "ca.pem", &st, 0) == 0);
    authority_done(&first);
    authority_done(&again);
    authority_done(&other);
    unlinkat(fd, "ca.key", 0);
    unlinkat(fd, "ca.pem", 0);
    EXPECT(rmdir(path) == 0); /* nothing else was left there */
}

TAP_MAIN
