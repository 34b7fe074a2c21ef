/* Addresses in one form, and which of them belong to the internet. */
#pragma once

#include <netinet/in.h>

#include "lib/base/base.h"

/* IPv4 is kept as ::ffff:a.b.c.d, so that there is one form to compare. */
struct net_addr {
    uint8_t ip[16];
    uint16_t port; /* host order; 0: none */
};
#define NET_ADDR_TEXT_MAX 46

/* From the address of a socket. A mapped IPv4 address is that IPv4 address, as the kernel has
 * it. */
int net_addr_from(const struct sockaddr *sa, struct net_addr *ret);
void net_addr_v4(const uint8_t ip[4], uint16_t port, struct net_addr *ret);
void net_addr_v6(const uint8_t ip[16], uint16_t port, struct net_addr *ret);
bool net_addr_is_v4(const struct net_addr *a);
/* For connect(); returns the length. */
socklen_t net_addr_to(const struct net_addr *a, struct sockaddr_storage *ret);
void net_addr_text(const struct net_addr *a, char ret[NET_ADDR_TEXT_MAX]); /* without port */
/* Takes "1.2.3.4" or "2606::1"; no name, no port, no zone. */
int net_addr_parse(const char *text, struct net_addr *ret);
bool net_addr_equal(const struct net_addr *a, const struct net_addr *b); /* ignores the port */

/* Why an address is never dialled: "loopback", "private network", "link-local", "cloud metadata",
 * "carrier network", "multicast"...; NULL if the address belongs to the internet. An IPv6 address
 * that carries an IPv4 one is judged by both. Ranges: reference list in docs/egress.md. */
const char *net_addr_internal(const struct net_addr *a);
/* The same as a refusal: "internal address: loopback". */
const char *net_addr_refusal(const struct net_addr *a);
/* The same for an address that is about to be connected: an address of this machine itself is refused
 * too. */
const char *net_addr_dial_refusal(const struct net_addr *a);
/* The internal addresses that not even the operator can open: unspecified, multicast, broadcast. */
bool net_addr_undialable(const struct net_addr *a);
/* The IPv4 address that a gateway would send to if it got this IPv6 one (NAT64, 6to4, compatible),
 * with the same port; false: there is none. Whoever judges an address judges the carried one
 * too. */
bool net_addr_carried(const struct net_addr *a, struct net_addr *ret);
