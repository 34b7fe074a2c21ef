/* Copies bytes between a sandbox and a server, both ways, until both have said all they have to
 * say.
 *
 * Small pieces are read and written; as soon as a read fills the buffer it is bulk, and the bytes
 * go from socket to socket through a pipe that the kernel moves pages by (splice). A pipe is
 * borrowed from a pool only while there is bulk. A side that does not read stops the other: what is
 * kept is never more than one buffer or one pipe a way. */
#pragma once

#include "guard/guard.h"

struct relay;
struct relay_done {
    const char *error; /* what ended it, if not the two sides; NULL */
};
struct relay_order {
    struct guard *guard;
    int sandbox_fd, server_fd; /* taken over; non-blocking */
    const void *first;         /* of the sandbox, read already */
    size_t first_len;
    const void *first_back; /* of the server, read already */
    size_t first_back_len;
    /* Bytes that have gone; false: no more. */
    bool (*count)(void *arg, uint64_t up, uint64_t down);
    /* Once, after the descriptors are closed; not before relay_new returns. */
    void (*done)(void *arg, const struct relay_done *d);
    void *arg;
};
struct relay *relay_new(const struct relay_order *o);
/* Both sides are reset; done comes, with `why`. */
void relay_reset(struct relay *r, const char *why);
