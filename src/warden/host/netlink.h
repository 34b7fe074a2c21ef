/* Puts messages of netlink together (netpath_plan.h). */
#pragma once

#include "warden/host/netpath_plan.h"

struct netlink {
    struct netlink_batch *batch;
    uint32_t seq; /* of the last message */
    size_t message;
};

/* Begins a message; head is the structure that this type has before its attributes. */
void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *head, size_t len);
void netlink_attr(struct netlink *n, uint16_t type, const void *data, size_t len);
void netlink_attr_text(struct netlink *n, uint16_t type, const char *text);
void netlink_attr_be32(struct netlink *n, uint16_t type, uint32_t value);
/* Begins an attribute that contains attributes; returns its offset. */
size_t netlink_nest(struct netlink *n, uint16_t type);
void netlink_unnest(struct netlink *n, size_t begin);

/* In netpath_nft.c: rules for the paths tproxy and redirect. */
void netpath_nft_tproxy(bool ipv6, struct netlink_batch *ret);
void netpath_nft_redirect(struct netlink_batch *ret);
/* In netpath_lookup.c. */
void netpath_lookup(struct netpath_plan *ret);
