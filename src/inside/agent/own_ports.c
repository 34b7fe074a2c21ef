#include "inside/agent/own_ports.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "inside/agent/serve.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define BACKLOG  16
#define RETRY_NS (100 * 1000 * 1000ull) /* after an accept that failed */
#define MS       1000000ull

struct own_port {
    struct own_ports *all;
    uint16_t port;
    const char *well; /* the answer to GET /health */
    int fd;           /* -1: somebody else has the port */
    struct loop_source src;
};

struct own_ports {
    struct agent *agent;
    struct own_port ports[2];
    struct loop_timer retry;
    struct list callers;
    unsigned n;
};

/* The states of a caller:
 *
 *   reading --first line--> answered --end of stream--> gone
 *      |                       |
 *      `-----------------------'-- OWN_PORTS_CALL_MS, or an error --> gone
 *
 * What comes after the line is dropped: a socket that is closed with bytes unread resets the
 * connection, and the answer would be lost with it. */
struct caller {
    struct own_port *at;
    int fd;
    bool answered;
    struct loop_source src;
    struct loop_timer patience;
    struct loop_trash trash;
    struct list link;
    size_t len;
    char line[OWN_PORTS_LINE_MAX];
};

static void stop_listening(struct own_ports *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(o->ports); i++)
        loop_unwatch(&o->agent->loop, &o->ports[i].src);
}

static void listen_again(struct own_ports *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(o->ports); i++)
        if (o->ports[i].fd >= 0 && o->ports[i].src.fd < 0)
            loop_watch(&o->agent->loop, &o->ports[i].src, o->ports[i].fd, EPOLLIN);
}

/* ---- a caller ------------------------------------------------------------------------------- */

static void free_caller(struct loop_trash *trash)
{
    free(CONTAINER_OF(trash, struct caller, trash));
}

static void leave(struct caller *c)
{
    struct own_ports *o = c->at->all;

    loop_unwatch(&o->agent->loop, &c->src);
    loop_timer_cancel(&o->agent->loop, &c->patience);
    close_p(&c->fd);
    list_remove(&c->link);
    o->n--;
    loop_throw_away(&o->agent->loop, &c->trash);
}

/* The answer fits into the empty buffer of a new socket, so it is sent at once or never. */
static int answer(struct caller *c)
{
    static const char health[] = "GET /health ";
    char body[160], out[400];

    snprintf(body, sizeof(body),
             "{\"code\":404,\"message\":\"inside a sandbox port %u answers GET /health alone: "
             "its API is at the server, outside\"}",
             c->at->port);
    if (c->len >= strlen(health) && memcmp(c->line, health, strlen(health)) == 0)
        snprintf(out, sizeof(out), "HTTP/1.1 %s", c->at->well);
    else
        snprintf(out, sizeof(out),
                 "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                 "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(body), body);
    c->answered = true;
    if (send(c->fd, out, strlen(out), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
        shutdown(c->fd, SHUT_WR) < 0)
        return -errno;
    return 0;
}

/* Negative: the caller has gone, or is to go. */
static int take(struct caller *c)
{
    char *to = c->answered ? agent_scratch : c->line + c->len;
    size_t room = c->answered ? sizeof(agent_scratch) : sizeof(c->line) - c->len;
    ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
    if (c->answered)
        return 0;
    c->len += (size_t)n;
    return memchr(c->line, '\n', c->len) || c->len == sizeof(c->line) ? answer(c) : 0;
}

static void on_bytes(struct loop_source *src, uint32_t events UNUSED)
{
    struct caller *c = CONTAINER_OF(src, struct caller, src);

    if (take(c) == 0)
        return;
    leave(c);
    listen_again(c->at->all);
}

static void on_patience(struct loop_timer *timer)
{
    struct caller *c = CONTAINER_OF(timer, struct caller, patience);

    leave(c);
    listen_again(c->at->all);
}

static void enter(struct own_port *p, int fd)
{
    struct own_ports *o = p->all;
    struct caller *c = xcalloc(1, sizeof(*c));

    c->at = p;
    c->fd = fd;
    c->src = (struct loop_source){.fd = -1, .fn = on_bytes};
    c->patience.fn = on_patience;
    c->trash.fn = free_caller;
    list_push(&o->callers, &c->link);
    if (++o->n == OWN_PORTS_CALLERS)
        stop_listening(o);
    loop_watch(&o->agent->loop, &c->src, fd, EPOLLIN);
    loop_timer_set(&o->agent->loop, &c->patience, clock_ns() + OWN_PORTS_CALL_MS * MS);
}

/* ---- the ports ------------------------------------------------------------------------------- */

static void on_knock(struct loop_source *src, uint32_t events UNUSED)
{
    struct own_port *p = CONTAINER_OF(src, struct own_port, src);
    int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        enter(p, fd);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        stop_listening(p->all);
        loop_timer_set(&p->all->agent->loop, &p->all->retry, clock_ns() + RETRY_NS);
    }
}

static void on_retry(struct loop_timer *timer)
{
    listen_again(CONTAINER_OF(timer, struct own_ports, retry));
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AUTO(close_p) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, BACKLOG) < 0)
        return -1;
    return steal_fd(&fd);
}

void own_ports_open(struct agent *a)
{
    static const struct own_port ports[] = {
        {.port = 49983, .well = "204 No Content\r\nConnection: close\r\n\r\n"},
        {.port = 49999,
         .well = "200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                 "Content-Length: 4\r\n\r\n\"OK\""},
    };

    /* Without a line the host is the library, which serves no ports. */
    if (a->own_ports || !a->config->line)
        return;
    a->own_ports = NEW(struct own_ports, .agent = a, .retry.fn = on_retry);
    for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
        struct own_port *p = &a->own_ports->ports[i];

        *p = ports[i];
        p->all = a->own_ports;
        p->src = (struct loop_source){.fd = -1, .fn = on_knock};
        p->fd = listen_on(p->port);
    }
    listen_again(a->own_ports);
}

void own_ports_done(struct agent *a)
{
    struct own_ports *o = a->own_ports;

    if (!o)
        return;
    while (!list_empty(&o->callers))
        leave(LIST_FIRST(struct caller, &o->callers, link));
    stop_listening(o);
    loop_timer_cancel(&a->loop, &o->retry);
    for (size_t i = 0; i < ARRAY_SIZE(o->ports); i++)
        close_p(&o->ports[i].fd);
    free(steal_ptr(&a->own_ports));
}
