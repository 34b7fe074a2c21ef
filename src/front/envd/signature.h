/* Signed addresses of files: a link that reads or writes one path without the access token.
 *
 *   signature = "v1_" base64(SHA-256(path ":" operation ":" user ":" token [":" expiry]))
 *
 * with the standard alphabet and no padding. E2B's SDKs make the signatures, so the form is theirs.
 * The form joins the fields with ":", which may be in a path, so the other fields must be plain:
 * the caller has checked the user's name, and the expiry is digits only. */
#pragma once

#include "lib/base/base.h"

#define SIGNATURE_LEN  46 /* "v1_" and 43 characters */
#define EXPIRY_MAX_LEN 12 /* digits; seconds since 1970 */

/* The signed fields, except the token. */
struct signed_request {
    const char *path;      /* as in the query; "" if there is none */
    const char *operation; /* "read" or "write" */
    const char *user;      /* as in the query; "" if there is none */
    const char *expiry;    /* as in the query; NULL if there is none */
};

/* Tries many tokens with one request: the fields before the token are hashed once. */
struct signature_check;

/* Whether `s` has the form of a signature. Cheap; whether the signature is right is another
 * matter. */
bool signature_shaped(const char *s);
/* Whether `s` is plain digits, without a leading zero, at most EXPIRY_MAX_LEN. */
bool signature_expiry_valid(const char *s);
bool signature_expired(const char *expiry, int64_t now_s);

/* NULL if the expiry is not valid. */
struct signature_check *signature_check_new(const struct signed_request *r);
void signature_check_free(struct signature_check *c); /* NULL is allowed */
void signature_make(struct signature_check *c, const char *token, char ret[SIGNATURE_LEN + 1]);
/* Compares in constant time. */
bool signature_matches(struct signature_check *c, const char *token, const char *signature);

static inline void signature_check_free_p(struct signature_check **c)
{
    signature_check_free(*c);
}
