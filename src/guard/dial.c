#include "guard/dial.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "guard/flow.h"
#include "lib/uv/handle.h"
#include "guard/policy.h"
#include "guard/resolver.h"

#define TRY_NS 4000000000ull /* per address, if there is another to try */

struct dial {
    struct guard *guard;
    struct net_addr addrs[RESOLVER_ADDRS];
    size_t n, at;
    int fd;
    uv_poll_t *watch;
    uv_timer_t *timer;
    uint64_t deadline_ns;
    const char *why; /* why the last address was refused, or NULL */
    int r;           /* error of the last address that failed */
    dial_done done;
    void *arg;
};

const char *guard_refuses(const struct guard *g, const struct net_addr *a)
{
    const char *why = guard_never_dials(g, a);

    return why ? why : deny_set_address(g->deny, a);
}

/* Returns a socket that is connecting, or -errno. */
static int open_socket(const struct net_addr *a, int type)
{
    struct sockaddr_storage to;
    socklen_t len = net_addr_to(a, &to);
    AUTO(close_p) int fd = socket(to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -errno;
    if (type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
        return -errno;
    return steal_fd(&fd);
}

void dial_cancel(struct dial *d)
{
    watch_drop(&d->watch);
    alarm_drop(&d->timer);
    close_p(&d->fd);
    free(d);
}

static void finish(struct dial *d, int fd)
{
    struct net_addr address = d->addrs[d->at < d->n ? d->at : d->n - 1];
    dial_done done = d->done;
    void *arg = d->arg;
    const char *why = fd < 0 && d->r == -EACCES ? d->why : NULL;

    dial_cancel(d);
    done(arg, fd, &address, why);
}

static bool try_next(struct dial *d);

static void on_connected(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct dial *d = w->data;
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    watch_drop(&d->watch);
    if (err == 0) {
        finish(d, steal_fd(&d->fd));
        return;
    }
    d->r = -err;
    d->at++;
    if (!try_next(d))
        finish(d, d->r);
}

static void on_late(uv_timer_t *t)
{
    struct dial *d = t->data;

    watch_drop(&d->watch);
    d->r = -ETIMEDOUT;
    d->at++;
    if (clock_ns() >= d->deadline_ns || !try_next(d))
        finish(d, d->r);
}

/* Dials the next address that may be dialled. False: none is left. */
static bool try_next(struct dial *d)
{
    for (; d->at < d->n; d->at++) {
        const char *why = guard_refuses(d->guard, &d->addrs[d->at]);
        uint64_t now = clock_ns();

        close_p(&d->fd);
        d->fd = -1;
        d->why = why; /* valid only for now: the operator's list may change */
        if (why) {
            d->r = -EACCES;
            continue;
        }
        d->fd = open_socket(&d->addrs[d->at], SOCK_STREAM);
        if (d->fd < 0) {
            d->r = d->fd;
            d->fd = -1;
            continue;
        }
        uint64_t until = d->at + 1 < d->n ? now + TRY_NS : d->deadline_ns;
        if (until > d->deadline_ns)
            until = d->deadline_ns;
        alarm_set(d->timer, until > now ? until - now : 0, on_late);
        d->watch = watch_new(d->guard->loop, d->fd, d);
        watch_for(d->watch, UV_WRITABLE, on_connected);
        return true;
    }
    return false;
}

struct dial *dial_new(struct guard *g, const struct net_addr *addrs, size_t n, dial_done done,
                      void *arg)
{
    struct dial *d =
        NEW(struct dial, .guard = g, .n = n < RESOLVER_ADDRS ? n : RESOLVER_ADDRS, .fd = -1,
            .deadline_ns = clock_ns() + DIAL_NS, .r = -ENODATA, .done = done, .arg = arg);

    d->timer = alarm_new(g->loop, d);
    memcpy(d->addrs, addrs, d->n * sizeof(*addrs));
    if (d->n > 0 && try_next(d))
        return d;
    finish(d, d->r);
    return NULL;
}

int dial_udp(struct guard *g, const struct net_addr *address, const char **ret_why)
{
    *ret_why = guard_refuses(g, address);
    return *ret_why ? -EACCES : open_socket(address, SOCK_DGRAM);
}
