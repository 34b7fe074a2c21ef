/* Moves bytes between a connection and its socket.
 *
 * Written bytes wait in c->out until the connection is settled, so that a head and a small body
 * leave in one packet. Large pieces go to the socket at once, from where they are; only the bytes
 * that the socket does not take are copied. */
#include <sys/socket.h>

#include "lib/http/impl.h"

#define DIRECT_MIN (16u * 1024)
#define IOV_MAX_   5

size_t io_waiting(const struct http_conn *c)
{
    return c->out.len - c->out_off;
}

static void count_waiting(struct http_conn *c)
{
    size_t now = c->gone ? 0 : io_waiting(c) + c->kept;

    c->server->waiting += now - c->counted;
    c->counted = now;
}

/* Since when nothing has moved; for a body, since it began. */
static uint64_t stands_since(const struct http_conn *c)
{
    return io_waiting(c) > 0 && c->out_since > c->since ? c->out_since : c->since;
}

/* Finds the client that has taken nothing for longest. The one that came last and passed the limit
 * is not to blame. */
static struct http_conn *slowest(const struct http_server *s)
{
    struct http_conn *found = NULL;

    LIST_EACH(struct http_conn, c, &s->conns, in_server)
        if (c->counted > HTTP_WAITING_LITTLE && (!found || stands_since(c) < stands_since(found)))
            found = c;
    return found;
}

static void bound_waiting(struct http_server *s)
{
    struct http_conn *c;

    while (s->waiting > HTTP_WAITING_MAX && (c = slowest(s))) {
        conn_lose(c);
        count_waiting(c);
    }
}

void io_keep(struct http_conn *c, size_t bytes)
{
    if (c->kept == bytes)
        return;
    c->kept = bytes;
    count_waiting(c);
    bound_waiting(c->server);
}

ssize_t io_read(struct http_conn *c, char *buf, size_t cap)
{
    ssize_t n;

    /* Bytes after the last answer are dropped, so they need not be decrypted. */
    if (c->ssl && c->state != CONN_LINGER)
        return tls_read(c->ssl, buf, cap, &c->again);
    do
        n = recv(c->fd, buf, cap, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t send_plain(int fd, struct iovec *iov, size_t n_iov)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n_iov};
    ssize_t n;

    do
        n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Sends as much as the socket takes. */
static size_t send_all(struct http_conn *c, struct iovec *iov, size_t n_iov)
{
    size_t sent = 0;

    while (n_iov > 0 && !c->blocked && !c->gone) {
        ssize_t n =
            c->ssl ? tls_write(c->ssl, iov->iov_base, iov->iov_len) : send_plain(c->fd, iov, n_iov);
        if (n == -EAGAIN)
            c->blocked = true;
        else if (n < 0)
            conn_lose(c);
        for (sent += n > 0 ? (size_t)n : 0; n_iov > 0 && n >= (ssize_t)iov->iov_len; n_iov--, iov++)
            n -= (ssize_t)iov->iov_len;
        if (n_iov > 0 && n > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    if (sent > 0)
        c->out_since = uv_now(c->server->loop);
    return sent;
}

/* Forgets sent bytes. A large queue is moved only when half of it is gone. */
static void out_consume(struct http_conn *c, size_t n)
{
    c->out_off += n;
    if (c->out_off == c->out.len) {
        strbuf_done(&c->out);
        c->out_off = 0;
    } else if (c->out_off > c->out.len / 2) {
        strbuf_consume(&c->out, c->out_off);
        c->out_off = 0;
    }
    count_waiting(c);
}

void io_flush(struct http_conn *c)
{
    struct iovec iov = {.iov_base = c->out.buf + c->out_off, .iov_len = io_waiting(c)};

    if (iov.iov_len > 0 && c->awaits == 0)
        out_consume(c, send_all(c, &iov, 1));
}

/* Sends bytes that wait first, then the parts. Returns how many bytes of the parts were sent. */
static size_t send_direct(struct http_conn *c, const struct iovec *parts, size_t n)
{
    struct iovec iov[IOV_MAX_] = {{.iov_base = c->out.buf + c->out_off, .iov_len = io_waiting(c)}};
    size_t first = iov[0].iov_len;

    memcpy(iov + 1, parts, n * sizeof(*parts));
    size_t sent = first > 0 ? send_all(c, iov, n + 1) : send_all(c, iov + 1, n);
    size_t old = sent < first ? sent : first;
    if (old > 0)
        out_consume(c, old);
    return sent - old;
}

void io_write(struct http_conn *c, const struct iovec *parts, size_t n)
{
    size_t total = 0, sent = 0;

    for (size_t i = 0; i < n; i++)
        total += parts[i].iov_len;
    if (c->gone || total == 0)
        return;
    if (io_waiting(c) == 0)
        c->out_since = uv_now(c->server->loop);
    if (io_waiting(c) + total >= DIRECT_MIN && !c->blocked && c->awaits == 0)
        sent = send_direct(c, parts, n);
    for (size_t i = 0; i < n; i++) {
        size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;

        strbuf_add(&c->out, (const char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
        sent -= skip;
    }
    if (c->out.truncated)
        conn_lose(c);
    count_waiting(c);
    bound_waiting(c->server);
    conn_wake(c);
}

void io_shutdown(struct http_conn *c)
{
    if (c->ssl)
        tls_shutdown(c->ssl);
    shutdown(c->fd, SHUT_WR);
}
