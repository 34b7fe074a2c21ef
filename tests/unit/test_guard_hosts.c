/* The addresses of this machine, in a network namespace of the test's own, where they can change.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "guard/addr.h"
#include "guard/guard.h"
#include "tap.h"

static bool has(const struct hosts *h, const char *text)
{
    struct net_addr a = {0};

    EXPECT(net_addr_parse(text, &a) == 0);
    return hosts_has(h, &a);
}

/* ---- changing them --------------------------------------------------------------------------- */

struct request {
    struct nlmsghdr head;
    char rest[256];
};

static void add_attribute(struct request *q, unsigned short type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), data, len);
    q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

static bool kernel_does(const struct request *q)
{
    AUTO(close_p) int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[512];
    } answer = {0};

    return s >= 0 && send(s, q, q->head.nlmsg_len, 0) > 0 &&
           recv(s, &answer, sizeof(answer), 0) > 0 && answer.error.error == 0;
}

static size_t address_bytes(const char *text, uint8_t *ret_family, uint8_t ret[16])
{
    struct net_addr a = {0};
    bool v4;

    EXPECT(net_addr_parse(text, &a) == 0);
    v4 = net_addr_is_v4(&a);
    *ret_family = v4 ? AF_INET : AF_INET6;
    memcpy(ret, v4 ? a.ip + 12 : a.ip, v4 ? 4 : 16);
    return v4 ? 4 : 16;
}

static bool change_address(const char *text, bool add)
{
    uint8_t family, ip[16];
    size_t len = address_bytes(text, &family, ip);
    struct ifaddrmsg m = {.ifa_family = family,
                          .ifa_prefixlen = (uint8_t)(len * 8),
                          .ifa_flags = IFA_F_NODAD,
                          .ifa_index = if_nametoindex("lo")};
    struct request q = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m)),
                 .nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (add ? NLM_F_CREATE : 0)}};

    memcpy(NLMSG_DATA(&q.head), &m, sizeof(m));
    add_attribute(&q, IFA_LOCAL, ip, len);
    add_attribute(&q, IFA_ADDRESS, ip, len);
    return kernel_does(&q);
}

/* type RTN_LOCAL: a network whose addresses are all this machine's; RTN_UNICAST: a way. text NULL:
 * to everywhere. */
static bool add_route(uint8_t family, const char *text, unsigned len, uint8_t type)
{
    unsigned lo = if_nametoindex("lo");
    struct rtmsg m = {.rtm_family = family,
                      .rtm_dst_len = (uint8_t)len,
                      .rtm_table = type == RTN_LOCAL ? RT_TABLE_LOCAL : RT_TABLE_MAIN,
                      .rtm_protocol = RTPROT_STATIC,
                      .rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK,
                      .rtm_type = type};
    struct request q = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m)),
                                 .nlmsg_type = RTM_NEWROUTE,
                                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE}};
    uint8_t ip[16];

    memcpy(NLMSG_DATA(&q.head), &m, sizeof(m));
    if (text)
        add_attribute(&q, RTA_DST, ip, address_bytes(text, &family, ip));
    add_attribute(&q, RTA_OIF, &lo, sizeof(lo));
    return kernel_does(&q);
}

static bool lo_up(void)
{
    AUTO(close_p) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    return s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0;
}

/* Takes news until it is so. IPv6 has some in the background, so it can be more than one. */
#define WAIT_FOR(h, condition)                                    \
    do {                                                          \
        struct pollfd p_ = {.fd = hosts_fd(h), .events = POLLIN}; \
        while (!(condition) && poll(&p_, 1, 5000) == 1)           \
            hosts_update(h);                                      \
        EXPECT(condition);                                        \
    } while (0)

/* ---- cases ----------------------------------------------------------------------------------- */

static struct hosts *own_network(void)
{
    struct hosts *h = NULL;
    struct sg_error e = {0};

    /* A user namespace, so that this needs no privilege; the second time it is there. */
    if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        printf("# no network namespace: %s\n", strerror(errno));
        tap_failures++;
        return NULL;
    }
    EXPECT(lo_up());
    EXPECT(hosts_new(&h, &e) == 0);
    return h;
}

TEST(addresses_come_and_go)
{
    struct hosts *h = own_network();

    if (!h)
        return;
    EXPECT(has(h, "127.0.0.1") && has(h, "127.255.0.1") && has(h, "::1"));
    EXPECT(!has(h, "93.184.216.34") && !has(h, "2606:2800::1"));
    EXPECT(change_address("93.184.216.34", true));
    WAIT_FOR(h, has(h, "93.184.216.34"));
    EXPECT(!has(h, "93.184.216.35"));
    EXPECT(change_address("2606:2800::1", true));
    WAIT_FOR(h, has(h, "2606:2800::1"));
    EXPECT(!has(h, "2606:2800::2") && has(h, "93.184.216.34"));
    EXPECT(change_address("93.184.216.34", false));
    WAIT_FOR(h, !has(h, "93.184.216.34"));
    EXPECT(has(h, "2606:2800::1"));
    hosts_free(h);
}

TEST(local_routes_count)
{
    struct hosts *h = own_network();

    if (!h)
        return;
    EXPECT(add_route(AF_INET, "198.41.0.0", 24, RTN_LOCAL));
    WAIT_FOR(h, has(h, "198.41.0.0"));
    EXPECT(has(h, "198.41.0.255") && !has(h, "198.41.1.0"));
    hosts_free(h);
}

TEST(many_addresses)
{
    struct hosts *h = own_network();
    char text[32];

    if (!h)
        return;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "44.1.%d.%d", i / 250, i % 250);
        EXPECT(change_address(text, true));
    }
    hosts_update(h);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "44.1.%d.%d", i / 250, i % 250);
        EXPECT(has(h, text));
    }
    hosts_free(h);
}

/* Without any way nothing is left out; with one, the other family is. */
TEST(ways_out)
{
    struct hosts *h = own_network();

    if (!h)
        return;
    EXPECT(hosts_has_v4(h) && hosts_has_v6(h));
    EXPECT(change_address("93.184.216.34", true));
    EXPECT(add_route(AF_INET, NULL, 0, RTN_UNICAST));
    WAIT_FOR(h, hosts_has_v4(h) && !hosts_has_v6(h));
    EXPECT(change_address("2606:2800::1", true));
    EXPECT(add_route(AF_INET6, NULL, 0, RTN_UNICAST));
    WAIT_FOR(h, hosts_has_v4(h) && hosts_has_v6(h));
    hosts_free(h);
}

TEST(the_guard_does_not_dial_them)
{
    static struct guard g;
    struct sg_error e = {0};
    struct net_addr a = {0}, behind = {0};

    g.hosts = own_network();
    if (!g.hosts)
        return;
    EXPECT(net_addr_parse("93.184.216.34", &a) == 0);
    EXPECT(net_addr_parse("64:ff9b::5db8:d822", &behind) == 0);
    EXPECT(internal_set_new("64:ff9b::/96", &g.internal, &e) == 0);
    EXPECT(!guard_never_dials(&g, &a) && !guard_never_dials(&g, &behind));
    EXPECT(change_address("93.184.216.34", true));
    WAIT_FOR(g.hosts, guard_never_dials(&g, &a));
    EXPECT_STR(guard_never_dials(&g, &a), "address of this machine");
    EXPECT_STR(guard_never_dials(&g, &behind), "address of this machine");
    internal_set_free(g.internal);
    EXPECT(internal_set_new("93.184.216.34:80", &g.internal, &e) == 0);
    a.port = 80;
    EXPECT(!guard_never_dials(&g, &a));
    a.port = 22;
    EXPECT_STR(guard_never_dials(&g, &a), "address of this machine");
    internal_set_free(g.internal);
    hosts_free(g.hosts);
}

TAP_MAIN
