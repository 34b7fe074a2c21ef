/* Watching a descriptor: what libuv leaves to whoever uses it. */
#include "lib/uv/handle.h"

#include <arpa/inet.h>

#include "guard_ends.h"

TAP_MAIN

struct bed {
    uv_loop_t loop;
    uv_poll_t *watch;
    int fd;
    unsigned refused, got;
};

static void on_event(uv_poll_t *w, int status, int events)
{
    struct bed *t = w->data;
    char buf[64];
    ssize_t n;

    (void)status, (void)events;
    while ((n = recv(t->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0 || errno == ECONNREFUSED) {
        if (n < 0)
            t->refused++;
        else
            t->got++;
        errno = 0;
    }
}

static bool was_refused(void *arg)
{
    return ((struct bed *)arg)->refused > 0;
}

static bool has_got(void *arg)
{
    return ((struct bed *)arg)->got > 0;
}

TEST(an_error_is_not_the_end)
{
    struct bed t = {.fd = socket(AF_INET, SOCK_DGRAM, 0)};
    int other = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, own;
    socklen_t len = sizeof(a);

    assert(bind(other, (struct sockaddr *)&a, sizeof(a)) == 0 &&
           getsockname(other, (struct sockaddr *)&a, &len) == 0 &&
           connect(t.fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
           getsockname(t.fd, (struct sockaddr *)&own, &len) == 0);
    close(other);
    uv_loop_init(&t.loop);
    t.watch = watch_new(&t.loop, t.fd, &t);
    watch_for(t.watch, UV_READABLE, on_event);
    EXPECT(send(t.fd, "x", 1, 0) == 1); /* to a port that nobody has any more */
    EXPECT(turns_until(&t.loop, was_refused, &t));
    other = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT(bind(other, (struct sockaddr *)&a, sizeof(a)) == 0);
    EXPECT(sendto(other, "y", 1, 0, (struct sockaddr *)&own, sizeof(own)) == 1);
    EXPECT(turns_until(&t.loop, has_got, &t));
    EXPECT(is_quiet(&t.loop, 20));
    watch_drop(&t.watch);
    close(other);
    close(t.fd);
    uv_run(&t.loop, UV_RUN_NOWAIT);
    EXPECT(uv_loop_close(&t.loop) == 0);
}

TEST(nothing_is_watched_for_after_none)
{
    struct bed t = {0};
    int fds[2];

    tcp_pair(fds);
    t.fd = fds[1];
    uv_loop_init(&t.loop);
    t.watch = watch_new(&t.loop, t.fd, &t);
    watch_for(t.watch, UV_READABLE, on_event);
    watch_for(t.watch, UV_READABLE, on_event);
    EXPECT(send(fds[0], "x", 1, 0) == 1 && turns_until(&t.loop, has_got, &t));
    watch_for(t.watch, 0, on_event);
    EXPECT(send(fds[0], "x", 1, 0) == 1);
    EXPECT(is_quiet(&t.loop, 20) && t.got == 1);
    watch_for(t.watch, UV_READABLE, on_event);
    t.got = 0;
    EXPECT(turns_until(&t.loop, has_got, &t));
    watch_drop(&t.watch);
    close(fds[0]);
    close(fds[1]);
    uv_run(&t.loop, UV_RUN_NOWAIT);
    EXPECT(uv_loop_close(&t.loop) == 0);
}
