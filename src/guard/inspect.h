/* Inside TLS (or plain HTTP) for names that have rules: the guard ends the sandbox's TLS with a
 * certificate of the sandbox's own CA (ca.h), verifies the real server, and between them speaks
 * HTTP/1.1 only.
 *
 * Every request is parsed and written anew: what two readers could read differently does not pass.
 * Its Host must be the name of the connection (421), also the second request's. Headers of the rule
 * are set; placeholders are replaced by secrets, in the headers that each names and toward the
 * hosts that each names; bodies are sanitised as the policy says. From what comes back, secrets are
 * scrubbed (scrub.h) if one may go to that host: in the reason, in names and values of headers and
 * in the body, over the borders of pieces; trailers and extensions of chunks do not pass at all.
 * The server is then asked for bodies that are whole and without compression, and a part (206) is
 * refused. A WebSocket passes after its handshake, scrubbed as the rest. CONNECT, TRACE and h2c are
 * refused.
 *
 *   inspect.c            the loop, deadlines, the end   inspect_tls.c      a side: socket, TLS
 *   inspect_request.c    to the server                  inspect_response.c and back
 *   http_message.c       heads, read strictly           http_body.c        length, chunks, gzip
 *   inspect_rules.c      headers and secrets            scrub.c            secrets that come back
 *   inspect_sanitise.c   bodies of requests             ca.c, ca_leaf.c    certificates
 *
 * Memory is bounded: a side that does not read stops the other. */
#pragma once

#include "guard/guard.h"

/* Takes over both descriptors, connected and non-blocking: the sandbox's and the server's, and the
 * bytes that were read already. tls: the sandbox began with a ClientHello. Ends by itself; done is
 * called once, with bytes of both sides (as on the wire), after the descriptors are closed. */
struct inspect;
struct inspect_done {
    uint64_t up, down;
    const char *error; /* what ended it, if not the two sides; NULL */
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
    void (*count)(void *arg, uint64_t up, uint64_t down); /* as bytes go: quotas */
    void *arg;
};
struct inspect *inspect_new(const struct inspect_order *o);
/* Resets both sides; done comes. */
void inspect_reset(struct inspect *i);

/* ca.c. One for the guard, whose key is in its directory; one for each sandbox, whose key follows
 * from the guard's secret and the sandbox's id, so that a guard that was restarted has the same. */
struct ca;
int ca_new(struct guard *g, int dirfd, struct ca **ret, struct sg_error *e);
void ca_free(struct ca *ca);
/* The certificate that the sandbox gets as one that it trusts: self-signed, with name constraints
 * (the names, and what is below them for *.x), PEM; hash: of its sandbox, as `openssl rehash` names
 * files. */
int ca_certificate(struct ca *ca, const char *sandbox_id, const char *const *names, size_t n,
                   struct strbuf *pem, char hash[16], struct sg_error *e);
