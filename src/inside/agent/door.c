#include "inside/agent/door.h"

#include <fcntl.h>

#include "inside/agent/launch.h"
#include "inside/agent/serve.h"
#include "inside/stage/stage.h"
#include "lib/base/clock.h"
#include "wire/sudo.h"

#define BACKLOG  16
#define RETRY_NS (100 * 1000 * 1000ull) /* after a fork that failed */

struct session {
    struct door *door;
    struct child child;
    struct loop_source ready;
    int ready_fd;
    struct loop_trash trash;
};

static void listen_again(struct door *d)
{
    if (d->fd >= 0 && d->listen.fd < 0 && d->sessions < DOOR_SESSIONS_MAX)
        loop_watch(&d->agent->loop, &d->listen, d->fd, EPOLLIN);
}

static void session_accepted(struct session *s)
{
    if (s->ready_fd < 0)
        return;
    loop_unwatch(&s->door->agent->loop, &s->ready);
    close(s->ready_fd);
    s->ready_fd = -1;
    listen_again(s->door);
}

static void on_ready(struct loop_source *src, uint32_t events UNUSED)
{
    session_accepted(CONTAINER_OF(src, struct session, ready));
}

static void on_session_exit(struct child *child, int status UNUSED,
                            const struct rusage *usage UNUSED)
{
    struct session *s = CONTAINER_OF(child, struct session, child);

    s->door->sessions--;
    session_accepted(s);
    listen_again(s->door);
    loop_throw_away(&s->door->agent->loop, &s->trash);
}

static void free_session(struct loop_trash *trash)
{
    free(CONTAINER_OF(trash, struct session, trash));
}

/* What the session does to the mounts it does to those of the agent, which must know of it. So the
 * cover over /usr goes before there is a session. */
static int start_session(struct door *d)
{
    struct agent *a = d->agent;
    int p[2], uncovered = root_uncover(NULL);

    if (uncovered < 0)
        return uncovered;
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    launch_counts();
    pid_t pid = fork();
    if (pid == 0)
        sudo_session(d->fd, p[1], a->config);
    int r = pid < 0 ? -errno : 0;
    close(p[1]);
    if (r < 0) {
        close(p[0]);
        return r;
    }
    struct session *s = xcalloc(1, sizeof(*s));
    s->door = d;
    s->child = (struct child){.pid = pid, .on_exit = on_session_exit};
    s->ready = (struct loop_source){.fd = -1, .fn = on_ready};
    s->ready_fd = p[0];
    s->trash.fn = free_session;
    d->sessions++;
    reaper_add(&a->reaper, &s->child);
    loop_watch(&a->loop, &s->ready, s->ready_fd, EPOLLIN);
    return 0;
}

static void on_knock(struct loop_source *src, uint32_t events UNUSED)
{
    struct door *d = CONTAINER_OF(src, struct door, listen);

    loop_unwatch(&d->agent->loop, src);
    if (d->sessions < DOOR_SESSIONS_MAX && start_session(d) < 0)
        loop_timer_set(&d->agent->loop, &d->retry, clock_ns() + RETRY_NS);
}

static void on_retry(struct loop_timer *timer)
{
    listen_again(CONTAINER_OF(timer, struct door, retry));
}

void door_init(struct door *d, struct agent *a)
{
    *d = (struct door){
        .agent = a, .listen = {.fd = -1, .fn = on_knock}, .fd = -1, .retry.fn = on_retry};
}

void door_open(struct door *d)
{
    AUTO(close_p) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr;
    socklen_t len = sudo_address(&addr);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, BACKLOG) < 0)
        return;
    d->fd = steal_fd(&fd);
    listen_again(d);
}

void door_done(struct door *d)
{
    loop_timer_cancel(&d->agent->loop, &d->retry);
    loop_unwatch(&d->agent->loop, &d->listen);
    close_p(&d->fd);
}
