/* A zygote that cannot start says so to the broker, and to nobody else. Needs root. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "inside/broker/broker.h"
#include "lib/base/fd.h"
#include "tap.h"

TAP_MAIN

/* The sandbox whose files it was to see has ended: there is no namespace to enter. */
TEST(an_early_error_does_not_go_to_the_warden)
{
    struct twin_request q = {.op = TWIN_ZYGOTE};
    struct zygote z = ZYGOTE_NONE;
    struct sg_error e = {0};
    struct chute c;
    int fds[TWIN_ZYGOTE_FDS + 1], pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC), r = 0;
    char byte;

    null = fcntl(null, F_DUPFD_CLOEXEC, 100); /* the low numbers have a meaning */
    EXPECT(null >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    int warden = fcntl(pair[0], F_DUPFD_CLOEXEC, 100);
    EXPECT(dup2(pair[1], BROKER_CONTROL_FD) == BROKER_CONTROL_FD);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = null;
    EXPECT(chute_open(&c, &e) == 0);
    EXPECT(zygote_begin(&z, &c, &q, fds, &e) == 0);
    struct pollfd p = {.fd = z.control, .events = POLLIN};
    EXPECT(poll(&p, 1, 10000) == 1);
    r = zygote_hold(&z, NULL, &e);
    EXPECT(r < 0);
    EXPECT_STR(e.message, "the zygote did not start: Invalid argument");
    EXPECT(waitpid(z.source.pid, NULL, 0) == z.source.pid);
    EXPECT(recv(warden, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}
