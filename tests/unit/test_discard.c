/* What the warden lets go of without waiting. */
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "warden/sandboxes/discard.h"
#include "warden/server.h"

static struct server server;

/* Whoever closes the last descriptor of the file does the work: a pipe tells when that was. */
static bool is_closed(int reader, int wait_ms)
{
    struct pollfd p = {.fd = reader};

    return poll(&p, 1, wait_ms) == 1 && (p.revents & POLLHUP);
}

TEST(a_mount_is_closed_by_a_child)
{
    int p[2];

    server.closing = false;
    EXPECT(loop_init(&server.loop, LOOP_BATCH_MAX) == 0 && pipe2(p, O_CLOEXEC) == 0);
    discard_mount(&server, p[1]);
    EXPECT(fcntl(p[1], F_GETFD) < 0);
    EXPECT(is_closed(p[0], 5000));
    /* it is a child of ours, and the loop is told of its end */
    EXPECT(loop_turn(&server.loop) == 0);
    EXPECT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    loop_done(&server.loop);
    close(p[0]);
}

TEST(at_the_end_it_is_closed_at_once)
{
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0);
    server.closing = true;
    discard_mount(&server, p[1]);
    EXPECT(is_closed(p[0], 0));
    EXPECT(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    close(p[0]);
}

TAP_MAIN
