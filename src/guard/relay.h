/* Copies bytes between a sandbox and a server, both ways, until both sides have ended.
 *
 * Small pieces are read and written. As soon as a read fills the buffer the transfer is bulk: its
 * bytes go from socket to socket through a pipe, in which the kernel moves whole pages (splice). A
 * pipe is borrowed from a pool only while there is bulk. A side that does not read stops the other,
 * so each direction keeps at most one buffer or one pipe. */
#pragma once

#include "guard/guard.h"

struct relay;
struct relay_order {
    struct guard *guard;
    int sandbox_fd, server_fd; /* taken over; non-blocking */
    const void *first;         /* bytes of the sandbox that were read already */
    size_t first_len;
    const void *first_back; /* bytes of the server that were read already */
    size_t first_back_len;
    /* Called with bytes that were passed on; false: pass no more. */
    bool (*count)(void *arg, uint64_t up, uint64_t down);
    /* Called once, after the descriptors are closed; not before relay_new returns. error: why it
     * ended; NULL: the two sides ended it. */
    void (*done)(void *arg, const char *error);
    void *arg;
};
struct relay *relay_new(const struct relay_order *o);
/* Resets both sides; done is called, with `why`. */
void relay_reset(struct relay *r, const char *why);
