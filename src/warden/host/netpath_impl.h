/* Shared by the files of netpath. Everything here runs in the sandbox's namespace. */
#pragma once

#include <netinet/in.h>

#include "warden/host/netpath.h"

#define NETPATH_DNS_PORT 53
/* Above the ports that the kernel gives out by itself. */
#define NETPATH_PORT 61053

/* fd53:616e:6467::2, the sandbox's own address. */
extern const struct in6_addr netpath_own6;
/* The address that the sockets are bound to, as IPv6 writes it: ::ffff:192.0.2.1. */
extern const struct in6_addr netpath_guard6;

/* ---- netpath.c ------------------------------------------------------------------------------- */

/* Opens the calling thread's network namespace, to come back to. */
int netpath_open_home(struct sg_error *e);
/* Goes back to that namespace, and closes it. -1 is allowed. It cannot fail, because nothing that
 * follows may run in a sandbox's namespace: it ends the process instead. */
void netpath_go_home(int *home);
int netpath_make(enum egress_path path, struct netpath *ret, struct sg_error *e);
int netpath_open_here(struct netpath *np, struct sg_error *e);

/* ---- netpath_netlink.c: messages to the kernel, sent together -------------------------------- */

struct netlink {
    int sock;
    uint32_t seq;    /* of the last message */
    unsigned n_asks; /* messages that the kernel is to confirm */
    size_t len, message;
    char buf[8192] __attribute__((aligned(8)));
};

int netlink_open(struct netlink *n, int protocol, struct sg_error *e);
void netlink_done(struct netlink *n);
/* Begins a message; head is the structure that this type has before its attributes. */
void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *head, size_t len);
void netlink_attr(struct netlink *n, uint16_t type, const void *data, size_t len);
void netlink_attr_text(struct netlink *n, uint16_t type, const char *text);
void netlink_attr_be32(struct netlink *n, uint16_t type, uint32_t value);
/* Begins an attribute that contains attributes; returns its offset. */
size_t netlink_nest(struct netlink *n, uint16_t type);
void netlink_unnest(struct netlink *n, size_t begin);
/* Sends all messages and reads the confirmations. 0, or the first error as -errno. */
int netlink_commit(struct netlink *n);

/* ---- netpath_route.c ------------------------------------------------------------------------- */

/* Adds the sandbox's addresses to lo. */
int netpath_add_addresses(bool ipv6, struct sg_error *e);
int netpath_set_routes(bool ipv6, bool on, struct sg_error *e);
int netpath_lo_up(struct sg_error *e);

/* ---- netpath_bpf.c --------------------------------------------------------------------------- */

/* Returns the link. */
int netpath_attach_lookup(int tcp, int udp, struct sg_error *e);

/* ---- netpath_nft.c --------------------------------------------------------------------------- */

int netpath_add_tproxy(bool ipv6, struct sg_error *e);
int netpath_add_redirect(struct sg_error *e);
