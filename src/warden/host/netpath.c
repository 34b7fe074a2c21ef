#include "warden/host/netpath.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "warden/host/netpath_impl.h"

#define HOME_TRIES    200
#define HOME_PAUSE_US 10000

const struct in6_addr netpath_own6 = {.s6_addr = {0xfd, 0x53, 0x61, 0x6e, 0x64, 0x67, [15] = 0x02}};
const struct in6_addr netpath_guard6 = {.s6_addr = {[10] = 0xff, 0xff, 0xc0, 0x00, 0x02, 0x01}};

const char *netpath_name(enum egress_path path)
{
    static const char *const names[PATH_MAX_] = {
        [PATH_SK_LOOKUP] = "sk_lookup", [PATH_TPROXY] = "tproxy", [PATH_REDIRECT] = "redirect"};

    return path > 0 && path < PATH_MAX_ ? names[path] : "none";
}

/* ---- entering the namespace and coming back -------------------------------------------------- */

int netpath_open_home(struct sg_error *e)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    return home < 0 ? err_errno(e, "open our own network namespace") : home;
}

/* Everything after it would go to a sandbox's network, so the process must not go on in there. It
 * fails only for want of memory, which may be there a moment later. */
void netpath_go_home(int *home)
{
    for (int tries = 0; *home >= 0 && setns(*home, CLONE_NEWNET) < 0; tries++) {
        if (tries == HOME_TRIES)
            abort();
        usleep(HOME_PAUSE_US);
    }
    close_p(home);
}

/* Enters the namespace; returns the one to come back to. */
static int enter(int pidfd, struct sg_error *e)
{
    AUTO(close_p) int home = netpath_open_home(e);

    if (home < 0)
        return home;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return errno == ESRCH ? err_set(e, SG_ERR_GONE, -ESRCH, "the sandbox has ended")
                              : err_errno(e, "enter the sandbox's network namespace");
    return steal_fd(&home);
}

/* ---- sockets --------------------------------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
};

static bool has_ipv6(int sock)
{
    int family = AF_UNSPEC;
    socklen_t len = sizeof(family);

    return getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family == AF_INET6;
}

static int open_socket(int type)
{
    int sock = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

    if (sock < 0 && errno == EAFNOSUPPORT)
        return socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock >= 0)
        setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return sock;
}

/* redirect delivers to 127.0.0.1 and ::1, so its sockets are bound to any address. The other paths
 * deliver to the socket itself, so they have an address of their own. */
static int bind_socket(int sock, enum egress_path path, uint16_t port)
{
    union address a = {.ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    socklen_t len = sizeof(a.ip6);

    if (path != PATH_REDIRECT)
        a.ip6.sin6_addr = netpath_guard6;
    if (!has_ipv6(sock)) {
        a.ip4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        if (path != PATH_REDIRECT)
            a.ip4.sin_addr.s_addr = htonl(NETPATH_GUARD4);
        len = sizeof(a.ip4);
    }
    return bind(sock, &a.any, len);
}

static int make_socket(int type, enum egress_path path, struct sg_error *e)
{
    AUTO(close_p) int sock = open_socket(type);
    /* The DNS socket has port 53, because answers must come from that port. */
    uint16_t port = type == SOCK_DGRAM ? NETPATH_DNS_PORT : NETPATH_PORT;
    int on = 1;

    if (sock < 0 || setsockopt(sock, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0 ||
        bind_socket(sock, path, port) < 0)
        return err_errno(e, "make the guard's socket in the sandbox");
    return steal_fd(&sock);
}

static int make_listener(enum egress_path path, struct sg_error *e)
{
    AUTO(close_p) int sock = make_socket(SOCK_STREAM, path, e);

    if (sock < 0)
        return sock;
    if (listen(sock, NETPATH_BACKLOG) < 0)
        return err_errno(e, "listen in the sandbox");
    return steal_fd(&sock);
}

/* With each datagram the socket tells which address it was sent to. */
static int make_datagram_socket(enum egress_path path, struct sg_error *e)
{
    AUTO(close_p) int sock = make_socket(SOCK_DGRAM, path, e);
    int on = 1;

    if (sock < 0)
        return sock;
    if (setsockopt(sock, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof(on)) < 0 ||
        setsockopt(sock, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0 ||
        (has_ipv6(sock) &&
         (setsockopt(sock, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof(on)) < 0 ||
          setsockopt(sock, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0)))
        return err_errno(e, "make the guard's datagram socket in the sandbox");
    return steal_fd(&sock);
}

/* ---- preparing, opening and closing a path --------------------------------------------------- */

static int attach(struct netpath *np, struct sg_error *e)
{
    bool ipv6 = has_ipv6(np->tcp);
    int r;

    switch (np->path) {
    case PATH_SK_LOOKUP:
        r = np->link = netpath_attach_lookup(np->tcp, np->udp, e);
        return r < 0 ? r : 0;
    case PATH_TPROXY:
        return netpath_tell(BATCH_TPROXY, ipv6, e);
    case PATH_REDIRECT:
        return netpath_tell(BATCH_REDIRECT, ipv6, e);
    case PATH_MAX_:
    default:
        return err_set(e, SG_ERR_INTERNAL, -EINVAL, "unknown kind of network path");
    }
}

int netpath_make(enum egress_path path, struct netpath *ret, struct sg_error *e)
{
    AUTO(netpath_done) struct netpath np = NETPATH_NONE;
    int r;

    np.path = path;
    r = np.tcp = make_listener(path, e);
    if (r >= 0)
        r = np.udp = make_datagram_socket(path, e);
    if (r >= 0)
        r = attach(&np, e);
    if (r >= 0)
        r = netpath_add_addresses(has_ipv6(np.tcp), e);
    if (r < 0)
        return r;
    *ret = np;
    np = (struct netpath)NETPATH_NONE;
    return 0;
}

int netpath_prepare(int pidfd, enum egress_path path, struct netpath *ret, struct sg_error *e)
{
    AUTO(netpath_go_home) int home = enter(pidfd, e);

    return home < 0 ? home : netpath_make(path, ret, e);
}

int netpath_open_here(struct netpath *np, struct sg_error *e)
{
    int r = netpath_tell(BATCH_ROUTES, has_ipv6(np->tcp), e);

    if (r == 0)
        np->open = true;
    return r;
}

int netpath_open(int pidfd, struct netpath *np, struct sg_error *e)
{
    AUTO(netpath_go_home) int home = np->open ? -1 : enter(pidfd, e);

    return np->open ? 0 : home < 0 ? home : netpath_open_here(np, e);
}

/* Resets connections that nobody has accepted, so that they do not hang. */
static void refuse_waiting(int listener)
{
    struct linger now = {.l_onoff = 1};

    for (int i = 0; i <= NETPATH_BACKLOG; i++) {
        AUTO(close_p) int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (sock < 0)
            return;
        setsockopt(sock, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
}

int netpath_close(int pidfd, struct netpath *np, struct sg_error *e)
{
    AUTO(netpath_go_home) int home = np->open ? enter(pidfd, e) : -1;
    int r;

    if (!np->open || home < 0)
        return np->open ? home : 0;
    r = netpath_tell(BATCH_NO_ROUTES, has_ipv6(np->tcp), e);
    if (r < 0)
        return r;
    np->open = false;
    refuse_waiting(np->tcp);
    return 0;
}

void netpath_done(struct netpath *np)
{
    close_p(&np->tcp);
    close_p(&np->udp);
    close_p(&np->link);
    *np = (struct netpath)NETPATH_NONE;
}

/* ---- datagram sockets ------------------------------------------------------------------------ */

/* Makes a sockaddr_in of an IPv4 address in either form. Returns its length; 0: neither IPv4 nor
 * IPv6. */
static socklen_t normalise(const struct sockaddr_storage *from, union address *ret)
{
    memcpy(ret, from, sizeof(*ret));
    if (ret->any.sa_family == AF_INET)
        return sizeof(ret->ip4);
    if (ret->any.sa_family != AF_INET6)
        return 0;
    if (!IN6_IS_ADDR_V4MAPPED(&ret->ip6.sin6_addr))
        return sizeof(ret->ip6);
    struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = ret->ip6.sin6_port};
    memcpy(&ip4.sin_addr, ret->ip6.sin6_addr.s6_addr + 12, sizeof(ip4.sin_addr));
    ret->ip4 = ip4;
    return sizeof(ret->ip4);
}

/* Whether the address is not the sandbox's own, and is that of a single machine. */
static bool is_foreign(const union address *a)
{
    const struct in6_addr *ip6 = &a->ip6.sin6_addr;
    uint32_t ip4 = ntohl(a->ip4.sin_addr.s_addr);

    if (a->any.sa_family == AF_INET)
        return a->ip4.sin_port && ip4 >> 24 != 0 && ip4 >> 24 != 127 && ip4 >> 28 < 14 &&
               ip4 != NETPATH_OWN4;
    return a->ip6.sin6_port && !IN6_IS_ADDR_UNSPECIFIED(ip6) && !IN6_IS_ADDR_LOOPBACK(ip6) &&
           !IN6_IS_ADDR_MULTICAST(ip6) && !IN6_ARE_ADDR_EQUAL(ip6, &netpath_own6);
}

int netpath_udp(int pidfd, const struct sockaddr_storage *local,
                const struct sockaddr_storage *peer, struct sg_error *e)
{
    AUTO(netpath_go_home) int home = -1;
    AUTO(close_p) int sock = -1;
    union address from, to;
    socklen_t len = normalise(local, &from);
    int on = 1;

    if (len == 0 || normalise(peer, &to) != len || !is_foreign(&from))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "not an address that a socket can have");
    home = enter(pidfd, e);
    if (home < 0)
        return home;
    /* SO_REUSEADDR: several sockets may stand for one remote address, each towards another port
     * inside. */
    sock = socket(from.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(sock, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0 ||
        bind(sock, &from.any, len) < 0 || connect(sock, &to.any, len) < 0)
        return err_errno(e, "make a datagram socket in the sandbox");
    return steal_fd(&sock);
}
