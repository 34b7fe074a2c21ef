/* Connects a flow to its server. This is the only place that dials for sandboxes, so each address
 * is judged here, as the very bytes that connect() gets. */
#pragma once

#include "guard/guard.h"

struct dial;
/* fd is connected and non-blocking, and belongs to the callee; or it is -errno. Then why names the
 * rule of ours that forbids the address, or is NULL if the network said no. address: the one that
 * was dialled. */
typedef void (*dial_done)(void *arg, int fd, const struct net_addr *address, const char *why);
/* Tries one address after the other, until one answers; at most DIAL_NS. done is called once,
 * perhaps before dial_new returns, which then returns NULL. */
struct dial *dial_new(struct guard *g, const struct net_addr *addrs, size_t n, dial_done done,
                      void *arg);
void dial_cancel(struct dial *d); /* done is not called */
/* A connected UDP socket, or -errno with *ret_why as above. */
int dial_udp(struct guard *g, const struct net_addr *address, const char **ret_why);
/* Why no sandbox may reach an address: guard_never_dials, or the operator's list. NULL: it may. */
const char *guard_refuses(const struct guard *g, const struct net_addr *a);
