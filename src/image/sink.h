/* A file that is written from its beginning to its end, through a buffer, and hashed on the way. */
#pragma once

#include "image/image.h"

struct digest;

/* SHA-256. The first use reads libcrypto's settings: digest_prepare does it before a worker is confined. */
void digest_prepare(void);
struct digest *digest_new(void);
void digest_add(struct digest *d, const void *data, size_t len);
void digest_end(struct digest *d, uint8_t ret[IMAGE_DIGEST]);
void digest_free_p(struct digest **d);

struct sink {
    int fd;
    int error; /* of the first write that failed: 0 or -errno */
    struct digest *digest;
    uint8_t *buf;
    size_t len;
    uint64_t total;
};

void sink_init(struct sink *s, int fd);
void sink_done(struct sink *s);
/* Errors are kept for sink_end, so that callers may check now and then. */
void sink_add(struct sink *s, const void *data, size_t len);
/* Zero bytes up to a position that is a multiple of `unit`, or up to a later one. */
void sink_align(struct sink *s, size_t unit);
void sink_zero(struct sink *s, uint64_t until);
/* Puts the file on disk. `what` names it in the error. */
int sink_end(struct sink *s, const char *what, uint8_t ret[IMAGE_DIGEST], struct sg_error *e);
