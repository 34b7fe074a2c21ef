/* Signed addresses of files: a link that reads or writes one path without the access token.
 *
 *   signature = "v1_" base64(SHA-256(path ":" operation ":" user ":" token [":" expiry]))
 *
 * with the standard alphabet and no padding. E2B's SDKs make them; the form is theirs. It joins the
 * fields with a character that may be in a path, so the other fields must be plain: the caller has
 * checked the user's name, and the expiry is digits only. */
#pragma once

#include "lib/base/base.h"

#define SIGNATURE_LEN  46 /* "v1_" and 43 characters */
#define EXPIRY_MAX_LEN 12 /* digits; seconds since 1970 */

/* What was signed, but for the token. */
struct signed_request {
    const char *path;      /* as in the query; "" if there is none */
    const char *operation; /* "read" or "write" */
    const char *user;      /* as in the query; "" if there is none */
    const char *expiry;    /* as in the query; NULL if there is none */
};

/* Tries many tokens with one request: what is the same for all is hashed once. */
struct signature_check;

/* Does it look like a signature? Cheap, and says nothing about whether it is right. */
bool signature_shaped(const char *s);
/* Plain digits, no leading zero, not too many. */
bool signature_expiry_valid(const char *s);
bool signature_expired(const char *expiry, int64_t now_s);

/* NULL if the expiry is not valid. */
struct signature_check *signature_check_new(const struct signed_request *r);
void signature_check_free(struct signature_check *c); /* NULL is allowed */
void signature_make(struct signature_check *c, const char *token, char ret[SIGNATURE_LEN + 1]);
/* In constant time. */
bool signature_matches(struct signature_check *c, const char *token, const char *signature);

static inline void signature_check_free_p(struct signature_check **c)
{
    signature_check_free(*c);
}
