#include "lib/tls/authority.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/tls/certificate.h"

#define KEY_FILE  "ca.key"
#define CERT_FILE "ca.pem"
#define FILE_MAX  (16u * 1024)
#define DAY       (24 * 3600l)
#define YEAR      (365 * DAY)

static X509 *make_root(EVP_PKEY *key, const struct authority_spec *spec, struct sg_error *e)
{
    return CERTIFICATE(e, .common_name = spec->common_name, .key = key, .issuer_key = key,
                       .from_s = -DAY, .to_s = 10 * YEAR, .path = spec->path, .names = spec->names,
                       .n_names = spec->n_names);
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
        return err_errno(e, "make %s in the directory of keys", name);
    r = fd_write_all(fd, text, len);
    if (r < 0)
        return errno = -r, err_errno(e, "write %s in the directory of keys", name);
    if (fsync(fd) < 0 || renameat(dirfd, temporary, dirfd, name) < 0)
        return err_errno(e, "write %s in the directory of keys", name);
    return 0;
}

/* Writes a BIO that OpenSSL has filled to a file, wipes its text and frees it. */
static int put_pem(int dirfd, const char *name, BIO *bio, mode_t mode, struct sg_error *e)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    int r =
        len > 0 ? put_file(dirfd, name, text, (size_t)len, mode, e) : certificate_error(e, name);

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
static int load_key(struct authority *a, int dirfd, struct sg_error *e)
{
    char *text = NULL;
    size_t len = 0;
    BIO *bio = read_pem(dirfd, KEY_FILE, &text, &len);

    if (bio)
        a->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "");
    BIO_free(bio);
    if (text)
        explicit_bzero(text, len);
    free(text);
    if (a->key)
        return EVP_PKEY_is_a(a->key, "EC")
                   ? 0
                   : err_invalid(e, "%s is not a key of an authority", KEY_FILE);
    if (bio || faccessat(dirfd, KEY_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return certificate_error(e, "read " KEY_FILE);
    a->key = EVP_EC_gen("P-256");
    bio = BIO_new(BIO_s_mem());
    if (!a->key || !bio || PEM_write_bio_PrivateKey(bio, a->key, NULL, NULL, 0, NULL, NULL) != 1) {
        BIO_free(bio);
        return certificate_error(e, "make " KEY_FILE);
    }
    return put_pem(dirfd, KEY_FILE, bio, 0600, e);
}

/* The certificate follows from the key, so one that is missing, expires within 30 days or belongs
 * to another key is made anew. */
static int load_certificate(struct authority *a, int dirfd, const struct authority_spec *spec,
                            struct sg_error *e)
{
    time_t month = time(NULL) + 30 * DAY;
    char *text = NULL;
    size_t len = 0;
    BIO *bio = read_pem(dirfd, CERT_FILE, &text, &len);
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    free(text);
    if (x && X509_check_private_key(x, a->key) == 1 &&
        X509_cmp_time(X509_get0_notAfter(x), &month) > 0) {
        a->cert = x;
        return 0;
    }
    X509_free(x);
    ERR_clear_error();
    a->cert = make_root(a->key, spec, e);
    if (!a->cert)
        return -EIO;
    bio = BIO_new(BIO_s_mem());
    if (!bio || PEM_write_bio_X509(bio, a->cert) != 1) {
        BIO_free(bio);
        return certificate_error(e, "make " CERT_FILE);
    }
    return put_pem(dirfd, CERT_FILE, bio, 0644, e);
}

static int make_in_memory(struct authority *a, const struct authority_spec *spec,
                          struct sg_error *e)
{
    a->key = EVP_EC_gen("P-256");
    if (!a->key)
        return certificate_error(e, "make the key of an authority");
    a->cert = make_root(a->key, spec, e);
    return a->cert ? 0 : -EIO;
}

int authority_open(int dirfd, const struct authority_spec *spec, struct authority *a,
                   struct sg_error *e)
{
    int r;

    ERR_clear_error();
    r = dirfd < 0 ? make_in_memory(a, spec, e) : load_key(a, dirfd, e);
    if (r == 0 && !a->cert)
        r = load_certificate(a, dirfd, spec, e);
    return r;
}

void authority_done(struct authority *a)
{
    X509_free(a->cert);
    EVP_PKEY_free(a->key);
    *a = (struct authority){0};
}
