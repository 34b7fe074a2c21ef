/* The layout of a sealed text, before base64:
 *
 *   1 byte    SEAL_VERSION
 *   32 bytes  the public half of the pair that was made for this text
 *   n bytes   ChaCha20-Poly1305 of the secret
 *   16 bytes  its tag, over the version and the purpose as well
 *
 * Key and nonce come from HKDF over the result of X25519, with both public keys as salt. Neither is
 * used twice, since each text has a pair of its own. */
#include <assert.h>
#include <openssl/evp.h>

#include "lib/text/base64.h"
#include "lib/vault/impl.h"

#define SEAL_VERSION 1
#define TAG_LEN      16
#define NONCE_LEN    12
#define HEAD_LEN     (1 + VAULT_PUBLIC_LEN)
#define BINARY_MAX   (HEAD_LEN + VAULT_SECRET_MAX + TAG_LEN)

static void cipher_free_p(EVP_CIPHER_CTX **p)
{
    EVP_CIPHER_CTX_free(*p);
}

/* Begins to seal or to open: derives the key from the agreed secret, and feeds the bytes that are
 * only authenticated. -EBADMSG: the two keys give no secret. */
static int begin(EVP_CIPHER_CTX *c, bool seal, const uint8_t *own_private,
                 const uint8_t *other_public, const uint8_t *text_public,
                 const uint8_t *reader_public, const char *purpose)
{
    uint8_t shared[VAULT_KEY_LEN], salt[2 * VAULT_PUBLIC_LEN], key[VAULT_KEY_LEN + NONCE_LEN];
    const uint8_t version = SEAL_VERSION;
    int r = vault_agree(own_private, other_public, shared), n;

    if (r < 0)
        return r;
    memcpy(salt, text_public, VAULT_PUBLIC_LEN);
    memcpy(salt + VAULT_PUBLIC_LEN, reader_public, VAULT_PUBLIC_LEN);
    vault_hkdf(shared, sizeof(shared), salt, sizeof(salt), "sandglass seal 1", key, sizeof(key));
    assert(EVP_CipherInit_ex(c, EVP_chacha20_poly1305(), NULL, key, key + VAULT_KEY_LEN, seal) ==
           1);
    explicit_bzero(shared, sizeof(shared));
    explicit_bzero(key, sizeof(key));
    assert(EVP_CipherUpdate(c, NULL, &n, &version, 1) == 1);
    assert(EVP_CipherUpdate(c, NULL, &n, (const uint8_t *)purpose, (int)strlen(purpose)) == 1);
    return 0;
}

/* Fills all parts of the sealed text. */
static int seal_binary(const uint8_t public_key[VAULT_PUBLIC_LEN], const char *purpose,
                       const void *bytes, size_t len, uint8_t *ret)
{
    AUTO(cipher_free_p) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t private_key[VAULT_KEY_LEN];
    int n = 0, r;

    assert(c);
    ret[0] = SEAL_VERSION;
    vault_pair(private_key, ret + 1);
    r = begin(c, true, private_key, public_key, ret + 1, public_key, purpose);
    explicit_bzero(private_key, sizeof(private_key));
    if (r < 0)
        return r;
    if (len > 0)
        assert(EVP_CipherUpdate(c, ret + HEAD_LEN, &n, bytes, (int)len) == 1 && (size_t)n == len);
    assert(EVP_CipherFinal_ex(c, ret + HEAD_LEN + len, &n) == 1 && n == 0);
    assert(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, ret + HEAD_LEN + len) == 1);
    return 0;
}

int vault_seal(const uint8_t public_key[VAULT_PUBLIC_LEN], const char *purpose, const void *bytes,
               size_t len, struct strbuf *out, struct sg_error *e)
{
    if (len > VAULT_SECRET_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "a secret of %zu bytes: at most %u are possible",
                       len, VAULT_SECRET_MAX);
    AUTO(free_p) uint8_t *binary = xcalloc(1, HEAD_LEN + len + TAG_LEN);
    int r = seal_binary(public_key, purpose, bytes, len, binary);
    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r, "the guard's public key is not valid");
    base64_encode(out, binary, HEAD_LEN + len + TAG_LEN);
    return out->truncated
               ? err_set(e, SG_ERR_INTERNAL, -ENOSPC, "no room for a secret of %zu bytes", len)
               : 0;
}

static int open_binary(const struct vault_key *k, const char *purpose, uint8_t *binary, size_t len,
                       struct secret *ret)
{
    AUTO(cipher_free_p) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    struct secret s;
    int n = 0, r;

    assert(c);
    if (len < HEAD_LEN + TAG_LEN || binary[0] != SEAL_VERSION)
        return -EBADMSG;
    size_t inner = len - HEAD_LEN - TAG_LEN;
    r = begin(c, false, k->private_key.bytes, binary + 1, binary + 1, k->public_key, purpose);
    if (r == 0)
        r = secret_alloc(&s, inner);
    if (r < 0)
        return r;
    if (inner > 0)
        assert(EVP_CipherUpdate(c, s.bytes, &n, binary + HEAD_LEN, (int)inner) == 1);
    assert(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, binary + HEAD_LEN + inner) == 1);
    if (EVP_CipherFinal_ex(c, s.bytes + inner, &n) != 1) {
        secret_done(&s);
        return -EBADMSG;
    }
    secret_done(ret);
    *ret = s;
    return 0;
}

int vault_open(const struct vault_key *k, const char *purpose, const char *sealed,
               struct secret *ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf binary = strbuf_upto(BINARY_MAX);
    size_t len = strnlen(sealed, VAULT_SEALED_MAX + 1);
    int r = -EBADMSG;

    if (len <= VAULT_SEALED_MAX && base64_decode(&binary, sealed, len) == 0 && !binary.truncated)
        r = open_binary(k, purpose, (uint8_t *)binary.buf, binary.len, ret);
    if (r == -EBADMSG)
        return err_set(e, SG_ERR_INVALID, r,
                       "the secret '%s' was not sealed for this server and name, or was changed: "
                       "set it again",
                       purpose);
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r,
                           "no memory can be locked for the secret '%s': raise RLIMIT_MEMLOCK",
                           purpose)
                 : 0;
}
