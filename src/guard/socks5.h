/* SOCKS5 to the proxy that a sandbox's policy names (RFC 1928, 1929). Without I/O: the functions
 * append bytes for the proxy to `out`, and are fed the bytes that came from it. A name is sent as a
 * name: the proxy resolves it. */
#pragma once

#include "lib/text/strbuf.h"
#include "guard/policy.h"

struct socks5 {
    const struct policy_proxy *proxy;
    char name[POLICY_NAME_MAX + 1]; /* or "" */
    struct net_addr address;        /* its port is used with a name too */
    uint8_t state;
    uint8_t buf[262];
    uint16_t len;
};

/* Writes the first bytes to send. */
void socks5_begin(struct socks5 *s, const struct policy_proxy *proxy, const char *name,
                  const struct net_addr *address, struct strbuf *out);
/* Takes bytes from the proxy. 0: more are needed; 1: connected, *ret_used bytes of p were the
 * proxy's and the rest is the peer's; -errno: refused, e says why. */
int socks5_feed(struct socks5 *s, const uint8_t *p, size_t len, size_t *ret_used,
                struct strbuf *out, struct sg_error *e);
