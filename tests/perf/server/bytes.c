/* Bytes moved: files up and down, many open streams, many small requests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

#define PIECE (1024 * 1024)

int verb_transfer(const struct server *s, int argc, char **argv)
{
    long mib = argc > 0 ? count_of(argv[0]) : 1024;
    char *piece = malloc(PIECE), head[1024];
    static struct answer a;
    struct sandbox b;
    int fd = dial(s);

    memset(piece, 'x', PIECE);
    sandbox_create(fd, s, &b);
    checkpoint("before");
    double t = now_us();
    int n = snprintf(head, sizeof(head),
                     "POST /files?path=/home/user/big HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n"
                     "Content-Type: application/octet-stream\r\nContent-Length: %ld\r\n\r\n",
                     b.id, b.token, mib * PIECE);
    send_all(fd, head, (size_t)n);
    for (long i = 0; i < mib; i++)
        send_all(fd, piece, PIECE);
    read_answer(fd, &a);
    if (a.status != 200)
        fail("upload", a.body);
    printf("{\"case\":\"upload\",\"mib\":%ld,\"us\":%.0f}\n", mib, now_us() - t);
    checkpoint("uploaded");
    t = now_us();
    n = snprintf(head, sizeof(head), "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n", b.id, b.token);
    request(fd, "GET", "/files?path=/home/user/big", head, "", 0);
    uint64_t got = read_answer(fd, &a);
    if (a.status != 200 || got != (uint64_t)mib * PIECE)
        fail("download", "not all of it came back");
    printf("{\"case\":\"download\",\"mib\":%ld,\"us\":%.0f}\n", mib, now_us() - t);
    checkpoint("downloaded");
    sandbox_kill(fd, s, &b);
    free(piece);
    return 0;
}

static long count_lines(const char *data, size_t len)
{
    long n = 0;

    for (const char *p = data; (p = memmem(p, len - (size_t)(p - data), "\"stdout\"", 8)); p += 8)
        n++;
    return n;
}

/* n commands over some sandboxes, each writing a line a second. */
int verb_streams(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 1000, seconds = argc > 1 ? count_of(argv[1]) : 20;
    long sandboxes_n = n / 50 + 1, *lines = calloc((size_t)n, sizeof(*lines)), total = 0, lost = 0;
    struct sandbox *sandboxes = calloc((size_t)sandboxes_n, sizeof(*sandboxes));
    int control = dial(s), epoll = epoll_create1(0);
    char buf[65536];

    for (long i = 0; i < sandboxes_n; i++)
        sandbox_create(control, s, &sandboxes[i]);
    for (long i = 0; i < n; i++) {
        int fd = dial(s);
        struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)i << 32 | (unsigned)fd};
        command_start(fd, &sandboxes[i % sandboxes_n], "while echo line; do sleep 1; done");
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
    }
    double begin = now_us(), until = begin + (double)seconds * 1e6;
    while (now_us() < until) {
        struct epoll_event evs[256];
        int got = epoll_wait(epoll, evs, 256, 100);
        for (int i = 0; i < got; i++) {
            ssize_t len = recv((int)(uint32_t)evs[i].data.u64, buf, sizeof(buf), 0);
            if (len <= 0) {
                epoll_ctl(epoll, EPOLL_CTL_DEL, (int)(uint32_t)evs[i].data.u64, NULL);
                lost++;
                continue;
            }
            lines[evs[i].data.u64 >> 32] += count_lines(buf, (size_t)len);
        }
    }
    checkpoint("streaming");
    long fewest = lines[0];
    for (long i = 0; i < n; i++) {
        total += lines[i];
        fewest = lines[i] < fewest ? lines[i] : fewest;
    }
    printf("{\"case\":\"streams\",\"n\":%ld,\"seconds\":%ld,\"lines\":%ld,\"fewest\":%ld,"
           "\"lost\":%ld}\n",
           n, seconds, total, fewest, lost);
    for (long i = 0; i < sandboxes_n; i++)
        sandbox_kill(control, s, &sandboxes[i]);
    return 0;
}

/* Small requests on some connections, the next one sent when an answer is there. */
int verb_health(const struct server *s, int argc, char **argv)
{
    static const char text[] = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    long seconds = argc > 0 ? count_of(argv[0]) : 3, n = argc > 1 ? count_of(argv[1]) : 16;
    int epoll = epoll_create1(0);
    long answers = 0;
    char buf[8192];

    for (long i = 0; i < n; i++) {
        int fd = dial(s);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
        send_all(fd, text, sizeof(text) - 1);
    }
    double begin = now_us(), until = begin + (double)seconds * 1e6;
    while (now_us() < until) {
        struct epoll_event evs[64];
        int got = epoll_wait(epoll, evs, 64, 1000);
        for (int i = 0; i < got; i++) {
            ssize_t len = recv(evs[i].data.fd, buf, sizeof(buf), 0);
            if (len <= 0 || strncmp(buf, "HTTP/1.1 204", 12) != 0)
                fail("health", "an unexpected answer");
            answers++;
            send_all(evs[i].data.fd, text, sizeof(text) - 1);
        }
    }
    printf("{\"case\":\"health\",\"a_second\":%.0f}\n",
           (double)answers / ((now_us() - begin) / 1e6));
    return 0;
}
