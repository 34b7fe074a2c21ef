#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define READ_SIZE   (256u * 1024)

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "acp load: %s: %s\n", what, strerror(errno));
    exit(1);
}

uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nonblocking(int fd)
{
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        fail("fcntl");
}

void peer_pipe(struct peer *p, const char *name, char **argv)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        fail("pipe");
    *p = (struct peer){.name = name, .in = in[0], .out = out[1], .pid = fork()};
    if (p->pid < 0)
        fail("fork");
    if (p->pid == 0) {
        dup2(out[0], 0);
        dup2(in[1], 1);
        execvp(argv[0], argv);
        fail(argv[0]);
    }
    close(in[1]);
    close(out[0]);
    nonblocking(p->in);
    nonblocking(p->out);
}

static void handshake(int fd, const char *key, const char *id)
{
    char text[2048];
    int n = snprintf(text, sizeof(text),
                     "GET /v1/agents/%s/acp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: %s\r\n"
                     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                     id, key);

    if (write(fd, text, (size_t)n) != n)
        fail("write");
    for (size_t have = 0; have < sizeof(text) - 1; have++) {
        if (read(fd, text + have, 1) != 1)
            fail("the server closed the connection");
        text[have + 1] = 0;
        if (have >= 3 && strcmp(text + have - 3, "\r\n\r\n") == 0) {
            if (strncmp(text, "HTTP/1.1 101 ", 13) == 0)
                return;
            break;
        }
    }
    fprintf(stderr, "acp load: no WebSocket: %.60s\n", text);
    exit(1);
}

void peer_ws(struct peer *p, const char *name, int port, const char *key, const char *id)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    handshake(fd, key, id);
    nonblocking(fd);
    *p = (struct peer){.name = name, .ws = true, .in = fd, .out = fd};
}

void peer_end(struct peer *p)
{
    close(p->in);
    if (!p->ws) {
        close(p->out);
        kill(p->pid, SIGTERM);
        waitpid(p->pid, NULL, 0);
    }
    free(p->buffer);
    free(p->queue);
}

/* ---- messages -------------------------------------------------------------------------------- */

static char *room_for(struct peer *p, size_t len)
{
    if (p->sent == p->queued)
        p->sent = p->queued = 0;
    if (p->queued + len > p->room) {
        p->room = (p->queued + len) * 2;
        p->queue = realloc(p->queue, p->room);
        if (!p->queue)
            fail("memory");
    }
    return p->queue + p->queued;
}

/* Masked with zeros, as the standard allows: the server has the same work. */
static void add_frame(struct peer *p, unsigned kind, const char *data, size_t len)
{
    char *to = room_for(p, len + 8);
    size_t head = 0;

    to[head++] = (char)kind;
    if (len < 126) {
        to[head++] = (char)(0x80 | len);
    } else {
        to[head++] = (char)(0x80 | 126);
        to[head++] = (char)(len >> 8);
        to[head++] = (char)len;
    }
    memset(to + head, 0, 4);
    memcpy(to + head + 4, data, len);
    p->queued += head + 4 + len;
}

void peer_queue(struct peer *p, const char *text, size_t len)
{
    if (p->ws) {
        add_frame(p, 0x81, text, len);
        return;
    }
    char *to = room_for(p, len + 1);
    memcpy(to, text, len);
    to[len] = '\n';
    p->queued += len + 1;
}

static bool send_queued(struct peer *p)
{
    if (p->sent == p->queued)
        return false;
    ssize_t n = write(p->out, p->queue + p->sent, p->queued - p->sent);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        fail(p->name);
    p->sent += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool receive(struct peer *p)
{
    if (p->from) {
        memmove(p->buffer, p->buffer + p->from, p->have - p->from);
        p->have -= p->from;
        p->from = 0;
    }
    if (p->have + READ_SIZE > p->size) {
        p->size = p->have + 2 * READ_SIZE;
        p->buffer = realloc(p->buffer, p->size);
        if (!p->buffer)
            fail("memory");
    }
    ssize_t n = read(p->in, p->buffer + p->have, READ_SIZE);
    if (n == 0) {
        fprintf(stderr, "acp load: %s has ended\n", p->name);
        exit(1);
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        fail(p->name);
    p->have += n > 0 ? (size_t)n : 0;
    return n > 0;
}

void peer_turn(struct peer *p)
{
    bool sent = send_queued(p);
    if (receive(p) || sent)
        return;
    struct pollfd fds[] = {{.fd = p->in, .events = POLLIN},
                           {.fd = p->sent < p->queued ? p->out : -1, .events = POLLOUT}};
    if (poll(fds, 2, PATIENCE_MS) == 0) {
        fprintf(stderr, "acp load: %s says nothing\n", p->name);
        exit(1);
    }
    send_queued(p);
    receive(p);
}

static const char *next_frame(struct peer *p, size_t *ret_len)
{
    const unsigned char *b = (unsigned char *)p->buffer + p->from;
    size_t have = p->have - p->from, head = 2, len;

    if (have < 2)
        return NULL;
    len = b[1] & 127;
    if (len >= 126) {
        size_t bytes = len == 126 ? 2 : 8;
        if (have < 2 + bytes)
            return NULL;
        len = 0;
        for (size_t i = 0; i < bytes; i++)
            len = len << 8 | b[2 + i];
        head += bytes;
    }
    if (have < head + len)
        return NULL;
    p->from += head + len;
    if (b[0] == 0x89) {
        add_frame(p, 0x8a, (const char *)b + head, len);
        send_queued(p);
        return next_frame(p, ret_len);
    }
    if (b[0] != 0x81) {
        fprintf(stderr, "acp load: %s: a frame of kind %02x\n", p->name, b[0]);
        exit(1);
    }
    *ret_len = len;
    return (const char *)b + head;
}

const char *peer_next(struct peer *p, size_t *ret_len)
{
    if (p->ws)
        return next_frame(p, ret_len);
    const char *line = p->buffer + p->from;
    const char *end = p->have > p->from ? memchr(line, '\n', p->have - p->from) : NULL;
    if (!end)
        return NULL;
    *ret_len = (size_t)(end - line);
    p->from += *ret_len + 1;
    return line;
}

const char *peer_wait(struct peer *p, size_t *ret_len)
{
    for (;;) {
        const char *found = peer_next(p, ret_len);
        if (found)
            return found;
        peer_turn(p);
    }
}
