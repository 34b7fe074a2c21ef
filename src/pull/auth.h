/* The proof that a registry wants. It begins without one; what to do about a 401 says the
 * registry's challenge:
 *
 *   Basic    user and password
 *   Bearer   a token, from whom the challenge names: asked for with user and password, or with an
 *            identity token (OAuth 2), or with nothing
 *
 * ECR's user and password are asked of AWS first, with a signed request. */
#pragma once

#include "pull/retry.h"

struct auth {
    struct http *http;
    struct strbuf header; /* the value of Authorization; empty: none yet */
    struct strbuf basic;  /* "Basic ...", made of the credentials; empty: not made, or none */
};

void auth_init(struct auth *a, struct http *h);
void auth_done(struct auth *a); /* wipes; accepts a zeroed struct */
/* The header for requests to the registry; NULL: none. */
const char *auth_header(const struct auth *a);
/* Takes a challenge of `registry` up: makes another header. */
int auth_answer(struct auth *a, const struct url *registry, const char *challenge,
                const char *repository, struct sg_error *e);
