/* The host on the internet that sandboxes talk to: as little as can be, so that it is not what is
 * measured.
 *
 *   host ADDRESS PORT CERTIFICATE KEY HEADER-VALUE
 *
 * PORT      echoes; answers a request by HTTP
 * PORT + 1  a byte `d` or `u` and a number of bytes: sends them, or reads them and sends one back
 * PORT + 2  HTTPS, kept: answers "yes" if the request has `authorization` with that value, or "no"
 *
 * Prints a line when it listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE   (256 * 1024)
#define BACKLOG 4096

static const char *header_value;
static SSL_CTX *tls;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "host: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int listen_at(const char *address, int port, int flags)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
        fail("listen");
    return fd;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void *transfer(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char order[1 + sizeof(uint64_t)], *piece = calloc(1, PIECE);
    uint64_t left = 0;
    ssize_t n = recv(fd, order, sizeof(order), MSG_WAITALL);

    if (n == sizeof(order))
        memcpy(&left, order + 1, sizeof(left));
    while (left > 0 && n > 0) {
        n = order[0] == 'd' ? send(fd, piece, left < PIECE ? left : PIECE, MSG_NOSIGNAL)
                            : recv(fd, piece, PIECE, 0);
        left -= n > 0 ? (uint64_t)n : 0;
    }
    if (order[0] == 'u' && left == 0)
        send(fd, "x", 1, MSG_NOSIGNAL);
    close(fd);
    free(piece);
    return NULL;
}

/* ---- HTTPS ----------------------------------------------------------------------------------- */

static void *answer_requests(void *arg)
{
    int fd = (int)(intptr_t)arg, one = 1;
    SSL *s = SSL_new(tls);
    char request[16384], answer[256];
    size_t have = 0;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    SSL_set_fd(s, fd);
    for (int n = SSL_accept(s); n > 0;) {
        n = SSL_read(s, request + have, (int)(sizeof(request) - 1 - have));
        have += n > 0 ? (size_t)n : 0;
        request[have] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        const char *body = strstr(request, header_value) ? "yes\n\n" : "no\n\n";
        int len =
            snprintf(answer, sizeof(answer),
                     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
        n = SSL_write(s, answer, len);
        have = 0;
    }
    SSL_free(s);
    close(fd);
    return NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

struct service {
    int listener;
    void *(*serve)(void *fd);
};

/* A thread for each connection: there are few. */
static void *accept_all(void *arg)
{
    struct service *s = arg;
    pthread_t thread;

    for (;;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            fail("accept");
        if (pthread_create(&thread, NULL, s->serve, (void *)(intptr_t)fd) != 0)
            fail("thread");
        pthread_detach(thread);
    }
    return NULL;
}

static void echo_one(int fd)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char buf[4096];
    ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

    if (n > 4 && memcmp(buf, "GET ", 4) == 0)
        send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    else if (n > 0)
        send(fd, buf, (size_t)n, MSG_NOSIGNAL);
    else if (n == 0 || errno != EAGAIN)
        close(fd);
}

static void echo_all(int listener)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct epoll_event events[256], e = {.events = EPOLLIN, .data.fd = listener};

    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd != listener) {
                echo_one(events[i].data.fd);
                continue;
            }
            e.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (e.data.fd < 0)
                continue;
            setsockopt(e.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            epoll_ctl(epoll, EPOLL_CTL_ADD, e.data.fd, &e);
        }
    }
}

int main(int argc, char **argv)
{
    static struct service services[] = {{.serve = transfer}, {.serve = answer_requests}};
    pthread_t thread;

    if (argc != 6)
        return 2;
    int port = (int)strtol(argv[2], NULL, 10), echo = listen_at(argv[1], port, SOCK_NONBLOCK);
    header_value = argv[5];
    tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(tls, argv[3]) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, argv[4], SSL_FILETYPE_PEM) != 1)
        fail(argv[3]);
    for (int i = 0; i < 2; i++) {
        services[i].listener = listen_at(argv[1], port + 1 + i, 0);
        if (pthread_create(&thread, NULL, accept_all, &services[i]) != 0)
            fail("thread");
    }
    puts("ready");
    fflush(stdout);
    echo_all(echo);
    return 0;
}
