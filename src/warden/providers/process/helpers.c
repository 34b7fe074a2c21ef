/* The helper processes of a domain (warden/host/domain.h), for those who watch them. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "inside/broker/twin.h"
#include "warden/providers/process/process_impl.h"

#define END_MS 5000

static int *pidfd_of(struct provider *p, enum process h)
{
    return h == PROCESS_HOLDER    ? &p->domain.holder_pidfd
           : h == PROCESS_SPAWNER ? &p->domain.spawner_pidfd
                                  : &p->domain.broker_pidfd;
}

static int pid(struct provider *p, enum process h)
{
    return child_pid(*pidfd_of(p, h));
}

/* Never waits: the socket of a helper that does not read fills up, but the helper is killed long
 * before. */
static void beat(struct provider *p, enum process h)
{
    static const struct spawn_request to_spawner = {.magic = STAGE_BEAT};
    static const struct twin_request to_broker = {.magic = TWIN_MAGIC, .op = TWIN_BEAT};

    if (h == PROCESS_HOLDER)
        send(p->domain.holder_sock, "b", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (h == PROCESS_SPAWNER)
        send(p->domain.spawner_sock, &to_spawner, sizeof(to_spawner), MSG_NOSIGNAL | MSG_DONTWAIT);
    else
        send(p->domain.broker_sock, &to_broker, sizeof(to_broker), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A message that waits in the spawner's socket is a sign of life too: reading it may be left to
 * idle work. */
static bool heard(struct provider *p, enum process h)
{
    bool any = false;
    char c;

    while (h == PROCESS_HOLDER && recv(p->domain.holder_sock, &c, 1, MSG_DONTWAIT) > 0)
        any = true;
    return any || (h == PROCESS_SPAWNER && domain_spawn_ready(&p->domain));
}

static void kill_helper(struct provider *p, enum process h)
{
    child_kill(*pidfd_of(p, h));
}

static void go_on(struct provider *p, enum process h)
{
    syscall(SYS_pidfd_send_signal, *pidfd_of(p, h), SIGCONT, NULL, 0);
}

/* When a holder ends, its descriptors close first, then everything in W ends, then the holder
 * itself. So its socket tells first. */
static bool holder_gone(const struct provider *p)
{
    /* POLLRDHUP, because unread answers to heartbeats may still be in the socket. */
    struct pollfd end = {.fd = p->domain.holder_sock, .events = POLLRDHUP};

    return poll(&end, 1, 0) == 1;
}

static void ended(struct provider *p, enum process h, struct child_exit *ret)
{
    *ret = (struct child_exit){0};
    child_end(pidfd_of(p, h), END_MS, ret);
}

const struct provider_helpers process_helpers = {
    .pid = pid,
    .beat = beat,
    .heard = heard,
    .kill = kill_helper,
    .go_on = go_on,
    .holder_gone = holder_gone,
    .ended = ended,
};
