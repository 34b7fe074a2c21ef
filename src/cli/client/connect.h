/* The frames of a Connect stream: a byte of flags, four bytes of length (big-endian), a message.
 * The stream arrives in pieces that may be cut anywhere. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define CONNECT_HEADER     5
#define CONNECT_MAX        (16u * 1024 * 1024)
#define CONNECT_FRAME_MAX  (CONNECT_HEADER + CONNECT_MAX)
#define CONNECT_COMPRESSED 1u
#define CONNECT_END        2u

/* Called for each whole message. `end`: this is the last message of the stream. */
typedef int connect_fn(void *arg, bool end, const char *message, size_t len, struct sg_error *e);

/* Takes a piece of the stream and calls fn for each message that it completes. Stops at the first
 * error, fn's among them. `pending` keeps the beginning of one frame, never more: a buffer of
 * CONNECT_FRAME_MAX. */
int connect_feed(struct strbuf *pending, const void *data, size_t len, connect_fn *fn, void *arg,
                 struct sg_error *e);
/* Appends a message as a frame. */
void connect_write(struct strbuf *out, const struct strbuf *message);
