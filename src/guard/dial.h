/* Connecting to where a flow goes. This is the only place that dials for sandboxes, so this is
 * where each address is judged, as the very bytes that connect() gets. */
#pragma once

#include "guard/guard.h"

struct dial;
/* fd is connected, non-blocking and the callee's; or -errno, and why says what cannot be dialled (a
 * rule of ours), or is NULL if the network said no. address: the one that it was. */
typedef void (*dial_done)(void *arg, int fd, const struct net_addr *address, const char *why);
/* One address after the other, until one answers; at most DIAL_NS. done comes once, perhaps before
 * this returns, in which case it returns NULL. */
struct dial *dial_new(struct guard *g, const struct net_addr *addrs, size_t n, dial_done done,
                      void *arg);
void dial_cancel(struct dial *d); /* done does not come */
/* A connected UDP socket, or -errno with *ret_why as above. */
int dial_udp(struct guard *g, const struct net_addr *address, const char **ret_why);
/* Why no sandbox gets there: guard_never_dials, or the operator's list. NULL: it may. */
const char *guard_refuses(const struct guard *g, const struct net_addr *a);
