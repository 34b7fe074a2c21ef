/* One question to one upstream: a datagram from a socket and port of its own, then TCP if the
 * answer was cut. Datagrams that do not answer the question are ignored, so whoever guesses at ids
 * cannot end it. A question has no deadline: resolver_flight.c, which began it, frees it. */
#pragma once

#include "guard/dns_message.h"
#include "guard/guard.h"

struct upstream;
/* Called once: r is 0 with the answer, or -errno. The callee frees the question. */
typedef void (*upstream_done)(void *arg, struct upstream *u, int r, struct dns_answer *a);
int upstream_ask(uv_loop_t *loop, const struct net_addr *server, const char *name, uint16_t type,
                 upstream_done done, void *arg, struct upstream **ret);
void upstream_free(struct upstream *u); /* NULL is allowed */
