/* A server and its clients in one process: a client sends raw bytes and looks at raw bytes, and
 * while it waits the server's loop turns. */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/http/http.h"
#include "tap.h"

#define WAIT_NS 30000000000ull

struct host {
    uv_loop_t loop;
    struct http_server *server;
    struct sockaddr_in addr;
};

struct client {
    struct host *host;
    int fd;
    struct strbuf got;
    bool ended; /* the server has closed */
};

/* Gives up loudly: what follows would only fail in confusing ways. */
static inline void must(bool ok, const char *what)
{
    if (ok)
        return;
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static inline int listen_loopback(struct sockaddr_in *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*addr);

    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    must(fd >= 0 && bind(fd, (const struct sockaddr *)addr, len) == 0 && listen(fd, 128) == 0 &&
             getsockname(fd, (struct sockaddr *)addr, &len) == 0,
         "listen");
    return fd;
}

static inline void host_open(struct host *h, const struct http_limits *limits,
                             void (*on_request)(struct http_req *req), void *arg)
{
    struct sg_error e;

    must(uv_loop_init(&h->loop) == 0, "uv_loop_init");
    h->server = http_server_new(&h->loop, limits, on_request, arg);
    must(http_server_listen(h->server, listen_loopback(&h->addr), HTTP_PLAIN, &e) == 0,
         "http listen");
}

/* One turn of the loop, which may sleep for up to a few milliseconds. */
static inline void host_turn(struct host *h)
{
    struct pollfd p = {.fd = uv_backend_fd(&h->loop), .events = POLLIN};
    int timeout = uv_backend_timeout(&h->loop);

    poll(&p, 1, timeout >= 0 && timeout < 5 ? timeout : 5);
    uv_run(&h->loop, UV_RUN_NOWAIT);
}

static inline void host_close(struct host *h)
{
    http_server_free(h->server);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&h->loop) == 0);
}

static inline void client_open(struct client *c, struct host *h)
{
    c->host = h;
    c->ended = false;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strbuf_init(&c->got, 64u << 20);
    must(c->fd >= 0 && connect(c->fd, (const struct sockaddr *)&h->addr, sizeof(h->addr)) == 0 &&
             fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0,
         "connect");
}

static inline void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(steal_fd(&c->fd));
    strbuf_done(&c->got);
}

/* Takes what has come, up to max bytes. */
static inline void client_read(struct client *c, size_t max)
{
    static char buf[65536];

    while (max > 0 && !c->ended) {
        ssize_t n = recv(c->fd, buf, max < sizeof(buf) ? max : sizeof(buf), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            c->ended = true;
            return;
        }
        strbuf_add(&c->got, buf, (size_t)n);
        max -= (size_t)n;
    }
}

/* Sends all of it, while the server reads. It may stop reading: then the rest is not sent. */
static inline void client_send_bytes(struct client *c, const char *p, size_t n)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (n > 0 && clock_ns() < deadline) {
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return;
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        if (n > 0)
            host_turn(c->host);
    }
}

static inline void client_send(struct client *c, const char *text)
{
    client_send_bytes(c, text, strlen(text));
}

/* Until the text has come (after what was there before), or the server closes. */
static inline bool client_wait(struct client *c, const char *text)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    for (;;) {
        client_read(c, SIZE_MAX);
        if (memmem(c->got.buf, c->got.len, text, strlen(text)))
            return true;
        if (c->ended || clock_ns() > deadline)
            return false;
        host_turn(c->host);
    }
}

static inline bool client_wait_end(struct client *c)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (!c->ended && clock_ns() < deadline) {
        client_read(c, SIZE_MAX);
        if (!c->ended)
            host_turn(c->host);
    }
    return c->ended;
}

/* Until *flag is set by a callback of the server. */
#define WAIT_UNTIL(h, condition)                       \
    do {                                               \
        uint64_t deadline_ = clock_ns() + WAIT_NS;     \
        while (!(condition) && clock_ns() < deadline_) \
            host_turn(h);                              \
        EXPECT(condition);                             \
    } while (0)

/* How often the text is in what has come. */
static inline unsigned client_count(const struct client *c, const char *text)
{
    unsigned n = 0;
    const char *p = c->got.buf, *end = p + c->got.len;

    while ((p = memmem(p, (size_t)(end - p), text, strlen(text)))) {
        n++;
        p += strlen(text);
    }
    return n;
}

static inline int client_status(const struct client *c)
{
    return c->got.len > 12 && memcmp(c->got.buf, "HTTP/1.1 ", 9) == 0
               ? (int)strtol(c->got.buf + 9, NULL, 10)
               : 0;
}
