#include "pull/digest.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *prefix;
    size_t digits;
} algorithms[] = {{"sha256:", 64}, {"sha512:", 128}};

bool digest_parse(const char *text, size_t len, struct digest *ret)
{
    struct digest d = {0};

    for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++) {
        size_t prefix = strlen(algorithms[i].prefix);

        if (len != prefix + algorithms[i].digits || memcmp(text, algorithms[i].prefix, prefix) != 0)
            continue;
        for (size_t at = prefix; at < len; at++)
            if (!(text[at] >= '0' && text[at] <= '9') && !(text[at] >= 'a' && text[at] <= 'f'))
                return false;
        memcpy(d.text, text, len);
        *ret = d;
        return true;
    }
    return false;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return strcmp(a->text, b->text) == 0;
}

size_t digest_algorithm_len(const struct digest *d)
{
    return strcspn(d->text, ":");
}

/* ---- hashing --------------------------------------------------------------------------------- */

void hasher_reset(struct hasher *h)
{
    int good = EVP_DigestInit_ex(h->ctx, h->sha512 ? EVP_sha512() : EVP_sha256(), NULL);

    assert(good == 1);
}

void hasher_init(struct hasher *h, const struct digest *like)
{
    *h = (struct hasher){.ctx = EVP_MD_CTX_new(),
                         .sha512 = like && strncmp(like->text, "sha512:", 7) == 0};
    assert(h->ctx);
    hasher_reset(h);
}

void hasher_done(struct hasher *h)
{
    EVP_MD_CTX_free(h->ctx);
    *h = (struct hasher){0};
}

void hasher_add(struct hasher *h, const void *data, size_t len)
{
    int good = EVP_DigestUpdate(h->ctx, data, len);

    assert(good == 1);
}

struct digest hasher_end(struct hasher *h)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    struct digest d = {0};
    unsigned len = 0;
    int good = EVP_DigestFinal_ex(h->ctx, sum, &len);

    assert(good == 1 && len * 2 == algorithms[h->sha512].digits);
    size_t at = strlen(algorithms[h->sha512].prefix);
    memcpy(d.text, algorithms[h->sha512].prefix, at);
    for (unsigned i = 0; i < len; i++) {
        d.text[at++] = hex[sum[i] >> 4];
        d.text[at++] = hex[sum[i] & 15];
    }
    return d;
}

struct digest digest_of(const void *data, size_t len, const struct digest *like)
{
    AUTO(hasher_done) struct hasher h = {0};

    hasher_init(&h, like);
    hasher_add(&h, data, len);
    return hasher_end(&h);
}
