/* A descriptor of the caller to which output is written. Writes never wait, so a slow reader delays
 * this output and nothing else.
 *
 * The caller's other processes may share the descriptor and its flags, so the spout does not make
 * it non-blocking. Instead it opens a pipe a second time for itself, sends to a socket with
 * MSG_DONTWAIT, and gives anything else at most a pipe's smallest room (PIPE_BUF) when poll(2) says
 * that there is room. */
#pragma once

#include "lib/text/strbuf.h"

struct spout {
    int fd;      /* -1: none */
    int own;     /* the same pipe, opened again and non-blocking; -1: none */
    bool socket; /* fd is a socket */
    int error;   /* errno of the write that failed; all later output is dropped */
    struct strbuf queue;
    size_t off; /* bytes of the queue that have been written */
};

void spout_init(struct spout *s, int fd, size_t max);
void spout_done(struct spout *s); /* the descriptor stays open */
/* Writes or queues all of the data. Returns how many bytes have left the spout, written or dropped,
 * of this data and of the queue. */
size_t spout_write(struct spout *s, const void *data, size_t len);
/* Writes from the queue, when poll(2) says that there is room. Returns the bytes that left, as
 * above. */
size_t spout_pump(struct spout *s);
size_t spout_waiting(const struct spout *s);
/* Call it when poll(2) says that nobody reads any more. */
void spout_hung_up(struct spout *s);
