/* The plan as a whole, and the addresses and routes of a sandbox's network namespace. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "warden/host/netlink.h"
#include "warden/host/netpath_impl.h"

#define LO_INDEX 1 /* in every namespace: lo is its first interface */

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

static void put_addresses(bool ipv6, struct netlink_batch *ret)
{
    struct netlink n = {.batch = ret};
    uint32_t own4 = htonl(NETPATH_OWN4);

    ret->protocol = NETLINK_ROUTE;
    put_address(&n, AF_INET, &own4, sizeof(own4));
    if (ipv6)
        put_address(&n, AF_INET6, &netpath_own6, sizeof(netpath_own6));
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

static void put_routes(bool ipv6, bool on, struct netlink_batch *ret)
{
    struct netlink n = {.batch = ret};

    ret->protocol = NETLINK_ROUTE;
    put_route(&n, AF_INET, on);
    if (ipv6)
        put_route(&n, AF_INET6, on);
}

void netpath_plan_make(struct netpath_plan *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        put_addresses(ipv6, &ret->batches[BATCH_ADDRESSES][ipv6]);
        put_routes(ipv6, true, &ret->batches[BATCH_ROUTES][ipv6]);
        put_routes(ipv6, false, &ret->batches[BATCH_NO_ROUTES][ipv6]);
        netpath_nft_tproxy(ipv6, &ret->batches[BATCH_TPROXY][ipv6]);
        netpath_nft_redirect(&ret->batches[BATCH_REDIRECT][ipv6]);
    }
    netpath_lookup(ret);
}

static void use_own(void)
{
    static struct netpath_plan own;

    netpath_plan_make(&own);
    netpath_use(&own);
}

void netpath_plan_use(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, use_own);
}
