/* TLS to a server inside a sandbox (httpsPorts). Sans I/O: bytes in, callbacks out.
 *
 * The certificate is not verified: the server is whoever listens there, and the way to it is the
 * sandbox's own channel. We speak TLS only because some servers speak nothing else. */
#pragma once

#include "lib/base/err.h"

struct tls_client;

struct tls_client_handlers {
    void (*on_ready)(void *arg);                             /* the handshake is done */
    void (*on_plain)(void *arg, const char *p, size_t len);  /* bytes from the server */
    void (*on_sealed)(void *arg, const char *p, size_t len); /* bytes to send to the server */
};

/* Begins the handshake at once. SNI asks for `name`, unless it is an address; a port behind the
 * name is ignored. */
struct tls_client *tls_client_new(const char *name, const struct tls_client_handlers *h, void *arg);
void tls_client_free(struct tls_client *t); /* NULL is allowed; not from inside a callback */
/* Takes bytes of the server. -EPROTO: they are no TLS. */
int tls_client_feed(struct tls_client *t, const char *p, size_t len, struct sg_error *e);
/* Only after on_ready. */
void tls_client_send(struct tls_client *t, const char *p, size_t len);
/* Tells the server that we send no more. */
void tls_client_close(struct tls_client *t);
