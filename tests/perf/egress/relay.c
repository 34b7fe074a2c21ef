/* The least that copies between a namespace without a way out and a host: a listener inside it, a
 * connection from here, bytes moved by splice. No policy, no names, no record; what the guard is
 * measured against.
 *
 *   relay NAMESPACE-FILE PORT ADDRESS PORT    prints a line when it listens on 127.0.0.1 there */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE (1024 * 1024) /* as the guard's */

struct way {
    int from, to;
};

static struct sockaddr_in target;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* One direction, until its end. The other may go on. */
static void *copy(void *arg)
{
    struct way *w = arg;
    int fds[2];
    ssize_t in, out = 1;

    if (pipe2(fds, O_CLOEXEC) < 0)
        fail("pipe");
    fcntl(fds[1], F_SETPIPE_SZ, PIPE);
    while (out > 0 && (in = splice(w->from, NULL, fds[1], NULL, PIPE, SPLICE_F_MOVE)) > 0)
        for (; in > 0 && out > 0; in -= out)
            out = splice(fds[0], NULL, w->to, NULL, (size_t)in, SPLICE_F_MOVE);
    shutdown(w->to, SHUT_WR);
    close(fds[0]);
    close(fds[1]);
    return NULL;
}

static void *serve(void *arg)
{
    int client = (int)(intptr_t)arg, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct way up = {client, server}, down = {server, client};
    pthread_t thread;

    if (connect(server, (struct sockaddr *)&target, sizeof(target)) < 0)
        fail("connect");
    if (pthread_create(&thread, NULL, copy, &up) != 0)
        fail("thread");
    copy(&down);
    pthread_join(thread, NULL);
    close(client);
    close(server);
    return NULL;
}

static struct sockaddr_in address(const char *text, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)strtol(port, NULL, 10))};

    if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
        fail(text);
    return a;
}

static int listen_inside(const char *namespace, const char *port)
{
    struct sockaddr_in at = address("127.0.0.1", port);
    int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(namespace, O_RDONLY | O_CLOEXEC), fd;

    if (here < 0 || there < 0 || setns(there, CLONE_NEWNET) < 0)
        fail(namespace);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0)
        fail("listen");
    if (setns(here, CLONE_NEWNET) < 0)
        fail("setns");
    return fd;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc != 5)
        return 2;
    target = address(argv[3], argv[4]);
    int listener = listen_inside(argv[1], argv[2]);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            fail("accept");
        pthread_detach(thread);
    }
}
