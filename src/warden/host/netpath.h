/* The way out of a sandbox, made in its network namespace: all that the sandbox sends, to whatever
 * address, arrives at two sockets that the warden makes there and the guard reads (wire/guard.h).
 *
 *            prepare                     open
 *   absent ----------> no route, sockets ----> every address is local, and leads to the sockets
 *                                       <----
 *                                        close
 *
 * The namespace has `lo` and nothing else, ever. Without a route connect() fails at once. With the
 * routes `local 0.0.0.0/0` and `local ::/0` every packet stays in the namespace, and one of these
 * brings it to the sockets:
 *
 *   sk_lookup   a BPF program names the socket for each new connection and datagram
 *   tproxy      rules of nftables do the same
 *   redirect    rules that rewrite the destination, which the kernel remembers; UDP to port 53 only
 *
 * With the first two the destination is the accepted socket's own address; with the third the guard
 * asks for it with SO_ORIGINAL_DST.
 *
 * A sandbox keeps its own loopback addresses, and the address that it is given here. So the sockets
 * are bound to another address: a connection to 127.0.0.1 never finds them. (redirect has to use
 * loopback; a connection that finds the sockets there has no other destination, and the guard
 * refuses it.)
 *
 * One socket serves both IPv4 and IPv6: it is bound to an IPv4 address, as IPv6 writes it. Bound to
 * an IPv6 address it would take no IPv4 at all. On a kernel without IPv6 it is an IPv4 socket.
 *
 * To do all this, the calling thread enters the namespace and comes back. A thread that cannot come
 * back ends the process. */
#pragma once

#include "lib/base/err.h"
#include "warden/host/netpath_plan.h"
#include "wire/guard.h"

#define NETPATH_OWN4    0xc0000008u /* 192.0.0.8, the sandbox's: a "dummy address" (RFC 7600) */
#define NETPATH_GUARD4  0xc0000201u /* 192.0.2.1, of the sockets: no real host has it */
#define NETPATH_BACKLOG 1024

struct netpath {
    enum egress_path path; /* 0: not prepared */
    int tcp, udp;          /* listeners */
    int link;              /* keeps the BPF program attached; -1: none */
    bool open;
};

#define NETPATH_NONE                      \
    {                                     \
        .tcp = -1, .udp = -1, .link = -1, \
    }

/* The plan of all ways out, which must stay; call it first. */
void netpath_use(const struct netpath_plan *plan);
/* pidfd: of a process in the namespace. */
int netpath_prepare(int pidfd, enum egress_path path, struct netpath *ret, struct sg_error *e);
/* Open and close the way out. They do nothing if it is open, or closed, already. */
int netpath_open(int pidfd, struct netpath *np, struct sg_error *e);
int netpath_close(int pidfd, struct netpath *np, struct sg_error *e);
/* Returns a connected datagram socket: see GUARD_ASK_UDP. */
int netpath_udp(int pidfd, const struct sockaddr_storage *local,
                const struct sockaddr_storage *peer, struct sg_error *e);
/* Closes the sockets, which keep the namespace alive. */
void netpath_done(struct netpath *np);

/* Finds the first path that works on this host, by trying them in a namespace that is thrown away.
 * `why` says what is wrong with the paths before it, or is "". With a wish other than 0, only that
 * one is tried. */
#define NETPATH_WHY 320
int netpath_probe(enum egress_path wish, enum egress_path *ret, char why[NETPATH_WHY],
                  struct sg_error *e);
/* "sk_lookup", ... */
const char *netpath_name(enum egress_path path);
