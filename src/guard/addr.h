/* The addresses that the guard never dials. What is an address, and which are internal, says lib/net. */
#pragma once

#include "lib/base/err.h"
#include "lib/net/addr.h"

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
