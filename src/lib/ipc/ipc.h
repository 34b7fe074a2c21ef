/* Messages with descriptors between our own processes, over unix sockets. This is the only place
 * that sends and receives descriptors (tools/lint keeps it so).
 *
 *   ipc.h        one message: blocking or not, as the socket is. Small programs need no more
 *   link.h       a connection in an event loop: messages that wait for room, calls with answers
 *   lib/uv/      link.h in a loop of libuv
 *
 * docs/internals/ipc.md lists who speaks with whom, and by which rules.
 *
 * Received descriptors are close-on-exec and bounded in number, and nobody can forget to close one:
 * they are in a struct ipc_fds, which closes at the end of its scope what was not taken out of it
 * with steal_fd. Descriptors can be lost on the way, if the receiver has no room for them. Then
 * none of the message's arrives: a receiver looks at their number before it uses them. */
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "lib/base/err.h"

#define IPC_FDS_MAX 72 /* descriptors with one message */

/* The beginning that the messages of most protocols have. */
struct ipc_head {
    uint32_t magic, type;
    uint64_t seq; /* of a call and its answer; else 0 */
};

struct ipc_fds {
    size_t max;          /* set by the receiver: how many it takes at most */
    size_t n;            /* how many came */
    int at[IPC_FDS_MAX]; /* -1 from the nth on */
};
void ipc_fds_close(struct ipc_fds *fds);

/* Sends one message with up to IPC_FDS_MAX descriptors, which stay the caller's. 0 or -errno. */
int ipc_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
/* The same for a message in two parts. The second may be empty. */
int ipc_send_parts(int sock, const struct iovec parts[2], const int *fds, size_t n_fds);
/* Returns bytes received (0: the peer is gone) or -errno; then there are no descriptors. -EMSGSIZE:
 * the message was longer than cap, and is lost. -E2BIG: more descriptors came with it than
 * fds->max, and it is lost, too. fds may be NULL: whatever comes is closed. */
ssize_t ipc_recv(int sock, void *data, size_t cap, struct ipc_fds *fds);
/* Receives a message that begins with `magic` and has min to max bytes. Returns its length, or
 * -EAGAIN: there is none; -EPIPE: the peer is gone; -EPROTO: it sends something else. */
ssize_t ipc_take(int sock, uint32_t magic, void *data, size_t min, size_t max, struct ipc_fds *fds);
