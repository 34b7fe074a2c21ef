/* The key pair. The private key stays in locked memory; OpenSSL, which would keep it in its heap,
 * has it for the length of one call only. Calls of OpenSSL that fail only for want of memory are
 * asserted, because there is no way to go on with half a key. */
#include <assert.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/ids.h"
#include "lib/vault/impl.h"

static void pkey_free_p(EVP_PKEY **p)
{
    EVP_PKEY_free(*p);
}

static void pkey_ctx_free_p(EVP_PKEY_CTX **p)
{
    EVP_PKEY_CTX_free(*p);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static void public_of(EVP_PKEY *pair, uint8_t ret[VAULT_PUBLIC_LEN])
{
    size_t len = VAULT_PUBLIC_LEN;

    assert(EVP_PKEY_get_raw_public_key(pair, ret, &len) == 1 && len == VAULT_PUBLIC_LEN);
}

static EVP_PKEY *pair_of(const uint8_t private_key[VAULT_KEY_LEN])
{
    EVP_PKEY *pair =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, VAULT_KEY_LEN);

    assert(pair);
    return pair;
}

void vault_pair(uint8_t private_key[VAULT_KEY_LEN], uint8_t public_key[VAULT_PUBLIC_LEN])
{
    AUTO(pkey_free_p) EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    size_t len = VAULT_KEY_LEN;

    assert(pair);
    assert(EVP_PKEY_get_raw_private_key(pair, private_key, &len) == 1 && len == VAULT_KEY_LEN);
    public_of(pair, public_key);
}

int vault_agree(const uint8_t private_key[VAULT_KEY_LEN],
                const uint8_t public_key[VAULT_PUBLIC_LEN], uint8_t ret[VAULT_KEY_LEN])
{
    AUTO(pkey_free_p) EVP_PKEY *own = pair_of(private_key);
    AUTO(pkey_free_p)
    EVP_PKEY *other =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_key, VAULT_PUBLIC_LEN);
    AUTO(pkey_ctx_free_p) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(own, NULL);
    size_t len = VAULT_KEY_LEN;

    assert(ctx && EVP_PKEY_derive_init(ctx) == 1);
    if (!other || EVP_PKEY_derive_set_peer(ctx, other) != 1 ||
        EVP_PKEY_derive(ctx, ret, &len) != 1 || len != VAULT_KEY_LEN)
        return -EBADMSG;
    return 0;
}

void vault_hkdf(const uint8_t *key, size_t key_len, const uint8_t *salt, size_t salt_len,
                const char *info, uint8_t *ret, size_t len)
{
    AUTO(pkey_ctx_free_p) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t got = len;

    assert(ctx && EVP_PKEY_derive_init(ctx) == 1);
    assert(EVP_PKEY_CTX_set_hkdf_md(ctx, EVP_sha256()) == 1);
    assert(EVP_PKEY_CTX_set1_hkdf_key(ctx, key, (int)key_len) == 1);
    assert(salt_len == 0 || EVP_PKEY_CTX_set1_hkdf_salt(ctx, salt, (int)salt_len) == 1);
    assert(EVP_PKEY_CTX_add1_hkdf_info(ctx, (const unsigned char *)info, (int)strlen(info)) == 1);
    assert(EVP_PKEY_derive(ctx, ret, &got) == 1 && got == len);
}

/* ---- the key and its file -------------------------------------------------------------------- */

static int key_from(const uint8_t private_key[VAULT_KEY_LEN], struct vault_key **ret)
{
    struct vault_key *k = xcalloc(1, sizeof(*k));
    int r = secret_set(&k->private_key, private_key, VAULT_KEY_LEN);

    if (r < 0) {
        free(k);
        return r;
    }
    AUTO(pkey_free_p) EVP_PKEY *pair = pair_of(private_key);
    public_of(pair, k->public_key);
    *ret = k;
    return 0;
}

struct vault_key *vault_key_new(void)
{
    uint8_t private_key[VAULT_KEY_LEN], public_key[VAULT_PUBLIC_LEN];
    struct vault_key *k = NULL;

    vault_pair(private_key, public_key);
    int r = key_from(private_key, &k);
    explicit_bzero(private_key, sizeof(private_key));
    return r < 0 ? NULL : k;
}

/* Reads the key's file. -ENOENT: there is none. */
static int read_key(int dirfd, const char *name, uint8_t ret[VAULT_KEY_LEN], struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? -ENOENT : err_errno(e, "open the key '%s'", name);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        return err_set(e, SG_ERR_INVALID, -EPERM,
                       "the key '%s' must be a file that its owner alone can read: chmod 600 it",
                       name);
    ssize_t n = pread(fd, ret, VAULT_KEY_LEN, 0);
    if (st.st_size != VAULT_KEY_LEN || n != VAULT_KEY_LEN)
        return err_set(e, SG_ERR_INVALID, -EUCLEAN,
                       "the key '%s' is damaged: bring it back from a backup, or remove it and set "
                       "all secrets again",
                       name);
    return 0;
}

/* Makes the key's file under another name first, so that whoever opens the key sees it whole, and
 * of two processes that make one at the same time the first wins. */
static int make_key(int dirfd, const char *name, struct sg_error *e)
{
    uint8_t private_key[VAULT_KEY_LEN], public_key[VAULT_PUBLIC_LEN];
    char random[ID_LEN + 1], temporary[ID_LEN + 8];

    id_random(random);
    snprintf(temporary, sizeof(temporary), ".%s.new", random);
    AUTO(close_p)
    int fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "make the key '%s'", name);
    vault_pair(private_key, public_key);
    int r = fd_write_all(fd, private_key, sizeof(private_key));
    explicit_bzero(private_key, sizeof(private_key));
    if (r == 0 && (fsync(fd) < 0 || linkat(dirfd, temporary, dirfd, name, 0) < 0))
        r = errno == EEXIST ? 0 : -errno;
    unlinkat(dirfd, temporary, 0);
    if (r == 0)
        fsync(dirfd);
    errno = -r;
    return r < 0 ? err_errno(e, "write the key '%s'", name) : 0;
}

int vault_key_open(int dirfd, const char *name, struct vault_key **ret, struct sg_error *e)
{
    uint8_t private_key[VAULT_KEY_LEN];
    int r = read_key(dirfd, name, private_key, e);

    if (r == -ENOENT) {
        r = make_key(dirfd, name, e);
        if (r == 0)
            r = read_key(dirfd, name, private_key, e);
        if (r == -ENOENT)
            return err_set(e, SG_ERR_INTERNAL, r, "the key '%s' was removed while it was made",
                           name);
    }
    if (r < 0)
        return r;
    r = key_from(private_key, ret);
    explicit_bzero(private_key, sizeof(private_key));
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r,
                           "no memory can be locked for the key: raise RLIMIT_MEMLOCK")
                 : 0;
}

void vault_key_free(struct vault_key *k)
{
    if (!k)
        return;
    secret_done(&k->private_key);
    free(k);
}

void vault_key_public(const struct vault_key *k, uint8_t ret[VAULT_PUBLIC_LEN])
{
    memcpy(ret, k->public_key, VAULT_PUBLIC_LEN);
}

void vault_key_derive(const struct vault_key *k, const char *label, uint8_t *ret, size_t len)
{
    AUTO(free_p) char *info = NULL;

    assert(asprintf(&info, "sandglass derive 1 %s", label) >= 0);
    vault_hkdf(k->private_key.bytes, k->private_key.len, NULL, 0, info, ret, len);
}
