/* A client of egress/host.c that measures: in a sandbox, and outside it to compare.
 *
 *   net connect HOST PORT COUNT [NAME]   COUNT connections one after the other: a byte there and
 * one back, or with NAME an HTTP request that says it. Prints the microseconds of each net download
 * HOST PORT BYTES         one connection; prints the microseconds net upload HOST PORT BYTES net
 * flows HOST PORT COUNT FILE       COUNT connections, each second one used twice a second, until
 *                                        FILE exists; then each must echo. Prints how many did */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meter.h"

#define WARM       3 /* connections that are not counted */
#define PIECE      (256 * 1024)
#define FLOWS_MAX  64
#define ROUND_US   500000
#define PATIENCE_S 20 /* for an answer, on a machine with a lot to do */

static struct sockaddr_storage target;
static socklen_t target_len;
static char piece[PIECE];

static void find(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;

    if (getaddrinfo(host, port, &hints, &found) != 0)
        meter_fail(host);
    memcpy(&target, found->ai_addr, found->ai_addrlen);
    target_len = found->ai_addrlen;
    freeaddrinfo(found);
}

static int dial(void)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&target, target_len) < 0)
        meter_fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static void say(int fd, const void *data, size_t len)
{
    if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
        meter_fail("send");
}

static void connect_many(long count, const char *name)
{
    char text[512] = "x", expected = name ? 'H' : 'x', back;
    size_t len = 1;

    if (name)
        len = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", name);
    for (long i = -WARM; i < count; i++) {
        double t = meter_clock(CLOCK_MONOTONIC);
        int fd = dial();
        say(fd, text, len);
        if (recv(fd, &back, 1, 0) != 1 || back != expected)
            meter_fail("the first byte");
        t = meter_clock(CLOCK_MONOTONIC) - t;
        close(fd);
        if (i >= 0)
            printf("%.1f\n", t);
    }
}

static int ask(char what, uint64_t bytes)
{
    char order[1 + sizeof(bytes)] = {what};
    int fd = dial();

    memcpy(order + 1, &bytes, sizeof(bytes));
    say(fd, order, sizeof(order));
    return fd;
}

static void download(uint64_t bytes)
{
    double t = meter_clock(CLOCK_MONOTONIC);
    int fd = ask('d', bytes);

    while (bytes > 0) {
        ssize_t n = recv(fd, piece, sizeof(piece), 0);
        if (n <= 0)
            meter_fail("download");
        bytes -= (uint64_t)n;
    }
    printf("%.1f\n", meter_clock(CLOCK_MONOTONIC) - t);
}

/* Until the host says that it has all. */
static void upload(uint64_t bytes)
{
    double t = meter_clock(CLOCK_MONOTONIC);
    int fd = ask('u', bytes);
    char all;

    while (bytes > 0) {
        ssize_t n = send(fd, piece, bytes < sizeof(piece) ? bytes : sizeof(piece), MSG_NOSIGNAL);
        if (n < 0)
            meter_fail("upload");
        bytes -= (uint64_t)n;
    }
    if (recv(fd, &all, 1, 0) != 1)
        meter_fail("the end of the upload");
    printf("%.1f\n", meter_clock(CLOCK_MONOTONIC) - t);
}

static bool echoes(int fd)
{
    char there = 'x', back = 0;

    return send(fd, &there, 1, MSG_NOSIGNAL) == 1 && recv(fd, &back, 1, 0) == 1 && back == there;
}

static void flows(long count, const char *finish)
{
    int fds[FLOWS_MAX];
    struct stat st;
    long alive = 0;

    if (count > FLOWS_MAX) {
        errno = E2BIG;
        meter_fail("flows");
    }
    for (long i = 0; i < count; i++)
        fds[i] = dial();
    do {
        for (long i = 0; i < count; i += 2)
            if (!echoes(fds[i]))
                meter_fail("a flow in use");
        usleep(ROUND_US);
    } while (stat(finish, &st) < 0);
    for (long i = 0; i < count; i++)
        alive += echoes(fds[i]);
    printf("%ld\n", alive);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    find(argv[2], argv[3]);
    if (strcmp(argv[1], "connect") == 0)
        connect_many(strtol(argv[4], NULL, 10), argv[5]);
    else if (strcmp(argv[1], "download") == 0)
        download(strtoull(argv[4], NULL, 10));
    else if (strcmp(argv[1], "upload") == 0)
        upload(strtoull(argv[4], NULL, 10));
    else if (strcmp(argv[1], "flows") == 0 && argc == 6)
        flows(strtol(argv[4], NULL, 10), argv[5]);
    else
        return 2;
    return 0;
}
