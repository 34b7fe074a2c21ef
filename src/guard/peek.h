/* What a connection is, by its first bytes and not by its port. Without I/O; each is fed what has
 * come so far, from the first byte on, again and again. */
#pragma once

#include "lib/base/err.h"
#include "guard/policy.h"

#define PEEK_MAX (16u * 1024)

enum peek_what {
    PEEK_MORE,  /* not clear yet */
    PEEK_TLS,   /* a whole ClientHello; name, if it has one */
    PEEK_HTTP,  /* a whole head of an HTTP/1 request; name */
    PEEK_OTHER, /* something else */
    PEEK_BAD, /* begins like TLS or HTTP, and is malformed or not whole in PEEK_MAX: never passed on
               */
};

struct peek {
    enum peek_what what;
    char name[POLICY_NAME_MAX + 1]; /* in the form of name_normalise; "" if there is none */
    bool ech; /* TLS: an encrypted ClientHello is in it, and the name need not be the real one */
    bool address; /* the name that was given is an address: name is "" */
    bool connect; /* HTTP: CONNECT */
    bool upgrade; /* HTTP: asks for another protocol */
    bool h2c;     /* HTTP/2 without TLS: its preface */
};

/* ret->what says whether to come back with more. */
void peek_bytes(const uint8_t *p, size_t len, struct peek *ret);

/* hello.c. p begins with 0x16. Reassembles the ClientHello over records. */
void peek_tls(const uint8_t *p, size_t len, struct peek *ret);
/* peek_http.c. One Host that is a host, nothing that two readers could read differently; absolute
 * form and Host must agree. */
void peek_http(const uint8_t *p, size_t len, struct peek *ret);
