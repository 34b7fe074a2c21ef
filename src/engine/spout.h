/* A descriptor of the caller that a program's output goes to: never waited for, so that a reader
 * who is slow, or waits for something else, holds back nothing but this output.
 *
 * The descriptor is shared with whoever started us, and so are its flags: it is not made
 * non-blocking. A pipe is opened anew for us alone, a socket is told with each message, and
 * anything else gets no more than a pipe's smallest room when it says that it has some. */
#pragma once

#include "lib/text/strbuf.h"

struct spout {
    int fd;      /* -1: none */
    int own;     /* the same pipe, non-blocking; -1: none */
    bool socket; /* what fd is */
    int error;   /* errno of the write that failed; from then on everything is dropped */
    struct strbuf queue;
    size_t off; /* bytes of it that have gone */
};

void spout_init(struct spout *s, int fd, size_t max);
void spout_done(struct spout *s); /* the descriptor stays open */
/* Writes or queues all of it. Returns how much has left, by being written or dropped, of this and
 * of what was queued before. */
size_t spout_write(struct spout *s, const void *data, size_t len);
/* The same for what is queued: when poll(2) says that there is room. */
size_t spout_pump(struct spout *s);
size_t spout_waiting(const struct spout *s);
/* Nobody reads any more: poll(2) said so. */
void spout_hung_up(struct spout *s);
