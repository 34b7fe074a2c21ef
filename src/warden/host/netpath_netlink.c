#include <assert.h>
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "warden/host/netpath_impl.h"

int netlink_open(struct netlink *n, int protocol, struct sg_error *e)
{
    n->sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    n->len = n->message = 0;
    n->seq = n->n_asks = 0;
    return n->sock < 0 ? err_errno(e, "open a netlink socket") : 0;
}

void netlink_done(struct netlink *n)
{
    close_p(&n->sock);
}

/* No check for overflow: all sizes are constants of this program. */
static void *take(struct netlink *n, size_t len)
{
    void *p = n->buf + n->len;

    assert(len <= sizeof(n->buf) - n->len - NLMSG_ALIGNTO);
    memset(p, 0, NLMSG_ALIGN(len));
    n->len += NLMSG_ALIGN(len);
    return p;
}

static struct nlmsghdr *current(struct netlink *n)
{
    return (struct nlmsghdr *)(void *)(n->buf + n->message);
}

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *head, size_t len)
{
    struct nlmsghdr *h;

    n->message = n->len;
    h = take(n, sizeof(*h));
    *h = (struct nlmsghdr){
        .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = ++n->seq};
    if (flags & NLM_F_ACK)
        n->n_asks++;
    memcpy(take(n, len), head, len);
    h->nlmsg_len = (uint32_t)(n->len - n->message);
}

void netlink_attr(struct netlink *n, uint16_t type, const void *data, size_t len)
{
    struct nlattr *a = take(n, sizeof(*a));

    *a = (struct nlattr){.nla_type = type, .nla_len = (uint16_t)(sizeof(*a) + len)};
    if (len > 0)
        memcpy(take(n, len), data, len);
    current(n)->nlmsg_len = (uint32_t)(n->len - n->message);
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
    size_t begin = n->len;

    netlink_attr(n, type | NLA_F_NESTED, NULL, 0);
    return begin;
}

void netlink_unnest(struct netlink *n, size_t begin)
{
    ((struct nlattr *)(void *)(n->buf + begin))->nla_len = (uint16_t)(n->len - begin);
}

/* When send() returns, the kernel has done everything, and its answers are in the socket. */
int netlink_commit(struct netlink *n)
{
    if (send(n->sock, n->buf, n->len, 0) < 0)
        return -errno;
    while (n->n_asks > 0) {
        union {
            struct nlmsghdr head;
            char bytes[4096];
        } answer;
        ssize_t got = recv(n->sock, &answer, sizeof(answer), MSG_DONTWAIT);
        const struct nlmsgerr *result = NLMSG_DATA(&answer.head);

        if (got < 0)
            return -errno;
        if ((size_t)got < NLMSG_LENGTH(sizeof(*result)) || answer.head.nlmsg_type != NLMSG_ERROR)
            return -EPROTO;
        if (result->error < 0)
            return result->error;
        n->n_asks--;
    }
    return 0;
}
