/* Feeds fuzzed bytes to one end of a channel as its peer would. */
#pragma once

#include <assert.h>
#include <sys/socket.h>

#include "lib/channel/chan.h"

/* Where checksums go: handlers read every byte they get, so that a sanitizer sees a bad pointer. */
static volatile uint8_t feed_sink;

static inline void feed_touch(const void *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        feed_sink ^= ((const uint8_t *)p)[i];
}

/* Makes a channel whose other end is *ret_peer. */
static inline struct chan *feed_new(enum chan_side side, const struct chan_handlers *h, void *arg,
                                    int *ret_peer)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
    *ret_peer = fds[1];
    return chan_new(fds[0], side, h, arg);
}

static inline void feed_drain(int peer)
{
    static uint8_t buf[1u << 18];

    while (recv(peer, buf, sizeof(buf), MSG_DONTWAIT) > 0)
        ;
}

/* Pumps until the bytes are used up or the channel is dead, and frees it. A peer that reads nothing
 * (`read` false) lets the output grow: it must stay within its bound. */
static inline void feed_run(struct chan *c, int peer, const uint8_t *data, size_t len, size_t piece,
                            bool read)
{
    int r = 0;

    for (unsigned idle = 0; r == 0 && idle < 4; idle++) {
        size_t n = len < piece ? len : piece;
        ssize_t sent = n > 0 ? send(peer, data, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

        if (sent > 0) {
            data += sent;
            len -= (size_t)sent;
            idle = 0;
        }
        r = chan_pump(c);
        assert(chan_backlog(c) <= CHAN_BACKLOG_MAX);
        if (read)
            feed_drain(peer);
    }
    close(peer);
    while (r == 0)
        r = chan_pump(c);
    chan_free(c);
}
