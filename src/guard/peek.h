/* Tells which protocol a connection speaks, by its first bytes and not by its port. Without I/O:
 * callers pass all bytes that have come so far, from the first one on, again and again. */
#pragma once

#include "lib/base/err.h"
#include "guard/policy.h"

#define PEEK_MAX (16u * 1024)

enum peek_what {
    PEEK_MORE,  /* not clear yet */
    PEEK_TLS,   /* a whole ClientHello; `name` is set if it has one */
    PEEK_HTTP,  /* a whole head of an HTTP/1 request; `name` is set */
    PEEK_OTHER, /* something else */
    PEEK_BAD,   /* like TLS or HTTP, but malformed or longer than PEEK_MAX: never passed on */
};

struct peek {
    enum peek_what what;
    char name[POLICY_NAME_MAX + 1]; /* in the form of name_normalise; "" if there is none */
    bool ech;     /* TLS: has an encrypted ClientHello, so the name need not be the real one */
    bool address; /* the host that was named is an address: name is "" */
    bool connect; /* HTTP: CONNECT */
    bool h2c;     /* HTTP/2 without TLS: its preface */
};

/* ret->what is PEEK_MORE if more bytes are needed. */
void peek_bytes(const uint8_t *p, size_t len, struct peek *ret);

/* hello.c. p begins with 0x16. Reassembles the ClientHello from its records. */
void peek_tls(const uint8_t *p, size_t len, struct peek *ret);
/* peek_http.c. Accepts exactly one Host that is a host, and nothing that two readers could read
 * differently; a target in absolute form must agree with Host. */
void peek_http(const uint8_t *p, size_t len, struct peek *ret);
