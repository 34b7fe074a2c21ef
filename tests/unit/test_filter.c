/* The system-call filter of the server's processes: each case in a child, which stays filtered. */
#include "lib/base/filter.h"

#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

TAP_MAIN

static int filtered(int (*fn)(void))
{
    static const int refused[] = {SYS_bind}, families[] = {AF_INET, AF_INET6};
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct sg_error e;
        int r = filter_load(
            &(struct filter){refused, ARRAY_SIZE(refused), families, ARRAY_SIZE(families)}, "test",
            &e);
        _exit(r < 0 ? 255 : fn());
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int error_of(long r)
{
    return r < 0 ? errno : 0;
}

static int make(int family, int type, int protocol)
{
    return error_of(socket(family, type, protocol));
}

static int tcp4(void)
{
    return make(AF_INET, SOCK_STREAM, 0);
}
static int udp6(void)
{
    return make(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
}
static int local(void)
{
    return make(AF_UNIX, SOCK_STREAM, 0);
}
static int netlink(void)
{
    return make(AF_NETLINK, SOCK_RAW, 0);
}
static int multipath(void)
{
    return make(AF_INET, SOCK_STREAM, 262);
}
static int sctp(void)
{
    return make(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
}

TEST(sockets)
{
    EXPECT(filtered(tcp4) == 0 && filtered(udp6) == 0);
    EXPECT(filtered(local) == EAFNOSUPPORT && filtered(netlink) == EAFNOSUPPORT);
    EXPECT(filtered(multipath) == EPROTONOSUPPORT && filtered(sctp) == EPROTONOSUPPORT);
}

static int set(int type, int level, int name, const void *value, socklen_t len)
{
    int fd = socket(AF_INET, type, 0);

    return fd < 0 ? 254 : error_of(setsockopt(fd, level, name, value, len));
}

static int no_delay(void)
{
    return set(SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY, &(int){1}, 4);
}
static int upper_layer(void)
{
    return set(SOCK_STREAM, IPPROTO_TCP, TCP_ULP, "tls", 3);
}
static int encapsulate(void)
{
    return set(SOCK_DGRAM, IPPROTO_UDP, UDP_ENCAP, &(int){2}, 4);
}
static int attach(void)
{
    return set(SOCK_DGRAM, SOL_SOCKET, SO_ATTACH_FILTER, "", 0);
}

TEST(options)
{
    EXPECT(filtered(no_delay) == 0);
    EXPECT(filtered(upper_layer) == EPERM && filtered(encapsulate) == EPERM);
    EXPECT(filtered(attach) == EPERM);
}

static void *nothing(void *arg)
{
    return arg;
}

static int thread(void)
{
    pthread_t t;

    return pthread_create(&t, NULL, nothing, NULL) == 0 ? pthread_join(t, NULL) : 254;
}

static int process(void)
{
    return error_of(fork());
}
static int program(void)
{
    return error_of(execl("/bin/true", "true", NULL));
}
static int own(void)
{
    return error_of(bind(-1, NULL, 0));
}
static int other(void)
{
    return error_of(connect(-1, NULL, 0));
}

TEST(calls)
{
    EXPECT(filtered(thread) == 0);
    EXPECT(filtered(process) == EPERM && filtered(program) == EPERM);
    EXPECT(filtered(own) == EPERM && filtered(other) == EBADF);
}
