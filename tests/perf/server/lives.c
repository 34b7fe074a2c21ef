/* Sandboxes made, used, paused and killed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define REST_US 4000 /* between rounds, for the pool to fill up again */

int verb_create(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 500;
    int fd = dial(s);

    for (long i = 0; i < n; i++) {
        struct sandbox b;
        double t = now_us();
        sandbox_create(fd, s, &b);
        print_us("create", now_us() - t);
        t = now_us();
        sandbox_kill(fd, s, &b);
        print_us("kill", now_us() - t);
        usleep(REST_US);
    }
    return 0;
}

int verb_interactive(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 300;
    int control = dial(s), data = dial(s);

    for (long i = 0; i < n; i++) {
        struct sandbox b;
        double t = now_us();
        sandbox_create(control, s, &b);
        command_run(data, &b, "true");
        print_us("create to command finished", now_us() - t);
        t = now_us();
        command_run(data, &b, "true");
        print_us("second command", now_us() - t);
        sandbox_kill(control, s, &b);
        usleep(REST_US);
    }
    return 0;
}

int verb_pause(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 200;
    static struct answer a;
    struct sandbox b;
    char path[128];
    int fd = dial(s);

    sandbox_create(fd, s, &b);
    command_run(fd, &b, "sleep 1000 >/dev/null 2>&1 &");
    for (long i = 0; i < n; i++) {
        double t = now_us();
        snprintf(path, sizeof(path), "/sandboxes/%s/pause", b.id);
        call(fd, s, "POST", path, "{}", 204, &a);
        print_us("pause", now_us() - t);
        t = now_us();
        snprintf(path, sizeof(path), "/v2/sandboxes/%s/connect", b.id);
        call(fd, s, "POST", path, "{\"timeout\":300}", 201, &a);
        print_us("resume", now_us() - t);
        usleep(1000);
    }
    sandbox_kill(fd, s, &b);
    return 0;
}

/* Threads that all begin when the last of them is ready. */
struct crew {
    const struct server *server;
    pthread_barrier_t start;
    double until; /* 0: one round each */
    long rounds;
    pthread_mutex_t lock;
};

static void *burst_one(void *arg)
{
    struct crew *c = arg;
    struct sandbox b;
    int control = dial(c->server), data = dial(c->server);

    pthread_barrier_wait(&c->start);
    double t = now_us();
    sandbox_create(control, c->server, &b);
    command_run(data, &b, "true");
    double us = now_us() - t;
    pthread_mutex_lock(&c->lock);
    print_us("burst", us);
    pthread_mutex_unlock(&c->lock);
    pthread_barrier_wait(&c->start);
    sandbox_kill(control, c->server, &b);
    close(control);
    close(data);
    return NULL;
}

static void *churn_one(void *arg)
{
    struct crew *c = arg;
    int fd = dial(c->server);
    long n = 0;

    pthread_barrier_wait(&c->start);
    while (now_us() < c->until) {
        struct sandbox b;
        sandbox_create(fd, c->server, &b);
        sandbox_kill(fd, c->server, &b);
        n++;
    }
    pthread_mutex_lock(&c->lock);
    c->rounds += n;
    pthread_mutex_unlock(&c->lock);
    close(fd);
    return NULL;
}

static void crew_start(struct crew *c, const struct server *s, pthread_t *threads, long n,
                       void *(*fn)(void *))
{
    pthread_attr_t small;

    c->server = s;
    pthread_mutex_init(&c->lock, NULL);
    pthread_barrier_init(&c->start, NULL, (unsigned)n + 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 8u * 1024 * 1024); /* what is local to threads counts */
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, fn, c) != 0)
            fail("burst", "cannot start a thread");
}

int verb_burst(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 100;
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));
    struct crew c = {0};

    crew_start(&c, s, threads, n, burst_one);
    pthread_barrier_wait(&c.start);
    double t = now_us();
    pthread_barrier_wait(&c.start);
    print_us("all of the burst", now_us() - t);
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}

int verb_churn(const struct server *s, int argc, char **argv)
{
    long seconds = argc > 0 ? count_of(argv[0]) : 10, n = argc > 1 ? count_of(argv[1]) : 4;
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));
    struct crew c = {.until = now_us() + (double)seconds * 1e6};

    crew_start(&c, s, threads, n, churn_one);
    pthread_barrier_wait(&c.start);
    double t = now_us();
    for (long i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("{\"case\":\"churn\",\"a_second\":%.1f}\n", (double)c.rounds / ((now_us() - t) / 1e6));
    free(threads);
    return 0;
}
