/* Addresses and routes of a sandbox's network namespace. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "warden/host/netpath_impl.h"

#define LO_INDEX 1 /* in every namespace: lo is its first interface */

int netpath_lo_up(struct sg_error *e)
{
    AUTO(close_p) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
        return err_errno(e, "bring up lo");
    return 0;
}

static void put_address(struct netlink *n, int family, const void *address, size_t len)
{
    struct ifaddrmsg m = {.ifa_family = (uint8_t)family,
                          .ifa_prefixlen = (uint8_t)(8 * len),
                          .ifa_flags = IFA_F_PERMANENT | (family == AF_INET6 ? IFA_F_NODAD : 0),
                          .ifa_scope = RT_SCOPE_UNIVERSE,
                          .ifa_index = LO_INDEX};

    netlink_begin(n, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, &m, sizeof(m));
    netlink_attr(n, IFA_LOCAL, address, len);
    netlink_attr(n, IFA_ADDRESS, address, len);
}

static int send_addresses(bool ipv6, struct sg_error *e)
{
    AUTO(netlink_done) struct netlink n = {.sock = -1};
    uint32_t own4 = htonl(NETPATH_OWN4);
    int r = netlink_open(&n, NETLINK_ROUTE, e);

    if (r < 0)
        return r;
    put_address(&n, AF_INET, &own4, sizeof(own4));
    if (ipv6)
        put_address(&n, AF_INET6, &netpath_own6, sizeof(netpath_own6));
    r = netlink_commit(&n);
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "add the sandbox's addresses: %s", strerror(-r))
                 : 0;
}

int netpath_add_addresses(bool ipv6, struct sg_error *e)
{
    int r = send_addresses(ipv6, e);

    /* Some hosts turn IPv6 off in each new namespace. /proc/sys/net is that of the calling
     * thread's. */
    if (ipv6 && r == -EACCES &&
        file_write(AT_FDCWD, "/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0") == 0)
        r = send_addresses(ipv6, e);
    return r;
}

static void put_route(struct netlink *n, int family, bool on)
{
    struct rtmsg m = {.rtm_family = (uint8_t)family,
                      .rtm_table = RT_TABLE_LOCAL,
                      .rtm_protocol = RTPROT_STATIC,
                      .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                      .rtm_type = RTN_LOCAL};
    uint32_t own4 = htonl(NETPATH_OWN4), lo = LO_INDEX;

    netlink_begin(n, on ? RTM_NEWROUTE : RTM_DELROUTE,
                  (on ? NLM_F_CREATE | NLM_F_REPLACE : 0) | NLM_F_ACK, &m, sizeof(m));
    netlink_attr(n, RTA_OIF, &lo, sizeof(lo));
    if (family == AF_INET)
        netlink_attr(n, RTA_PREFSRC, &own4, sizeof(own4));
}

int netpath_set_routes(bool ipv6, bool on, struct sg_error *e)
{
    AUTO(netlink_done) struct netlink n = {.sock = -1};
    int r = netlink_open(&n, NETLINK_ROUTE, e);

    if (r < 0)
        return r;
    put_route(&n, AF_INET, on);
    if (ipv6)
        put_route(&n, AF_INET6, on);
    r = netlink_commit(&n);
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "%s the sandbox's routes: %s",
                           on ? "add" : "remove", strerror(-r))
                 : 0;
}
