#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include "lib/audit/audit_impl.h"
#include "lib/text/base64.h"
#include "lib/base/fd.h"

#define PEM_TEXT_MAX  4096
#define SIGNATURE_LEN 64

struct audit_signer {
    EVP_PKEY *key;
};

void audit_signer_free(struct audit_signer *s)
{
    if (s)
        EVP_PKEY_free(s->key);
    free(s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_text(int dirfd, const char *name, char **ret, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;

    if (r == 0)
        r = fd_read_all(fd, PEM_TEXT_MAX, ret, NULL);
    if (r == -ENOENT)
        return r;
    return r < 0 ? err_code(e, r, "cannot read '%s' of the record", name) : 0;
}

/* Writes a file whole or not at all. */
static int write_text(int dirfd, const char *name, mode_t mode, const char *text, size_t len,
                      struct sg_error *e)
{
    char temporary[64];
    int r = 0;

    snprintf(temporary, sizeof(temporary), "%s.new", name);
    unlinkat(dirfd, temporary, 0);
    AUTO(close_p)
    int fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return err_errno(e, "make '%s' of the record", name);
    r = fd_write_all(fd, text, len);
    if (r == 0 && (fsync(fd) < 0 || renameat(dirfd, temporary, dirfd, name) < 0))
        r = -errno;
    if (r < 0) {
        unlinkat(dirfd, temporary, 0);
        return err_code(e, r, "write '%s' of the record", name);
    }
    return 0;
}

static void bio_free_p(BIO **b)
{
    BIO_free(*b);
}

static int write_key(int dirfd, EVP_PKEY *key, bool private_half, struct sg_error *e)
{
    AUTO(bio_free_p) BIO *bio = BIO_new(private_half ? BIO_s_secmem() : BIO_s_mem());
    int ok = !bio           ? 0
             : private_half ? PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
                            : PEM_write_bio_PUBKEY(bio, key);
    char *text;

    if (ok != 1)
        return err_set(e, SG_ERR_INTERNAL, -EIO, "write the key of the record as text");
    long len = BIO_get_mem_data(bio, &text);
    return write_text(dirfd, private_half ? AUDIT_KEY_FILE : AUDIT_PUBLIC_FILE,
                      private_half ? 0600 : 0644, text, (size_t)len, e);
}

static EVP_PKEY *parse_key(const char *pem, bool private_half)
{
    AUTO(bio_free_p) BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key;

    if (!bio)
        return NULL;
    /* With an empty password, OpenSSL does not ask on the terminal for a file that wants one. */
    char none[] = "";
    key = private_half ? PEM_read_bio_PrivateKey(bio, NULL, NULL, none)
                       : PEM_read_bio_PUBKEY(bio, NULL, NULL, none);
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

int audit_signer_open(int dirfd, struct audit_signer **ret, struct sg_error *e)
{
    AUTO(free_p) char *pem = NULL;
    EVP_PKEY *key;
    int r = read_text(dirfd, AUDIT_KEY_FILE, &pem, e);

    if (r < 0 && r != -ENOENT)
        return r;
    key = pem ? parse_key(pem, true) : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (pem)
        explicit_bzero(pem, strlen(pem));
    if (!key)
        return err_invalid(e, "'%s' of the record is not an Ed25519 key", AUDIT_KEY_FILE);
    r = pem ? 0 : write_key(dirfd, key, true, e);
    if (r == 0)
        r = write_key(dirfd, key, false, e);
    if (r < 0) {
        EVP_PKEY_free(key);
        return r;
    }
    *ret = NEW(struct audit_signer, .key = key);
    return 0;
}

int audit_checker_open(int dirfd, const char *pem, struct audit_signer **ret, struct sg_error *e)
{
    AUTO(free_p) char *own = NULL;
    EVP_PKEY *key;
    int r = pem ? 0 : read_text(dirfd, AUDIT_PUBLIC_FILE, &own, e);

    if (r == -ENOENT)
        return err_set(e, SG_ERR_NOT_FOUND, r, "there is no '%s' beside the record",
                       AUDIT_PUBLIC_FILE);
    if (r < 0)
        return r;
    key = parse_key(pem ? pem : own, false);
    if (!key)
        return err_invalid(e, "the public key is not an Ed25519 key in PEM form");
    *ret = NEW(struct audit_signer, .key = key);
    return 0;
}

/* ---- signatures ------------------------------------------------------------------------------ */

static void md_free_p(EVP_MD_CTX **c)
{
    EVP_MD_CTX_free(*c);
}

void audit_sign(const struct audit_signer *s, const void *data, size_t len, struct strbuf *out)
{
    AUTO(md_free_p) EVP_MD_CTX *c = EVP_MD_CTX_new();
    unsigned char signature[SIGNATURE_LEN] = {0};
    size_t n = sizeof(signature);

    /* If memory is short the signature is zeros: the record goes on, and the head does not
     * count. */
    if (!c || EVP_DigestSignInit(c, NULL, NULL, NULL, s->key) != 1 ||
        EVP_DigestSign(c, signature, &n, data, len) != 1)
        memset(signature, 0, sizeof(signature));
    base64_encode(out, signature, sizeof(signature));
}

bool audit_check(const struct audit_signer *s, const void *data, size_t len, const char *signature,
                 size_t signature_len)
{
    AUTO(md_free_p) EVP_MD_CTX *c = EVP_MD_CTX_new();
    AUTO(strbuf_done) struct strbuf bytes = strbuf_upto(2 * SIGNATURE_LEN);

    return c && signature_len < 2 * SIGNATURE_LEN &&
           base64_decode(&bytes, signature, signature_len) == 0 && bytes.len == SIGNATURE_LEN &&
           EVP_DigestVerifyInit(c, NULL, NULL, NULL, s->key) == 1 &&
           EVP_DigestVerify(c, (const unsigned char *)bytes.buf, bytes.len, data, len) == 1;
}
