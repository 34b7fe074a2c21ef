/* Reads the chunked coding of a body, without I/O. It is stricter than the standard: lines end in
 * CR LF only, a size is at most 16 hex digits with nothing around it, extensions are ignored up to
 * CHUNK_EXTENSION_MAX bytes a chunk, trailers up to CHUNK_TRAILER_MAX in all. */
#pragma once

#include <sys/types.h>

#include "lib/base/base.h"

#define CHUNK_EXTENSION_MAX 256
#define CHUNK_TRAILER_MAX   8192

struct chunked {
    uint64_t left; /* bytes of the current chunk that have not come */
    uint16_t line; /* bytes of the chunk's extension, later of all trailers */
    uint8_t digits;
    uint8_t state;
};

/* Takes bytes up to the end of one piece of data and returns how many. *ret_data is the piece, in
 * p, and *ret_len its length; 0 if the bytes held framing only. Takes nothing once the body is
 * done. -EINVAL: this is no chunked body. */
ssize_t chunked_feed(struct chunked *k, const char *p, size_t len, const char **ret_data,
                     size_t *ret_len);
bool chunked_done(const struct chunked *k);
