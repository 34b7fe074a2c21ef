/* The header WWW-Authenticate: which proof a registry wants (RFC 9110, 11.6.1, and the token
 * protocol of Docker's registries). A header may hold several challenges. */
#pragma once

#include "lib/base/err.h"

enum challenge_scheme {
    CHALLENGE_NONE, /* none that we know */
    CHALLENGE_BASIC,
    CHALLENGE_BEARER, /* with a realm: it is preferred */
};

struct challenge {
    enum challenge_scheme scheme;
    char realm[1024]; /* Bearer: the URL of whoever gives tokens */
    char service[256];
    char error[64]; /* "insufficient_scope", if a token was refused */
};

/* Reads all challenges of a header's value. Parameters that are too long, repeated or of no use are
 * left out; a text that is no list of challenges gives what was read before the mistake. */
void challenge_parse(const char *text, size_t len, struct challenge *ret);
