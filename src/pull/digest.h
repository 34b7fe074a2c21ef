/* Digests, "sha256:<64 hex digits>" and "sha512:<128>", and hashing as bytes come. */
#pragma once

#include <openssl/evp.h>

#include "lib/base/err.h"

#define DIGEST_TEXT_MAX (sizeof("sha512:") + 128)

struct digest {
    char text[DIGEST_TEXT_MAX]; /* "": none */
};

/* Takes exactly `len` characters; hexadecimal digits are lower case. */
bool digest_parse(const char *text, size_t len, struct digest *ret);
static inline bool digest_given(const struct digest *d)
{
    return d->text[0] != '\0';
}
bool digest_equal(const struct digest *a, const struct digest *b);
/* "sha256" of "sha256:...", and the digits. */
size_t digest_algorithm_len(const struct digest *d);
static inline const char *digest_hex(const struct digest *d)
{
    return d->text + digest_algorithm_len(d) + 1;
}

struct hasher {
    EVP_MD_CTX *ctx;
    bool sha512;
};

/* In the algorithm of `like`, or in SHA-256 if that is NULL or none. */
void hasher_init(struct hasher *h, const struct digest *like);
void hasher_done(struct hasher *h); /* accepts a zeroed struct */
void hasher_reset(struct hasher *h);
void hasher_add(struct hasher *h, const void *data, size_t len);
/* Ends the hash: nothing can be added before a reset. */
struct digest hasher_end(struct hasher *h);
struct digest digest_of(const void *data, size_t len, const struct digest *like);
