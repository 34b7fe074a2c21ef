/* One side of an inspected connection: a socket, TLS on it or not, and bytes that wait in either
 * direction. Nothing blocks, and nothing waits without a bound: `in` takes at most SIDE_IN bytes,
 * and who writes to `out` first asks side_has_room. */
#pragma once

#include <openssl/ssl.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "guard/http_message.h"

#define SIDE_IN   HTTP_MESSAGE_MAX /* a head must fit */
#define SIDE_HIGH (64u * 1024)     /* of `out`: then whoever writes stops */

struct side {
    int fd;
    SSL *ssl;       /* NULL: none */
    uint8_t *first; /* read before it came here */
    size_t first_len, first_at;
    bool ready;      /* the handshake is done */
    bool eof;        /* no more comes */
    bool clean;      /* and the other side has said so */
    bool broken;     /* nothing comes or goes */
    bool want_write; /* cannot go on before it can write */
    bool wipe;       /* what waits in `out` has a secret in it */
    struct strbuf in, out;
    size_t in_at, out_at;    /* what is before is gone */
    uint64_t received, sent; /* on the wire */
    char why[192];           /* why it is broken */
};

/* Takes the descriptor. first: bytes that were read from it already. */
void side_init(struct side *s, int fd, const void *first, size_t first_len);
void side_start_tls(struct side *s, SSL *ssl); /* takes it */
void side_done(struct side *s);
/* As side_done, and the other end sees a reset, not an end. */
void side_cut(struct side *s);

/* Each returns whether anything has moved; why it cannot go on is in the fields. */
bool side_handshake(struct side *s);
bool side_fill(struct side *s);
bool side_flush(struct side *s);
/* No more comes from us. whole: what was sent is all that there was to say. */
void side_shut(struct side *s, bool whole);

/* What has come. */
const char *side_bytes(const struct side *s, size_t *ret_len);
void side_take(struct side *s, size_t n);
bool side_has_room(const struct side *s);
size_t side_pending(const struct side *s); /* in `out` */
/* Makes room in `out`, so that what is there is not left behind in freed memory. */
void side_reserve(struct side *s, size_t n);
/* Gives memory back that is not used now. */
void side_rest(struct side *s);
