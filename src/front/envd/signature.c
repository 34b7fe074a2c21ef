#include "front/envd/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#define PREFIX     "v1_"
#define DIGEST_LEN 32

struct signature_check {
    EVP_MD_CTX *common; /* hashed everything up to the token */
    EVP_MD_CTX *whole;
    char expiry[EXPIRY_MAX_LEN + 2]; /* ":" and the digits, or "" */
};

bool signature_shaped(const char *s)
{
    if (strlen(s) != SIGNATURE_LEN || strncmp(s, PREFIX, strlen(PREFIX)) != 0)
        return false;
    for (s += strlen(PREFIX); *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9') &&
            *s != '+' && *s != '/')
            return false;
    return true;
}

bool signature_expiry_valid(const char *s)
{
    size_t len = strspn(s, "0123456789");

    return len > 0 && len <= EXPIRY_MAX_LEN && s[len] == '\0' && (s[0] != '0' || len == 1);
}

bool signature_expired(const char *expiry, int64_t now_s)
{
    return strtoll(expiry, NULL, 10) < now_s;
}

static void must(int ok)
{
    if (ok != 1)
        abort(); /* can only fail for want of memory: the algorithm is built in */
}

static void add(EVP_MD_CTX *c, const char *field)
{
    must(EVP_DigestUpdate(c, field, strlen(field)));
    must(EVP_DigestUpdate(c, ":", 1));
}

struct signature_check *signature_check_new(const struct signed_request *r)
{
    if (r->expiry && !signature_expiry_valid(r->expiry))
        return NULL;

    struct signature_check *c = xcalloc(1, sizeof(*c));
    c->common = EVP_MD_CTX_new();
    c->whole = EVP_MD_CTX_new();
    must(c->common && c->whole);
    must(EVP_DigestInit_ex(c->common, EVP_sha256(), NULL));
    add(c->common, r->path);
    add(c->common, r->operation);
    add(c->common, r->user);
    if (r->expiry)
        snprintf(c->expiry, sizeof(c->expiry), ":%s", r->expiry);
    return c;
}

void signature_check_free(struct signature_check *c)
{
    if (!c)
        return;
    EVP_MD_CTX_free(c->common);
    EVP_MD_CTX_free(c->whole); /* wipes the hashed token, too */
    free(c);
}

void signature_make(struct signature_check *c, const char *token, char ret[SIGNATURE_LEN + 1])
{
    unsigned char digest[DIGEST_LEN], text[DIGEST_LEN * 2];

    must(EVP_MD_CTX_copy_ex(c->whole, c->common));
    must(EVP_DigestUpdate(c->whole, token, strlen(token)));
    must(EVP_DigestUpdate(c->whole, c->expiry, strlen(c->expiry)));
    must(EVP_DigestFinal_ex(c->whole, digest, NULL));
    EVP_EncodeBlock(text, digest, sizeof(digest)); /* 43 characters and one of padding */
    memcpy(ret, PREFIX, strlen(PREFIX));
    memcpy(ret + strlen(PREFIX), text, SIGNATURE_LEN - strlen(PREFIX));
    ret[SIGNATURE_LEN] = '\0';
}

bool signature_matches(struct signature_check *c, const char *token, const char *signature)
{
    char right[SIGNATURE_LEN + 1];

    signature_make(c, token, right);
    return strlen(signature) == SIGNATURE_LEN &&
           CRYPTO_memcmp(signature, right, SIGNATURE_LEN) == 0;
}
