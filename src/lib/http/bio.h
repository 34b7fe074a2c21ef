/* OpenSSL on a stream that its owner reads and writes. OpenSSL's own BIO of a socket would raise
 * SIGPIPE, and knows nothing of bytes that were read before. */
#pragma once

#include <openssl/bio.h>
#include <sys/types.h>

/* Both are as recv(2) and send(2): -1 and EAGAIN if nothing can be done now. */
struct bio_stream {
    ssize_t (*recv)(void *arg, void *p, size_t n);
    ssize_t (*send)(void *arg, const void *p, size_t n);
};

/* NULL: out of memory. */
BIO *bio_new(const struct bio_stream *stream, void *arg);
