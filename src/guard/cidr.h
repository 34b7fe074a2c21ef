/* Networks, and finding the longest one that contains an address: a radix tree over 128 bits with
 * compressed paths. Its depth depends on how networks are nested, not on the length of their
 * prefixes.
 *
 * IPv4 and IPv6 have a tree each: "::/0" is all of IPv6, and not IPv4 in its mapped form. */
#pragma once

#include "guard/addr.h"

struct cidr {
    uint8_t ip[16]; /* bits behind the prefix are 0 */
    uint8_t len;    /* in bits of 128: an IPv4 /0 has 96 */
    bool v4;
};

/* Takes "10.0.0.0/8", "2606:2800::/32", or an address, which is a network of one. Drops bits behind
 * the prefix. -EINVAL. */
int cidr_parse(const char *text, struct cidr *ret);
void cidr_from_addr(const struct net_addr *a, unsigned len, struct cidr *ret);
bool cidr_has(const struct cidr *c, const struct net_addr *a);

struct cidr_tree;
struct cidr_tree *cidr_tree_new(void);
void cidr_tree_free(struct cidr_tree *t); /* NULL is allowed */
/* If the same network is added again, its first value stays. value is not NULL. */
void cidr_tree_add(struct cidr_tree *t, const struct cidr *c, const char *value);
/* The value of the longest network that contains a; NULL: none does. */
const char *cidr_tree_find(const struct cidr_tree *t, const struct net_addr *a);
