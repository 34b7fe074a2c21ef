#include "lib/net/addr.h"

#include <sys/socket.h>

/* Services of this machine that are not for others often listen on all of its addresses. Whoever
 * connects to an address of its own has that address too; UDP sends nothing for it. */
static bool is_own(const struct net_addr *a)
{
    AUTO(close_p)
    int fd = socket(net_addr_is_v4(a) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage sa;
    socklen_t len = net_addr_to(a, &sa);
    struct net_addr from;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, len) < 0)
        return false;
    len = sizeof(sa);
    return getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
           net_addr_from((const struct sockaddr *)&sa, &from) == 0 && net_addr_equal(&from, a);
}

const char *net_addr_dial_refusal(const struct net_addr *a)
{
    const char *why = net_addr_refusal(a);

    return !why && is_own(a) ? "address of this machine itself" : why;
}
