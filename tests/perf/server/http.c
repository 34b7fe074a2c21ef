#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

int dial(const struct server *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        fail("connect", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

void send_all(int fd, const void *data, size_t len)
{
    for (const char *p = data; len > 0;) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0)
            fail("send", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

/* A reader that never takes more from the socket than one answer can have. */
struct reader {
    int fd;
    size_t at, len;
    char buf[262144];
};

static _Thread_local struct reader in;

static void fill(void)
{
    ssize_t n = recv(in.fd, in.buf, sizeof(in.buf), 0);

    if (n <= 0)
        fail("receive", n == 0 ? "the server closed the connection" : strerror(errno));
    in.at = 0;
    in.len = (size_t)n;
}

static void read_line(char *ret, size_t cap)
{
    size_t n = 0;

    for (;;) {
        if (in.at == in.len)
            fill();
        char c = in.buf[in.at++];
        if (c == '\n')
            break;
        if (c != '\r' && n + 1 < cap)
            ret[n++] = c;
    }
    ret[n] = '\0';
}

static void read_bytes(struct answer *a, uint64_t len)
{
    while (len > 0) {
        if (in.at == in.len)
            fill();
        size_t piece = in.len - in.at < len ? in.len - in.at : (size_t)len;
        size_t room = BODY_MAX - 1 - a->len, keep = piece < room ? piece : room;
        memcpy(a->body + a->len, in.buf + in.at, keep);
        a->len += keep;
        in.at += piece;
        len -= piece;
    }
}

static uint64_t read_chunks(struct answer *a)
{
    uint64_t total = 0, size;
    char line[64];

    do {
        read_line(line, sizeof(line));
        size = strtoull(line, NULL, 16);
        read_bytes(a, size);
        total += size;
        read_line(line, sizeof(line));
    } while (size > 0);
    return total;
}

uint64_t read_answer(int fd, struct answer *ret)
{
    uint64_t length = 0;
    bool chunked = false;
    char line[8192];

    in.fd = fd;
    in.at = in.len = 0;
    ret->len = 0;
    read_line(line, sizeof(line));
    ret->status = (int)strtol(line + strcspn(line, " "), NULL, 10);
    for (read_line(line, sizeof(line)); line[0]; read_line(line, sizeof(line))) {
        for (char *p = line; *p && *p != ':'; p++)
            *p = (char)tolower((unsigned char)*p);
        if (strncmp(line, "content-length:", 15) == 0)
            length = strtoull(line + 15, NULL, 10);
        chunked = chunked || strncmp(line, "transfer-encoding:", 18) == 0;
    }
    if (chunked)
        length = read_chunks(ret);
    else
        read_bytes(ret, length);
    ret->body[ret->len] = '\0';
    return length;
}

void request(int fd, const char *method, const char *path, const char *headers, const void *body,
             size_t len)
{
    char head[4096];
    int n = snprintf(head, sizeof(head),
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %zu\r\n\r\n", method,
                     path, headers, len);

    if (n + len <= sizeof(head)) {
        memcpy(head + n, body, len);
        send_all(fd, head, (size_t)n + len);
    } else {
        send_all(fd, head, (size_t)n);
        send_all(fd, body, len);
    }
}

void call(int fd, const struct server *s, const char *method, const char *path, const char *body,
          int status, struct answer *ret)
{
    char headers[256];

    snprintf(headers, sizeof(headers), "X-API-Key: %s\r\nContent-Type: application/json\r\n",
             s->key);
    request(fd, method, path, headers, body, strlen(body));
    read_answer(fd, ret);
    if (ret->status != status) {
        fprintf(stderr, "load: %s %s: status %d: %s\n", method, path, ret->status, ret->body);
        exit(1);
    }
}
