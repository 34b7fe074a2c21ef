#include "front/mcp/session.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>

#define SECRET_NAME "mcp-session"
#define SECRET_LEN  32
#define HALF        (SESSION_LEN / 2)
#define HALF_BYTES  (HALF / 2)
#define ENDED_MAX   1024 /* ended sessions that are remembered; then the oldest is forgotten */

static struct {
    char ids[ENDED_MAX][SESSION_LEN + 1];
    size_t next;
} ended;

static void write_hex(const unsigned char *bytes, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    ret[2 * n] = '\0';
}

/* Computes the second half of an id from the first. */
static int prove(struct front *f, const char *tenant, const char *random, char ret[HALF + 1],
                 struct sg_error *e)
{
    unsigned char secret[SECRET_LEN], digest[EVP_MAX_MD_SIZE];
    char text[ID_LEN + 1 + HALF + 1];
    unsigned len = 0;
    int r = store_secret(f->store, SECRET_NAME, secret, sizeof(secret), e);

    if (r < 0)
        return r;
    int n = snprintf(text, sizeof(text), "%.*s:%.*s", ID_LEN, tenant, HALF, random);
    if (!HMAC(EVP_sha256(), secret, sizeof(secret), (unsigned char *)text, (size_t)n, digest, &len))
        abort(); /* can only fail for want of memory: the algorithm is built in */
    OPENSSL_cleanse(secret, sizeof(secret));
    write_hex(digest, HALF_BYTES, ret);
    return 0;
}

int mcp_session_new(struct front *f, const char *tenant, char ret[SESSION_LEN + 1],
                    struct sg_error *e)
{
    unsigned char bytes[HALF_BYTES];
    char id[SESSION_LEN + 1];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return err_set(e, SG_ERR_INTERNAL, -EIO, "no random bytes");
    write_hex(bytes, sizeof(bytes), id);
    int r = prove(f, tenant, id, id + HALF, e);
    if (r == 0)
        memcpy(ret, id, sizeof(id));
    return r;
}

static bool is_ended(const char *id)
{
    for (size_t i = 0; i < ENDED_MAX; i++)
        if (strcmp(ended.ids[i], id) == 0)
            return true;
    return false;
}

bool mcp_session_valid(struct front *f, const char *tenant, const char *id)
{
    char proof[HALF + 1];

    if (strlen(id) != SESSION_LEN || strspn(id, "0123456789abcdef") != SESSION_LEN ||
        prove(f, tenant, id, proof, NULL) < 0)
        return false;
    return CRYPTO_memcmp(proof, id + HALF, HALF) == 0 && !is_ended(id);
}

void mcp_session_end(const char *id)
{
    memcpy(ended.ids[ended.next], id, SESSION_LEN + 1);
    ended.next = (ended.next + 1) % ENDED_MAX;
}
