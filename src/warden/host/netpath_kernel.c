/* Tells the kernel what the plan says (netpath_plan.h), in the namespace of the calling thread. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "warden/host/bpf.h"
#include "warden/host/netpath_impl.h"

static const struct netpath_plan *plan;

void netpath_use(const struct netpath_plan *p)
{
    plan = p;
}

/* ---- netlink --------------------------------------------------------------------------------- */

/* When send() returns, the kernel has done everything, and its answers are in the socket. */
static int exchange(int sock, const struct netlink_batch *b)
{
    if (send(sock, b->bytes, b->len, 0) < 0)
        return -errno;
    for (uint32_t n = 0; n < b->n_asks; n++) {
        union {
            struct nlmsghdr head;
            char bytes[4096];
        } answer;
        ssize_t got = recv(sock, &answer, sizeof(answer), MSG_DONTWAIT);
        const struct nlmsgerr *result = NLMSG_DATA(&answer.head);

        if (got < 0)
            return -errno;
        if ((size_t)got < NLMSG_LENGTH(sizeof(*result)) || answer.head.nlmsg_type != NLMSG_ERROR)
            return -EPROTO;
        if (result->error < 0)
            return result->error;
    }
    return 0;
}

int netpath_tell(enum netpath_batch which, bool ipv6, struct sg_error *e)
{
    static const char *const what[BATCH_MAX_] = {[BATCH_ADDRESSES] = "add the sandbox's addresses",
                                                 [BATCH_ROUTES] = "add the sandbox's routes",
                                                 [BATCH_NO_ROUTES] = "remove the sandbox's routes",
                                                 [BATCH_TPROXY] = "add rules 'tproxy' to nftables",
                                                 [BATCH_REDIRECT] =
                                                     "add rules 'redirect' to nftables"};
    const struct netlink_batch *b = &plan->batches[which][ipv6];
    AUTO(close_p) int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, b->protocol);
    int r;

    if (sock < 0)
        return err_errno(e, "open a netlink socket");
    r = exchange(sock, b);
    return r < 0 ? err_set(e, which < BATCH_TPROXY ? SG_ERR_INTERNAL : SG_ERR_UNSUPPORTED, r,
                           "%s: %s", what[which], strerror(-r))
                 : 0;
}

int netpath_add_addresses(bool ipv6, struct sg_error *e)
{
    int r = netpath_tell(BATCH_ADDRESSES, ipv6, e);

    /* Some hosts turn IPv6 off in each new namespace. /proc/sys/net is that of the calling
     * thread's. */
    if (ipv6 && r == -EACCES &&
        file_write(AT_FDCWD, "/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0") == 0)
        r = netpath_tell(BATCH_ADDRESSES, ipv6, e);
    return r;
}

int netpath_lo_up(struct sg_error *e)
{
    AUTO(close_p) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};

    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
        return err_errno(e, "bring up lo");
    return 0;
}

/* ---- BPF ------------------------------------------------------------------------------------- */

/* The program finds the sockets in a map. Each namespace has its own map, because a program cannot
 * ask in which namespace it runs. */
static int make_map(int tcp, int udp, struct sg_error *e)
{
    union bpf_attr create = {.map_type = BPF_MAP_TYPE_SOCKMAP,
                             .key_size = sizeof(uint32_t),
                             .value_size = sizeof(uint64_t),
                             .max_entries = LOOKUP_KEYS};
    AUTO(close_p) int map = bpf(BPF_MAP_CREATE, &create);
    const uint64_t sockets[LOOKUP_KEYS] = {
        [LOOKUP_TCP] = (uint64_t)tcp, [LOOKUP_UDP] = (uint64_t)udp};

    if (map < 0)
        return err_errno(e, "make a BPF map of sockets");
    for (uint32_t k = 0; k < LOOKUP_KEYS; k++) {
        union bpf_attr update = {.map_fd = (uint32_t)map};
        update.key = (uintptr_t)&k;
        update.value = (uintptr_t)&sockets[k];
        if (bpf(BPF_MAP_UPDATE_ELEM, &update) < 0)
            return err_errno(e, "put a socket into a BPF map");
    }
    return steal_fd(&map);
}

static int load(int map, struct sg_error *e)
{
    struct bpf_insn program[LOOKUP_MAX];
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SK_LOOKUP,
                           .expected_attach_type = BPF_SK_LOOKUP,
                           .insns = (uintptr_t)program,
                           .insn_cnt = plan->n_lookup,
                           .license = (uintptr_t) "Apache-2.0"};
    int prog;

    memcpy(program, plan->lookup, sizeof(program));
    program[plan->map].imm = map;
    prog = bpf(BPF_PROG_LOAD, &attr);
    return prog < 0 ? err_errno(e, "load the BPF program sk_lookup") : prog;
}

int netpath_attach_lookup(int tcp, int udp, struct sg_error *e)
{
    AUTO(close_p) int map = make_map(tcp, udp, e);
    AUTO(close_p) int prog = map < 0 ? map : load(map, e);
    AUTO(close_p) int ns = -1;
    union bpf_attr attr = {.link_create = {.attach_type = BPF_SK_LOOKUP}};
    int link;

    if (prog < 0)
        return prog;
    ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return err_errno(e, "open the sandbox's network namespace");
    attr.link_create.prog_fd = (uint32_t)prog;
    attr.link_create.target_fd = (uint32_t)ns;
    link = bpf(BPF_LINK_CREATE, &attr);
    return link < 0 ? err_errno(e, "attach the BPF program sk_lookup") : link;
}
