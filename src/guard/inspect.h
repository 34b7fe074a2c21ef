/* Inspection: looking inside TLS (or plain HTTP) for names that have rules. The guard ends the
 * sandbox's TLS with a certificate of the sandbox's own CA (ca.h), verifies the real server, and
 * speaks only HTTP/1.1 between them.
 *
 * The guard parses every request and writes it anew: nothing passes that two readers could read
 * differently. The Host of every request, not only the first, must be the name of the connection
 * (else 421). The guard sets the headers of the rule, replaces placeholders by secrets (in the
 * headers and toward the hosts that each secret names), and sanitises bodies as the policy says.
 *
 * If a secret may go to the host, the guard scrubs secrets (scrub.h) from what comes back: from the
 * reason, from names and values of headers and from the body, across the borders of pieces;
 * trailers and extensions of chunks do not pass at all. It then asks the server for whole bodies
 * without compression, and refuses a part (206). A WebSocket passes after its handshake, scrubbed
 * as the rest. CONNECT, TRACE and h2c are refused.
 *
 *   inspect.c            the loop, deadlines, the end   inspect_tls.c        a side: socket, TLS
 *   inspect_request.c    to the server                  inspect_response.c   back to the sandbox
 *   http_message.c       heads, read strictly           http_body.c          length, chunks, gzip
 *   inspect_rules.c      headers and secrets            scrub.c              secrets that come back
 *   inspect_sanitise.c   bodies of requests             ca.c, ca_leaf.c      certificates
 *
 * Memory is bounded: a side that does not read stops the other. */
#pragma once

#include "guard/guard.h"

/* inspect_new takes over both descriptors, the sandbox's and the server's, connected and
 * non-blocking, and the bytes that were read already. tls: the sandbox began with a ClientHello. An
 * inspection ends by itself; it calls done once, with the bytes of both sides (as on the wire),
 * after the descriptors are closed. */
struct inspect;
struct inspect_done {
    uint64_t up, down;
    const char *error; /* why it ended; NULL: the two sides ended it */
};
struct inspect_order {
    struct sandbox *sandbox;
    struct policy *policy; /* a reference is taken */
    const char *name;      /* of the connection: SNI, or Host */
    uint16_t port;
    bool tls;
    int sandbox_fd, server_fd;
    const void *first;
    size_t first_len;
    void (*done)(void *arg, const struct inspect_done *d);
    void (*count)(void *arg, uint64_t up, uint64_t down); /* called as bytes pass, for quotas */
    void *arg;
};
struct inspect *inspect_new(const struct inspect_order *o);
/* Resets both sides; done is called. */
void inspect_reset(struct inspect *i);

/* ca.c. The guard has a CA whose key is in its directory. Each sandbox has a CA whose key follows
 * from the guard's secret and the sandbox's id, so that a restarted guard derives the same key. */
int ca_new(struct guard *g, int dirfd, struct ca **ret, struct sg_error *e);
void ca_free(struct ca *ca);
/* Makes the CA certificate that the sandbox is given to trust: self-signed, PEM, with name
 * constraints (the names, and what is below them for *.x). hash: of its X.509 subject, as `openssl
 * rehash` names files. */
int ca_certificate(struct ca *ca, const char *sandbox_id, const char *const *names, size_t n,
                   struct strbuf *pem, char hash[16], struct sg_error *e);
