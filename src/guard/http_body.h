/* Bodies of HTTP/1 messages: where they end, their chunks, and gzip or deflate around them. Without
 * I/O. */
#pragma once

#include <zlib.h>

#include "guard/http_message.h"
#include "lib/http/chunked.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* The bytes of a body are of two kinds: framing, which is skipped, and pieces of data. */
struct body_reader {
    enum http_framing framing;
    uint64_t left; /* FRAMING_LENGTH: bytes that have not been seen */
    struct chunked chunked;
    size_t piece; /* bytes of data that are there and were not taken */
};
void body_reader_init(struct body_reader *r, enum http_framing framing, uint64_t length);
/* Call it when no piece is there. Returns how many of the bytes are framing; a piece of r->piece
 * bytes follows them (0: more bytes are needed, or the body is done). -EINVAL: no body looks like
 * that. */
ssize_t body_reader_next(struct body_reader *r, const char *p, size_t len);
void body_reader_take(struct body_reader *r, size_t n);
bool body_reader_done(const struct body_reader *r);
/* Whether the end of the connection is the end of the body. */
bool body_reader_ends_with_connection(const struct body_reader *r);

/* ---- writing --------------------------------------------------------------------------------- */

void body_write_chunk(struct strbuf *out, const char *p, size_t len); /* nothing if len is 0 */
void body_write_end(struct strbuf *out);                              /* the last chunk */

/* ---- gzip and deflate ------------------------------------------------------------------------ */

/* A small body may be packed as well as it likes; beyond INFLATE_SMALL bytes, one that grows more
 * than INFLATE_RATIO times is taken for a bomb. */
#define INFLATE_SMALL (8u * 1024 * 1024)
#define INFLATE_RATIO 10

enum body_coding { CODING_NONE, CODING_INFLATE, CODING_UNKNOWN };
/* Which coding Content-Encoding names. */
enum body_coding body_coding(const struct http_message *m);

struct inflater {
    z_stream z;
    uint64_t in, out;
    bool ended; /* the input ended with the end of a stream */
};
struct inflater *inflater_new(void);
void inflater_free(struct inflater *f); /* NULL is allowed */
/* Takes bytes from p and writes at most cap bytes to out. Call it until it neither takes nor
 * writes. -EINVAL: the input is neither gzip nor zlib; -EFBIG: a bomb. */
int inflater_feed(struct inflater *f, const char *p, size_t len, size_t *ret_used, char *out,
                  size_t cap, size_t *ret_len);
