/* Finds the way out of sandboxes that this host offers: tries each in a namespace that is thrown
 * away. */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/text/strbuf.h"
#include "warden/host/netpath_impl.h"

#define TARGET     0xcb007107u /* 203.0.113.7, where nobody is */
#define ARRIVAL_MS 1000

#ifndef SO_ORIGINAL_DST
#define SO_ORIGINAL_DST 80
#endif

/* Sends something from the namespace to an address that nobody has. Returns the socket. */
static int knock(int type, struct sg_error *e)
{
    AUTO(close_p) int sock = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(NETPATH_DNS_PORT),
                             .sin_addr.s_addr = htonl(TARGET)};

    if (sock < 0 ||
        (connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS) ||
        (type == SOCK_DGRAM && send(sock, "", 1, 0) < 0))
        return err_errno(e, "send a packet out");
    return steal_fd(&sock);
}

static bool arrives(int sock)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};

    return poll(&p, 1, ARRIVAL_MS) == 1;
}

/* Whether the socket still tells where the connection was meant to go. */
static bool tells_target(int sock, enum egress_path path)
{
    struct sockaddr_in6 a = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
    socklen_t len = sizeof(a);
    uint32_t ip4;

    if (path == PATH_REDIRECT ? getsockopt(sock, IPPROTO_IP, SO_ORIGINAL_DST, &a, &len) < 0
                              : getsockname(sock, (struct sockaddr *)&a, &len) < 0)
        return false;
    if (v4->sin_family == AF_INET)
        return v4->sin_addr.s_addr == htonl(TARGET);
    memcpy(&ip4, a.sin6_addr.s6_addr + 12, sizeof(ip4));
    return IN6_IS_ADDR_V4MAPPED(&a.sin6_addr) && ip4 == htonl(TARGET);
}

static int try_connection(const struct netpath *np, struct sg_error *e)
{
    AUTO(close_p) int from = knock(SOCK_STREAM, e), accepted = -1;

    if (from < 0)
        return from;
    if (arrives(np->tcp))
        accepted = accept4(np->tcp, NULL, NULL, SOCK_CLOEXEC);
    if (accepted < 0 || !tells_target(accepted, np->path))
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOTSUP, "connections do not arrive");
    return 0;
}

static int try_datagram(const struct netpath *np, struct sg_error *e)
{
    AUTO(close_p) int from = knock(SOCK_DGRAM, e);

    if (from < 0)
        return from;
    if (!arrives(np->udp))
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOTSUP, "datagrams do not arrive");
    return 0;
}

/* Enters a new namespace; returns the one to come back to. Coming back is tried first: a process
 * without rights over its namespace could leave it and not return. */
static int leave(struct sg_error *e)
{
    AUTO(close_p) int home = netpath_open_home(e);

    if (home < 0)
        return home;
    if (setns(home, CLONE_NEWNET) < 0 || unshare(CLONE_NEWNET) < 0)
        return err_errno(e, "make a network namespace");
    return steal_fd(&home);
}

static int try_path(enum egress_path path, struct sg_error *e)
{
    AUTO(netpath_go_home) int home = leave(e);
    AUTO(netpath_done) struct netpath np = NETPATH_NONE;
    int r = home < 0 ? home : netpath_lo_up(e);

    if (r == 0)
        r = netpath_make(path, &np, e);
    if (r == 0)
        r = netpath_open_here(&np, e);
    if (r == 0)
        r = try_connection(&np, e);
    return r < 0 ? r : try_datagram(&np, e);
}

int netpath_probe(enum egress_path wish, enum egress_path *ret, char why[NETPATH_WHY],
                  struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf said = {0};
    struct sg_error own = {0};

    strbuf_init(&said, NETPATH_WHY - 1);
    for (enum egress_path p = PATH_SK_LOOKUP; p < PATH_MAX_; p++) {
        if (wish && p != wish)
            continue;
        if (try_path(p, &own) == 0) {
            snprintf(why, NETPATH_WHY, "%s", said.buf);
            *ret = p;
            return 0;
        }
        strbuf_addf(&said, "%s%s: %s", said.len ? "; " : "", netpath_name(p), own.message);
    }
    return err_set(e, SG_ERR_UNSUPPORTED, -ENOTSUP,
                   "this host cannot route sandboxes' connections to the guard (%s)", said.buf);
}
