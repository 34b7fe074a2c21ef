/* OP_NET_CONNECT: a stream is one connection to a server inside. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "inside/agent/serve.h"

#define READS_A_TURN 4 /* then other operations have their turn */

/* The states of a connection:
 *
 *   connecting --> open --server closed, and all of it sent--> END
 *       |           |
 *       +--refused--+--reset--> END with an error */
struct connection {
    struct op op;
    struct loop_source src;
    uint16_t port;
    bool v6, connected;
    bool host_eof; /* the host sends no more */
    bool deaf;     /* the server takes no more: bytes from the host are dropped */
    int fd;
    uint32_t events;       /* events it is watched for; 0: not watched */
    struct strbuf pending; /* bytes for the server */
};

static void connection_failed(struct connection *c, int r)
{
    struct sg_error e = {0};

    if (r == -ECONNREFUSED)
        err_set(&e, SG_ERR_NOT_FOUND, r, "nothing listens on port %u in the sandbox", c->port);
    else
        err_code(&e, r, "connection to port %u in the sandbox", c->port);
    op_fail(&c->op, &e);
}

/* Watches for the events that can be used now. */
static void connection_watch(struct connection *c)
{
    bool out = !c->connected || c->pending.len > 0;
    bool in = c->connected && chan_credit(c->op.stream) > 0;
    uint32_t events = (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0);

    if (events == 0) /* out of the loop altogether: epoll would report a hang-up again and again */
        loop_unwatch(&c->op.agent->loop, &c->src);
    else if (events != c->events)
        loop_watch(&c->op.agent->loop, &c->src, c->fd, events);
    c->events = events;
}

static void drop_pending(struct connection *c)
{
    if (c->pending.len > 0)
        chan_consumed(c->op.agent->chan, c->op.stream, c->pending.len);
    strbuf_done(&c->pending);
}

/* The server takes no more, but bytes it sent before may still be there. Reading them finds the end
 * of the connection. */
static void server_is_deaf(struct connection *c)
{
    c->deaf = true;
    drop_pending(c);
}

static size_t connection_write(struct connection *c, const void *data, size_t len)
{
    ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        chan_consumed(c->op.agent->chan, c->op.stream, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        server_is_deaf(c);
    return n > 0 ? (size_t)n : 0;
}

static void write_pending(struct connection *c)
{
    if (c->pending.len > 0)
        strbuf_consume(&c->pending, connection_write(c, c->pending.buf, c->pending.len));
    if (c->pending.len > 0)
        return;
    strbuf_done(&c->pending);
    if (c->host_eof)
        shutdown(c->fd, SHUT_WR);
}

/* False: the operation has ended. */
static bool read_some(struct connection *c)
{
    for (unsigned i = 0; i < READS_A_TURN; i++) {
        size_t room = chan_credit(c->op.stream);

        if (room == 0)
            return true;
        room = room < sizeof(agent_scratch) ? room : sizeof(agent_scratch);
        ssize_t n = recv(c->fd, agent_scratch, room, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n < 0)
            connection_failed(c, -errno);
        else if (n == 0)
            op_end(&c->op, NULL);
        if (n <= 0)
            return false;
        chan_send(c->op.agent->chan, c->op.stream, 0, agent_scratch, (size_t)n);
        if ((size_t)n < room)
            return true;
    }
    return true;
}

static int begin_connect(struct connection *c)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(c->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(c->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *to = c->v6 ? (const void *)&v6 : (const void *)&v4;

    loop_unwatch(&c->op.agent->loop, &c->src);
    c->events = 0;
    close_p(&c->fd);
    c->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return -errno;
    if (connect(c->fd, to, c->v6 ? sizeof(v6) : sizeof(v4)) < 0 && errno != EINPROGRESS)
        return -errno;
    return 0;
}

static void connection_made(struct connection *c)
{
    c->connected = true;
    chan_event(c->op.agent->chan, c->op.stream, EVENT_STARTED, "", 0);
    write_pending(c);
    connection_watch(c);
}

/* If nobody answers on this address family, the other one is tried. */
static void connect_failed(struct connection *c, int r)
{
    bool again = !c->v6;

    c->v6 = true;
    if (again && begin_connect(c) == 0)
        connection_watch(c);
    else
        connection_failed(c, r);
}

static void on_connection(struct loop_source *src, uint32_t events)
{
    struct connection *c = CONTAINER_OF(src, struct connection, src);
    int error = 0;
    socklen_t len = sizeof(error);

    if (!c->connected) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
            error = errno;
        if (error)
            connect_failed(c, -error);
        else
            connection_made(c);
        return;
    }
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        write_pending(c);
    if ((events & ~(uint32_t)EPOLLOUT) && !read_some(c))
        return;
    connection_watch(c);
}

static void net_data(struct op *op, uint8_t sub UNUSED, const void *data, size_t len)
{
    struct connection *c = CONTAINER_OF(op, struct connection, op);
    size_t n = 0;

    if (c->connected && c->pending.len == 0 && !c->deaf)
        n = connection_write(c, data, len);
    if (c->deaf) {
        chan_consumed(op->agent->chan, op->stream, len - n);
        return;
    }
    strbuf_add(&c->pending, (const char *)data + n, len - n);
    if (c->pending.truncated)
        connection_failed(c, -ENOMEM);
    else
        connection_watch(c);
}

static void net_eof(struct op *op)
{
    struct connection *c = CONTAINER_OF(op, struct connection, op);

    c->host_eof = true;
    if (c->connected)
        write_pending(c);
}

static void net_resume(struct op *op)
{
    connection_watch(CONTAINER_OF(op, struct connection, op));
}

static void net_destroy(struct op *op)
{
    struct connection *c = CONTAINER_OF(op, struct connection, op);

    loop_unwatch(&op->agent->loop, &c->src);
    close_p(&c->fd);
    strbuf_done(&c->pending);
}

static const struct op_ops net_ops = {
    .data = net_data, .eof = net_eof, .resume = net_resume, .destroy = net_destroy};

int net_connect_start(struct request *q)
{
    uint32_t port = wire_get_u32(q->r);
    int res = request_done(q);

    if (res < 0)
        return res;
    if (port == 0 || port > UINT16_MAX)
        return err_set(q->e, SG_ERR_INVALID, -EINVAL, "there is no port %u: use 1 to %d", port,
                       UINT16_MAX);
    struct connection *c = op_new(q, &net_ops, sizeof(*c));
    c->src = (struct loop_source){.fd = -1, .fn = on_connection};
    c->port = (uint16_t)port;
    c->fd = -1;
    strbuf_init(&c->pending, CHAN_WINDOW);
    res = begin_connect(c);
    if (res < 0)
        connect_failed(c, res);
    else
        connection_watch(c);
    return 0;
}
