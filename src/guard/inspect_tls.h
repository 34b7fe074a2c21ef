/* One side of an inspected connection: a socket, with or without TLS, and the bytes that wait in
 * either direction. Nothing blocks, and no buffer grows without a bound: `in` takes at most SIDE_IN
 * bytes, and callers ask side_has_room before they write to `out`. */
#pragma once

#include <openssl/ssl.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "guard/http_message.h"

#define SIDE_IN   HTTP_MESSAGE_MAX /* a head must fit */
#define SIDE_HIGH (64u * 1024)     /* bytes in `out` from which callers stop writing */

struct side {
    int fd;
    SSL *ssl;       /* NULL: no TLS */
    uint8_t *first; /* bytes that were read before side_init */
    size_t first_len, first_at;
    bool ready;      /* the handshake is done */
    bool eof;        /* no more comes */
    bool clean;      /* and the peer has said so itself */
    bool broken;     /* nothing can be read or written any more */
    bool want_write; /* cannot continue until the socket can be written */
    bool wipe;       /* `out` has a secret in it: wipe it after use */
    struct strbuf in, out;
    size_t in_at, out_at;    /* bytes before these are done with */
    uint64_t received, sent; /* on the wire */
    char why[192];           /* why it is broken */
};

/* Takes the descriptor over. first: bytes that were read from it already. */
void side_init(struct side *s, int fd, const void *first, size_t first_len);
void side_start_tls(struct side *s, SSL *ssl); /* takes ssl over */
void side_done(struct side *s);
/* As side_done, but the peer sees a reset and not an orderly end. */
void side_cut(struct side *s);

/* Each returns whether any bytes have moved. If the side cannot continue, its fields say why. */
bool side_handshake(struct side *s);
bool side_fill(struct side *s);
bool side_flush(struct side *s);
/* Tells the peer that no more comes from us. whole: all that there was to say has been sent. */
void side_shut(struct side *s, bool whole);

/* The bytes that have come and were not taken yet. */
const char *side_bytes(const struct side *s, size_t *ret_len);
void side_take(struct side *s, size_t n);
bool side_has_room(const struct side *s);
size_t side_pending(const struct side *s); /* bytes that wait in `out` */
/* Makes room for n bytes in `out` beforehand, so that a secret there is not left behind in freed
 * memory when the buffer grows. */
void side_reserve(struct side *s, size_t n);
/* Frees buffers that are not in use now. */
void side_rest(struct side *s);
