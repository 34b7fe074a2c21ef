/* The way out of a network namespace to the guard's sockets. Needs root. What sandboxes see of it
 * is in tests/system/egress_path.sh. */
#include "tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "lib/base/sys.h"
#include "warden/host/netpath_impl.h"

TAP_MAIN

static struct sg_error e;

/* A process in a namespace of its own, which does nothing. */
struct place {
    pid_t pid;
    int pidfd;
};

static struct place make_place(void)
{
    struct place p = {.pidfd = -1};
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_NEWNET, .pidfd = (uintptr_t)&p.pidfd, .exit_signal = SIGCHLD};
    int ready[2];
    char c;

    netpath_plan_use();
    EXPECT(pipe(ready) == 0);
    p.pid = sys_clone3(&args);
    if (p.pid == 0) {
        if (netpath_lo_up(NULL) < 0 || write(ready[1], "r", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    EXPECT(read(ready[0], &c, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    return p;
}

static void end_place(struct place *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->pidfd);
}

union address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    struct sockaddr_storage storage;
};

static union address address_of(const char *text, uint16_t port)
{
    union address a = {0};

    if (strchr(text, ':')) {
        a.ip6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        EXPECT(inet_pton(AF_INET6, text, &a.ip6.sin6_addr) == 1);
    } else {
        a.ip4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        EXPECT(inet_pton(AF_INET, text, &a.ip4.sin_addr) == 1);
    }
    return a;
}

/* A connection from within. The error, or the socket. */
static int connect_from(const struct place *p, int type, const char *to, uint16_t port)
{
    AUTO(netpath_go_home) int home = netpath_open_home(&e);
    union address a = address_of(to, port);
    int s, r;

    EXPECT(home >= 0 && setns(p->pidfd, CLONE_NEWNET) == 0);
    s = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0);
    r = connect(s, &a.any, a.any.sa_family == AF_INET ? sizeof(a.ip4) : sizeof(a.ip6));
    if (r == 0)
        return s;
    r = -errno;
    close(s);
    return r;
}

static size_t count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 5000) == 1;
}

TEST(each_path_opens_and_closes)
{
    for (enum egress_path path = PATH_SK_LOOKUP; path < PATH_MAX_; path++) {
        size_t fds = count_fds();
        struct netpath np = NETPATH_NONE;
        struct place p = make_place();
        char c;

        EXPECT(netpath_prepare(p.pidfd, path, &np, &e) == 0);
        EXPECT(np.path == path && !np.open && np.tcp >= 0 && np.udp >= 0);
        EXPECT(connect_from(&p, SOCK_STREAM, "8.8.8.8", 80) == -ENETUNREACH);
        EXPECT(connect_from(&p, SOCK_STREAM, "2606:2800::1", 80) == -ENETUNREACH);
        for (int turn = 0; turn < 2; turn++) {
            EXPECT(netpath_open(p.pidfd, &np, &e) == 0 && np.open);
            EXPECT(netpath_open(p.pidfd, &np, &e) == 0);
            int four = connect_from(&p, SOCK_STREAM, "8.8.8.8", 80);
            int six = connect_from(&p, SOCK_STREAM, "2606:2800::1", 80);
            EXPECT(four >= 0 && six >= 0 && readable(np.tcp));
            EXPECT(netpath_close(p.pidfd, &np, &e) == 0 && !np.open);
            /* Nobody took them: they are reset. */
            EXPECT(readable(four) && recv(four, &c, 1, 0) < 0 && errno == ECONNRESET);
            EXPECT(connect_from(&p, SOCK_STREAM, "8.8.8.8", 80) == -ENETUNREACH);
            close(four);
            close(six);
        }
        netpath_done(&np);
        end_place(&p);
        EXPECT(count_fds() == fds);
    }
}

TEST(own_addresses_are_left_alone)
{
    for (enum egress_path path = PATH_SK_LOOKUP; path < PATH_MAX_; path++) {
        static const char *const own[] = {"127.0.0.1", "127.9.9.9", "::1", "192.0.0.8",
                                          "fd53:616e:6467::2"};
        struct netpath np = NETPATH_NONE;
        struct place p = make_place();

        EXPECT(netpath_prepare(p.pidfd, path, &np, &e) == 0);
        EXPECT(netpath_open(p.pidfd, &np, &e) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
            EXPECT(connect_from(&p, SOCK_STREAM, own[i], 80) == -ECONNREFUSED);
        netpath_done(&np);
        end_place(&p);
    }
}

TEST(datagram_sockets_stand_for_others_only)
{
    static const struct {
        const char *local, *peer;
        uint16_t port;
        bool fine;
    } cases[] = {
        {"8.8.8.8", "192.0.0.8", 53, true},
        {"::ffff:8.8.8.8", "192.0.0.8", 54, true},
        {"2606:2800::1", "fd53:616e:6467::2", 53, true},
        {"8.8.8.8", "192.0.0.8", 0, false},
        {"8.8.8.8", "fd53:616e:6467::2", 53, false},
        {"127.0.0.1", "192.0.0.8", 53, false},
        {"::ffff:127.0.0.1", "192.0.0.8", 53, false},
        {"192.0.0.8", "192.0.0.8", 53, false},
        {"0.0.0.0", "192.0.0.8", 53, false},
        {"224.0.0.1", "192.0.0.8", 53, false},
        {"255.255.255.255", "192.0.0.8", 53, false},
        {"::1", "fd53:616e:6467::2", 53, false},
        {"::", "fd53:616e:6467::2", 53, false},
        {"ff02::1", "fd53:616e:6467::2", 53, false},
        {"fd53:616e:6467::2", "fd53:616e:6467::2", 53, false},
    };
    struct netpath np = NETPATH_NONE;
    struct place p = make_place();
    size_t fds;

    EXPECT(netpath_prepare(p.pidfd, PATH_SK_LOOKUP, &np, &e) == 0);
    EXPECT(netpath_open(p.pidfd, &np, &e) == 0);
    fds = count_fds();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        union address local = address_of(cases[i].local, cases[i].port);
        union address peer = address_of(cases[i].peer, 4000);
        int s = netpath_udp(p.pidfd, &local.storage, &peer.storage, &e);
        if ((s >= 0) != cases[i].fine)
            printf("# case %zu: %s: %d\n", i, cases[i].local, s);
        EXPECT((s >= 0) == cases[i].fine);
        EXPECT(s >= 0 || s == -EINVAL);
        close_p(&s);
    }
    EXPECT(count_fds() == fds);
    netpath_done(&np);
    end_place(&p);
}

TEST(a_place_that_is_gone)
{
    struct netpath np = NETPATH_NONE;
    struct place p = make_place();
    size_t fds = count_fds();

    kill(p.pid, SIGKILL);
    EXPECT(readable(p.pidfd));
    waitpid(p.pid, NULL, 0);
    EXPECT(netpath_prepare(p.pidfd, PATH_SK_LOOKUP, &np, &e) == -ESRCH && e.kind == SG_ERR_GONE);
    EXPECT(np.path == 0 && count_fds() == fds);
    close(p.pidfd);
}

TEST(this_host_has_each_of_them)
{
    AUTO(close_p) int before = netpath_open_home(&e);
    size_t fds = count_fds();
    enum egress_path path = 0;
    char why[NETPATH_WHY];
    int after;

    netpath_plan_use();
    EXPECT(netpath_probe(0, &path, why, &e) == 0 && path == PATH_SK_LOOKUP && why[0] == '\0');
    for (enum egress_path wish = PATH_SK_LOOKUP; wish < PATH_MAX_; wish++) {
        EXPECT(netpath_probe(wish, &path, why, &e) == 0 && path == wish);
        EXPECT_STR(netpath_name(wish), wish == PATH_SK_LOOKUP ? "sk_lookup"
                                       : wish == PATH_TPROXY  ? "tproxy"
                                                              : "redirect");
    }
    EXPECT(netpath_probe(PATH_MAX_ + 1, &path, why, &e) == -ENOTSUP);
    EXPECT(count_fds() == fds);
    after = netpath_open_home(&e);
    char a[64] = "", b[64] = "", link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", before);
    EXPECT(readlink(link, a, sizeof(a) - 1) > 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", after);
    EXPECT(readlink(link, b, sizeof(b) - 1) > 0);
    EXPECT_STR(a, b);
    close(after);
}
