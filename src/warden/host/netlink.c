#include "warden/host/netlink.h"

#include <assert.h>
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <string.h>

/* No check for overflow: all sizes are constants of this program. */
static void *take(struct netlink *n, size_t len)
{
    struct netlink_batch *b = n->batch;
    void *p = b->bytes + b->len;

    assert(len <= sizeof(b->bytes) - b->len - NLMSG_ALIGNTO);
    memset(p, 0, NLMSG_ALIGN(len));
    b->len += NLMSG_ALIGN(len);
    return p;
}

static struct nlmsghdr *current(struct netlink *n)
{
    return (struct nlmsghdr *)(void *)(n->batch->bytes + n->message);
}

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *head, size_t len)
{
    struct nlmsghdr *h;

    n->message = n->batch->len;
    h = take(n, sizeof(*h));
    *h = (struct nlmsghdr){
        .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = ++n->seq};
    if (flags & NLM_F_ACK)
        n->batch->n_asks++;
    memcpy(take(n, len), head, len);
    h->nlmsg_len = (uint32_t)(n->batch->len - n->message);
}

void netlink_attr(struct netlink *n, uint16_t type, const void *data, size_t len)
{
    struct nlattr *a = take(n, sizeof(*a));

    *a = (struct nlattr){.nla_type = type, .nla_len = (uint16_t)(sizeof(*a) + len)};
    if (len > 0)
        memcpy(take(n, len), data, len);
    current(n)->nlmsg_len = (uint32_t)(n->batch->len - n->message);
}

void netlink_attr_text(struct netlink *n, uint16_t type, const char *text)
{
    netlink_attr(n, type, text, strlen(text) + 1);
}

void netlink_attr_be32(struct netlink *n, uint16_t type, uint32_t value)
{
    value = htonl(value);
    netlink_attr(n, type, &value, sizeof(value));
}

size_t netlink_nest(struct netlink *n, uint16_t type)
{
    size_t begin = n->batch->len;

    netlink_attr(n, type | NLA_F_NESTED, NULL, 0);
    return begin;
}

void netlink_unnest(struct netlink *n, size_t begin)
{
    ((struct nlattr *)(void *)(n->batch->bytes + begin))->nla_len =
        (uint16_t)(n->batch->len - begin);
}
