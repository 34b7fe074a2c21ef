/* One question to one upstream: a datagram from a socket and port of its own, TCP if the answer was
 * cut. What is not the answer to it is read over: whoever guesses does not end the question. It
 * has no deadline: whoever began it (resolver_flight.c) lets it go. */
#pragma once

#include "guard/dns_message.h"
#include "guard/guard.h"

struct upstream;
/* Once: r is 0 with the answer, or -errno. The callee lets the question go. */
typedef void (*upstream_done)(void *arg, struct upstream *u, int r, struct dns_answer *a);
int upstream_ask(uv_loop_t *loop, const struct net_addr *server, const char *name, uint16_t type,
                 upstream_done done, void *arg, struct upstream **ret);
void upstream_free(struct upstream *u); /* NULL is allowed */
