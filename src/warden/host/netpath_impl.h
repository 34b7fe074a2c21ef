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
/* The keys of the map of sockets. */
enum lookup_key { LOOKUP_TCP, LOOKUP_UDP, LOOKUP_KEYS };

/* ---- netpath.c ------------------------------------------------------------------------------- */

/* Opens the calling thread's network namespace, to come back to. */
int netpath_open_home(struct sg_error *e);
/* Goes back to that namespace, and closes it. -1 is allowed. It cannot fail, because nothing that
 * follows may run in a sandbox's namespace: it ends the process instead. */
void netpath_go_home(int *home);
int netpath_make(enum egress_path path, struct netpath *ret, struct sg_error *e);
int netpath_open_here(struct netpath *np, struct sg_error *e);

/* ---- netpath_kernel.c ------------------------------------------------------------------------ */

int netpath_tell(enum netpath_batch which, bool ipv6, struct sg_error *e);
int netpath_add_addresses(bool ipv6, struct sg_error *e);
int netpath_lo_up(struct sg_error *e);
/* Attaches the program of the plan; returns the link. */
int netpath_attach_lookup(int tcp, int udp, struct sg_error *e);
