/* Certificates of sandboxes: who believes them, and for which names. */
#include <dirent.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "guard/ca.h"
#include "tap.h"
#include "lib/vault/vault.h"

#define SANDBOX "abcdefghij0123456789"
#define OTHER   "zzzzzzzzzz0123456789"

static struct guard guard;

static struct ca *open_ca(int dirfd)
{
    struct sg_error e = {0};
    struct ca *ca = NULL;

    if (!guard.key)
        guard.key = vault_key_new();
    if (ca_new(&guard, dirfd, &ca, &e) < 0)
        printf("# %s\n", e.message);
    EXPECT(ca);
    return ca;
}

/* What the sandbox is given to trust. */
static X509 *anchor(struct ca *ca, const char *sandbox, const char *const *names, size_t n,
                    char hash[16])
{
    AUTO(strbuf_done) struct strbuf pem = {0};
    struct sg_error e = {0};

    strbuf_init(&pem, 65536);
    EXPECT(ca_certificate(ca, sandbox, names, n, &pem, hash, &e) == 0);
    BIO *bio = BIO_new_mem_buf(pem.buf, (int)pem.len);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    EXPECT(x);
    return x;
}

/* What OpenSSL says of a leaf, with one certificate that is trusted. */
static int verify(X509 *root, X509 *leaf, STACK_OF(X509) * chain, const char *host)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int r;

    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(ctx, store, leaf, chain);
    X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), host, 0);
    r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return r;
}

/* The leaf that a sandbox's client is shown for a name, checked against a root. */
static int verify_shown(struct ca *ca, X509 *root, const char *sandbox, const char *name)
{
    SSL *ssl = ca_sandbox_side(ca, sandbox, name, NULL);
    STACK_OF(X509) *chain = NULL;
    int r;

    SSL_get0_chain_certs(ssl, &chain);
    r = verify(root, SSL_get_certificate(ssl), chain, name);
    SSL_free(ssl);
    return r;
}

TEST(a_sandbox_believes_its_own_names)
{
    const char *names[] = {"api.test", "*.wild.test"};
    struct ca *ca = open_ca(-1);
    char hash[16], want[16];
    X509 *root = anchor(ca, SANDBOX, names, 2, hash);

    snprintf(want, sizeof(want), "%08lx",
             X509_NAME_hash_ex(X509_get_subject_name(root), NULL, NULL, NULL));
    EXPECT_STR(hash, want);
    EXPECT(verify_shown(ca, root, SANDBOX, "api.test") == X509_V_OK);
    EXPECT(verify_shown(ca, root, SANDBOX, "a.wild.test") == X509_V_OK);
    EXPECT(verify_shown(ca, root, SANDBOX, "a.b.wild.test") == X509_V_OK);
    X509_free(root);
    ca_free(ca);
}

TEST(and_no_others)
{
    const char *names[] = {"api.test", "*.wild.test"};
    struct ca *ca = open_ca(-1);
    char hash[16];
    X509 *root = anchor(ca, SANDBOX, names, 2, hash);

    EXPECT(verify_shown(ca, root, SANDBOX, "bank.test") == X509_V_ERR_PERMITTED_VIOLATION);
    EXPECT(verify_shown(ca, root, SANDBOX, "wild.test") == X509_V_ERR_PERMITTED_VIOLATION);
    EXPECT(verify_shown(ca, root, SANDBOX, "xapi.test") == X509_V_ERR_PERMITTED_VIOLATION);
    X509_free(root);
    ca_free(ca);
}

TEST(another_sandbox_does_not_believe_it)
{
    const char *names[] = {"api.test"};
    struct ca *ca = open_ca(-1);
    char hash[16], other_hash[16];
    X509 *root = anchor(ca, SANDBOX, names, 1, hash),
         *other = anchor(ca, OTHER, names, 1, other_hash);

    EXPECT(strcmp(hash, other_hash) != 0);
    EXPECT(verify_shown(ca, other, OTHER, "api.test") == X509_V_OK);
    EXPECT(verify_shown(ca, other, SANDBOX, "api.test") != X509_V_OK);
    EXPECT(verify_shown(ca, root, OTHER, "api.test") != X509_V_OK);
    X509_free(root);
    X509_free(other);
    ca_free(ca);
}

TEST(who_trusts_the_guard_s_ca_believes_all_sandboxes)
{
    struct ca *ca = open_ca(-1);

    EXPECT(verify_shown(ca, ca->root.cert, SANDBOX, "api.test") == X509_V_OK);
    EXPECT(verify_shown(ca, ca->root.cert, OTHER, "api.test") == X509_V_OK);
    ca_free(ca);
}

TEST(a_guard_that_was_restarted_has_the_same_key)
{
    const char *names[] = {"api.test"};
    struct ca *first = open_ca(-1), *second = open_ca(-1);
    char hash[16];
    X509 *root = anchor(first, SANDBOX, names, 1, hash);

    EXPECT(verify_shown(second, root, SANDBOX, "api.test") == X509_V_OK);
    X509_free(root);
    ca_free(first);
    ca_free(second);
}

TEST(leaves_live_a_day_and_intermediates_not_a_month)
{
    struct ca *ca = open_ca(-1);
    SSL *ssl = ca_sandbox_side(ca, SANDBOX, "api.test", NULL);
    STACK_OF(X509) *chain = NULL;
    int days, seconds;

    SSL_get0_chain_certs(ssl, &chain);
    ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(SSL_get_certificate(ssl)));
    EXPECT(days <= 1);
    ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(sk_X509_value(chain, 0)));
    EXPECT(days <= 30);
    SSL_free(ssl);
    ca_free(ca);
}

TEST(leaves_are_kept_and_not_without_bound)
{
    struct ca *ca = open_ca(-1);
    SSL *a = ca_sandbox_side(ca, SANDBOX, "api.test", NULL);
    SSL *b = ca_sandbox_side(ca, SANDBOX, "api.test", NULL);
    X509 *cert = SSL_get_certificate(a);
    char name[64];

    EXPECT(cert == SSL_get_certificate(b));
    SSL_free(b);
    for (int i = 0; i < CA_LEAVES; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        SSL_free(ca_sandbox_side(ca, SANDBOX, name, NULL));
    }
    b = ca_sandbox_side(ca, SANDBOX, "api.test", NULL);
    EXPECT(cert != SSL_get_certificate(b));
    SSL_free(a);
    SSL_free(b);
    ca_free(ca);
}

TEST(long_names_have_certificates_too)
{
    const char *names[] = {"a23456789a123456789a123456789a123456789a123456789a123456789.bcd.test"};
    struct ca *ca = open_ca(-1);
    char hash[16];
    X509 *root = anchor(ca, SANDBOX, names, 1, hash);

    EXPECT(verify_shown(ca, root, SANDBOX, names[0]) == X509_V_OK);
    X509_free(root);
    ca_free(ca);
}

TEST(without_names_there_is_no_certificate)
{
    AUTO(strbuf_done) struct strbuf pem = {0};
    struct ca *ca = open_ca(-1);
    struct sg_error e = {0};
    char hash[16];

    strbuf_init(&pem, 65536);
    EXPECT(ca_certificate(ca, SANDBOX, NULL, 0, &pem, hash, &e) == -EINVAL);
    ca_free(ca);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int make_dir(char path[64])
{
    snprintf(path, 64, "/tmp/test_guard_ca.XXXXXX");
    EXPECT(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void drop_dir(int fd, const char *path)
{
    unlinkat(fd, "ca.key", 0);
    unlinkat(fd, "ca.pem", 0);
    close(fd);
    EXPECT(rmdir(path) == 0); /* nothing else was left there */
}

TEST(the_guard_s_ca_is_kept_in_its_directory)
{
    char path[64];
    int fd = make_dir(path);
    struct ca *first = open_ca(fd), *second, *third;
    struct stat st;

    EXPECT(fstatat(fd, "ca.key", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    EXPECT(fstatat(fd, "ca.pem", &st, 0) == 0);
    second = open_ca(fd);
    EXPECT(X509_cmp(first->root.cert, second->root.cert) == 0);
    /* The certificate alone can be made again. */
    unlinkat(fd, "ca.pem", 0);
    third = open_ca(fd);
    EXPECT(EVP_PKEY_eq(first->root.key, third->root.key) == 1);
    EXPECT(verify_shown(third, first->root.cert, SANDBOX, "api.test") == X509_V_OK);
    ca_free(first);
    ca_free(second);
    ca_free(third);
    drop_dir(fd, path);
}

TEST(a_key_that_cannot_be_read_is_not_replaced)
{
    char path[64], *text = NULL;
    int fd = make_dir(path);
    struct ca *ca = NULL;
    struct sg_error e = {0};
    AUTO(close_p) int key = openat(fd, "ca.key", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    size_t len;

    EXPECT(fd_write_all(key, "nonsense", 8) == 0);
    EXPECT(ca_new(&guard, fd, &ca, &e) < 0);
    EXPECT(strstr(e.message, "ca.key"));
    EXPECT(file_read(fd, "ca.key", 100, &text, &len) == 0 && len == 8);
    free(text);
    drop_dir(fd, path);
}

TEST(roots_that_are_no_certificates_are_refused)
{
    struct guard g = {.key = guard.key};
    char text[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    struct sg_error e = {0};
    struct ca *ca = NULL;

    g.roots_pem = text;
    g.roots_len = strlen(text);
    EXPECT(ca_new(&g, -1, &ca, &e) < 0);
    EXPECT(strstr(e.message, "egress_roots"));
}

TEST(roots_of_new_settings_are_heeded)
{
    struct guard g = {.key = guard.key};
    struct sg_error e = {0};
    struct ca *ca = NULL;
    char *pem = NULL;
    SSL *before, *after, *same;

    EXPECT(ca_new(&g, -1, &ca, &e) == 0);
    before = ca_server_side(ca, "api.test", &e);
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, ca->root.cert);
    g.roots_len = (size_t)BIO_get_mem_data(bio, &pem);
    g.roots_pem = pem;
    after = ca_server_side(ca, "api.test", &e);
    same = ca_server_side(ca, "api.test", &e);
    EXPECT(SSL_get_SSL_CTX(before) != SSL_get_SSL_CTX(after));
    EXPECT(SSL_get_SSL_CTX(same) == SSL_get_SSL_CTX(after));
    SSL_free(before);
    SSL_free(after);
    SSL_free(same);
    ca_free(ca);
    BIO_free(bio);
}

TAP_MAIN
