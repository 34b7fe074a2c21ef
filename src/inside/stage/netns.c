/* A network namespace with only a loopback interface. */
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "inside/stage/stage.h"

static int lo_up(struct sg_error *e)
{
    AUTO(close_p) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
        return err_errno(e, "bring up lo in the new network namespace");
    return 0;
}

int netns_renew(int procfd, struct sg_error *e)
{
    int r;

    if (unshare(CLONE_NEWNET) < 0)
        return err_errno(e, "make a network namespace");
    r = lo_up(e);
    if (r < 0)
        return r;
    /* To bind a port below 1024 takes a capability in the user namespace that owns this one, and
     * nobody inside has it. But users expect `root` to bind port 80. (ping_group_range is "1 0",
     * nobody, in every new namespace.) */
    r = file_write(procfd, "sys/net/ipv4/ip_unprivileged_port_start", "0");
    return err_internal(e, r, "set up the new network namespace");
}
