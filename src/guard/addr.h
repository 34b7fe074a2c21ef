/* Addresses as the guard keeps them, and the ones that it never dials. */
#pragma once

#include <netinet/in.h>

#include "lib/base/err.h"

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
/* The internal addresses that not even the operator can open: unspecified, multicast, broadcast. */
bool net_addr_undialable(const struct net_addr *a);
/* The IPv4 address that a gateway would send to if it got this IPv6 one (NAT64, 6to4, compatible),
 * with the same port; false: there is none. Whoever judges an address judges the carried one
 * too. */
bool net_addr_carried(const struct net_addr *a, struct net_addr *ret);

/* ---- hosts.c: the addresses of this machine, kept up to date over netlink. ------------------- */

struct hosts;
/* Call it before the system call filter is loaded: it needs a netlink socket. The caller watches
 * hosts_fd and calls hosts_update when it is readable. */
int hosts_new(struct hosts **ret, struct sg_error *e);
void hosts_free(struct hosts *h);
int hosts_fd(const struct hosts *h);
void hosts_update(struct hosts *h);
bool hosts_has(const struct hosts *h, const struct net_addr *a);
/* Whether the machine has a way to the internet in that family. If not, names are answered without
 * addresses of it. */
bool hosts_has_v4(const struct hosts *h);
bool hosts_has_v6(const struct hosts *h);

/* ---- internal.c: internal addresses that the operator opens ---------------------------------- */

struct internal_set;
/* text: addresses and networks with commas between; :PORT or [..]:PORT may follow each. "":
 * none. */
int internal_set_new(const char *text, struct internal_set **ret, struct sg_error *e);
void internal_set_free(struct internal_set *s);
/* Whether the operator has opened an address. If it has no port, as a name's address before
 * dialling, whether any port of it is open. */
bool internal_set_has(const struct internal_set *s, const struct net_addr *a);

struct guard;
/* The one question before every connect(): NULL, or why the address must not be dialled ("internal
 * address: loopback", "address of this machine"). Only `internal` and `hosts` of the guard are
 * used; both may be NULL. */
const char *guard_never_dials(const struct guard *g, const struct net_addr *a);
