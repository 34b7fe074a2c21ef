/* The addresses of this machine: those of its interfaces, and whatever else its local routing table
 * keeps here. One socket reports that something has changed, then another asks for the whole list
 * anew: the addresses are few and change seldom, and a list that is read whole cannot get out of
 * step. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "guard/cidr.h"

#define ANSWER_MAX (64u * 1024)
#define EVENTS_MAX 1000 /* read in one turn; the rest makes the socket readable again */

struct hosts {
    int events, questions;
    uint32_t seq;
    struct cidr_tree *own;
    bool v4, v6;
};

/* ---- reading --------------------------------------------------------------------------------- */

static struct rtattr *find_attribute(struct rtattr *a, size_t len, unsigned type)
{
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
        if (a->rta_type == type)
            return a;
    return NULL;
}

static void add_network(struct cidr_tree *t, unsigned family, struct rtattr *a, unsigned len)
{
    const uint8_t *ip = RTA_DATA(a);
    struct net_addr address;
    struct cidr c;

    if (family == AF_INET && RTA_PAYLOAD(a) == 4 && len <= 32)
        net_addr_v4(ip, 0, &address);
    else if (family == AF_INET6 && RTA_PAYLOAD(a) == 16 && len <= 128)
        net_addr_v6(ip, 0, &address);
    else
        return;
    cidr_from_addr(&address, len + (family == AF_INET ? 96 : 0), &c);
    cidr_tree_add(t, &c, "");
}

static void read_address(struct cidr_tree *t, struct nlmsghdr *m)
{
    struct ifaddrmsg *i = NLMSG_DATA(m);
    struct rtattr *a;

    if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
        return;
    /* On a point-to-point interface IFA_ADDRESS is the other end. */
    a = find_attribute(IFA_RTA(i), IFA_PAYLOAD(m), IFA_LOCAL);
    if (!a)
        a = find_attribute(IFA_RTA(i), IFA_PAYLOAD(m), IFA_ADDRESS);
    if (a)
        add_network(t, i->ifa_family, a, i->ifa_family == AF_INET ? 32 : 128);
}

/* Reads a local route. An address can be this machine's without being on an interface: `ip route
 * add local ...`. */
static void read_route(struct cidr_tree *t, struct nlmsghdr *m)
{
    struct rtmsg *i = NLMSG_DATA(m);
    struct rtattr *a;

    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
        return;
    if (i->rtm_table != RT_TABLE_LOCAL || i->rtm_type == RTN_MULTICAST)
        return;
    a = find_attribute(RTM_RTA(i), RTM_PAYLOAD(m), RTA_DST);
    if (a)
        add_network(t, i->rtm_family, a, i->rtm_dst_len);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Reads a part of the kernel's answer. The kernel makes a dump while it is read, so this never
 * waits. 1: the answer has ended. */
static int read_answer(struct hosts *h, struct cidr_tree *t,
                       void (*read_one)(struct cidr_tree *t, struct nlmsghdr *m))
{
    AUTO(free_p) char *buf = xcalloc(1, ANSWER_MAX);
    ssize_t got = recv(h->questions, buf, ANSWER_MAX, MSG_TRUNC);

    if (got < 0)
        return -errno;
    if (got > (ssize_t)ANSWER_MAX)
        return -EMSGSIZE;
    size_t len = (size_t)got;
    for (struct nlmsghdr *m = (struct nlmsghdr *)(void *)buf; NLMSG_OK(m, len);
         m = NLMSG_NEXT(m, len)) {
        if (m->nlmsg_seq != h->seq)
            continue;
        if (m->nlmsg_flags & NLM_F_DUMP_INTR)
            return -EINTR;
        if (m->nlmsg_type == NLMSG_DONE)
            return 1;
        if (m->nlmsg_type == NLMSG_ERROR)
            return -EIO;
        read_one(t, m);
    }
    return 0;
}

static int ask(struct hosts *h, struct cidr_tree *t, uint16_t type, unsigned family,
               void (*read_one)(struct cidr_tree *t, struct nlmsghdr *m))
{
    struct {
        struct nlmsghdr head;
        union {
            struct ifaddrmsg address;
            struct rtmsg route;
        };
    } q = {.head = {.nlmsg_type = type,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = ++h->seq}};
    int r = 0;

    if (type == RTM_GETROUTE) {
        q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.route));
        q.route = (struct rtmsg){.rtm_family = (uint8_t)family, .rtm_table = RT_TABLE_LOCAL};
    } else {
        q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.address));
        q.address.ifa_family = (uint8_t)family;
    }
    if (send(h->questions, &q, q.head.nlmsg_len, 0) < 0)
        return -errno;
    while (r == 0)
        r = read_answer(h, t, read_one);
    return r < 0 ? r : 0;
}

static int ask_all(struct hosts *h)
{
    struct cidr_tree *t = cidr_tree_new();
    int r = 0;

    for (int i = 0; r == 0 && i < 2; i++) {
        unsigned family = i == 0 ? AF_INET : AF_INET6;

        r = ask(h, t, RTM_GETADDR, family, read_address);
        if (r == 0)
            r = ask(h, t, RTM_GETROUTE, family, read_route);
    }
    if (r < 0) {
        cidr_tree_free(t);
        return r;
    }
    cidr_tree_free(h->own);
    h->own = t;
    return 0;
}

/* ---- a way to the internet ------------------------------------------------------------------- */

/* Whether there is a route to an address. Connecting a datagram socket sends nothing and asks the
 * routing table. The address is a root name server's; any on the internet would do. */
static bool has_way(const char *to)
{
    struct sockaddr_storage sa;
    struct net_addr a, own;

    net_addr_parse(to, &a);
    a.port = 53;
    socklen_t len = net_addr_to(&a, &sa);
    AUTO(close_p) int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) < 0)
        return false;
    /* With a router but without an address of its own, a host has a way out and none back. */
    len = sizeof(sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
        net_addr_from((struct sockaddr *)&sa, &own) < 0)
        return false;
    return own.ip[0] != 0xfe;
}

static void find_ways(struct hosts *h)
{
    h->v4 = has_way("198.41.0.4");
    h->v6 = has_way("2001:503:ba3e::2:30");
    /* If neither family has a way to the internet, the machine reaches only networks with routes of
     * their own. The guard cannot tell of which family those are, so it takes both. */
    if (!h->v4 && !h->v6)
        h->v4 = h->v6 = true;
}

/* ---- the list, and its updates --------------------------------------------------------------- */

static int open_netlink(int flags, uint32_t groups)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = groups};
    AUTO(close_p) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    return steal_fd(&fd);
}

int hosts_new(struct hosts **ret, struct sg_error *e)
{
    struct hosts *h = xcalloc(1, sizeof(*h));
    struct timeval patience = {.tv_sec = 1};
    int on = 1, r;

    h->questions = -1;
    h->events = open_netlink(SOCK_NONBLOCK, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                                RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
    if (h->events >= 0)
        h->questions = open_netlink(0, 0);
    r = h->events < 0 ? h->events : h->questions < 0 ? h->questions : 0;
    if (r == 0) {
        setsockopt(h->questions, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        /* Makes the kernel send only the table that was asked for; kernels before 4.20 send all of
         * them. */
        setsockopt(h->questions, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
        r = ask_all(h);
    }
    if (r < 0) {
        hosts_free(h);
        return err_set(e, SG_ERR_INTERNAL, r,
                       "ask the kernel for the addresses of this machine: %s", strerror(-r));
    }
    find_ways(h);
    *ret = h;
    return 0;
}

void hosts_free(struct hosts *h)
{
    if (!h)
        return;
    close_p(&h->events);
    close_p(&h->questions);
    cidr_tree_free(h->own);
    free(h);
}

int hosts_fd(const struct hosts *h)
{
    return h->events;
}

void hosts_update(struct hosts *h)
{
    char buf[4096];

    /* It does not matter what has changed, nor that some events were lost (ENOBUFS). */
    for (int i = 0; i < EVENTS_MAX; i++)
        if (recv(h->events, buf, sizeof(buf), 0) < 0 && errno != ENOBUFS && errno != EINTR)
            break;
    /* If the list changes while it is read, read it again; if that fails, the old one stands. */
    for (int i = 0; i < 3 && ask_all(h) < 0; i++)
        ;
    find_ways(h);
}

bool hosts_has(const struct hosts *h, const struct net_addr *a)
{
    return cidr_tree_find(h->own, a) != NULL;
}

bool hosts_has_v4(const struct hosts *h)
{
    return h->v4;
}

bool hosts_has_v6(const struct hosts *h)
{
    return h->v6;
}
