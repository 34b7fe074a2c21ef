/* Two ends of a TCP connection over loopback, both in this process and none of them blocking: what
 * one does is seen by the other after the loop had its turns. */
#pragma once

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "tap.h"

#define ENDS_NS 10000000000ull

static void tcp_pair(int fds[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert(bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(listener, 1) == 0 &&
           getsockname(listener, (struct sockaddr *)&a, &len) == 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(connect(fds[0], (struct sockaddr *)&a, sizeof(a)) == 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert(fds[1] >= 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    close(listener);
}

/* Turns of the loop until `done` says so; false: it never did. */
static bool turns_until(uv_loop_t *loop, bool (*done)(void *arg), void *arg)
{
    uint64_t until = clock_ns() + ENDS_NS;

    while (!done(arg)) {
        if (clock_ns() > until)
            return false;
        uv_run(loop, UV_RUN_NOWAIT);
    }
    return true;
}

/* Whether the loop would sleep for at least that long, timers aside: nothing wakes it over and
 * over.
 */
static bool is_quiet(uv_loop_t *loop, int ms)
{
    struct pollfd p = {.fd = uv_backend_fd(loop), .events = POLLIN};

    for (int i = 0; i < 20; i++)
        uv_run(loop, UV_RUN_NOWAIT);
    return poll(&p, 1, ms) == 0;
}

/* Reads what has come: up to cap bytes in all. 1: more may come; 0: the end; < 0: broken. */
__attribute__((unused)) static int take_bytes(int fd, char *buf, size_t cap, size_t *len)
{
    ssize_t n = 1;

    while (n > 0 && *len < cap) {
        n = recv(fd, buf + *len, cap - *len, 0);
        if (n > 0)
            *len += (size_t)n;
    }
    return n > 0 || (n < 0 && errno == EAGAIN) ? 1 : n < 0 ? -errno : 0;
}
