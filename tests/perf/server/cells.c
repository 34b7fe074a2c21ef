/* The code interpreter: cells in fresh sandboxes and in old ones, and what they write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define TWINS_S           60 /* for the zygote of the science set, on a busy machine */
#define POLL_US           100000
#define NEIGHBOUR_REST_US 10000

/* A line of 100 bytes, ten thousand at a time: a megabyte a write. */
#define WRITE_MEGABYTES                               \
    "import sys; b = ('x' * 99 + chr(10)) * 10000\\n" \
    "for _ in range(%ld): sys.stdout.write(b)"

static const struct cell cells[] = {
    {"1+1", "1+1", "\"text\":\"2\"", 0},
    {"lines", /* 100 KB of what programs print */
     "for i in range(1250): print(f'2026-01-01T10:{i // 60:02}:{i % 60:02} INFO worker-{i % 8} "
     "processed item {i} of batch {i // 100} in {i * 37 % 991} ms, {i} rows')",
     "INFO worker-7 processed item", 100000},
};

const struct cell *cell_named(const char *name)
{
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        if (strcmp(cells[i].name, name) == 0)
            return &cells[i];
    fail("no such cell", name);
}

void cell_ask(int fd, const struct sandbox *b, const char *code)
{
    char headers[512], body[1024];
    int len = snprintf(body, sizeof(body), "{\"code\":\"%s\"}", code);

    snprintf(headers, sizeof(headers),
             "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49999\r\nX-Access-Token: %s\r\n"
             "Content-Type: application/json\r\n",
             b->id, b->token);
    request(fd, "POST", "/execute", headers, body, (size_t)len);
}

static uint64_t cell_send(int fd, const struct sandbox *b, const char *code, struct answer *ret)
{
    cell_ask(fd, b, code);
    return read_answer(fd, ret);
}

static void cell_failed(const char *code, const struct answer *a)
{
    fprintf(stderr, "load: cell '%s': status %d: %s\n", code, a->status, a->body);
    exit(1);
}

void cell_run(int fd, const struct sandbox *b, const char *code, const char *value)
{
    static _Thread_local struct answer a;
    char text[64];

    cell_send(fd, b, code, &a);
    snprintf(text, sizeof(text), "\"text\":\"%s\"}", value);
    if (a.status != 200 || !strstr(a.body, text) || !strstr(a.body, "\"end_of_execution\""))
        cell_failed(code, &a);
}

/* Waits until kernels are copies of a zygote: these have their parent outside. */
int verb_twins(const struct server *s, int argc, char **argv)
{
    static const char code[] = "__import__('os').getppid()";
    double until = now_us() + TWINS_S * 1e6;
    static struct answer a;
    int fd = dial(s);

    (void)argc, (void)argv;
    for (;;) {
        struct sandbox b;
        sandbox_create(fd, s, &b);
        cell_send(fd, &b, code, &a);
        sandbox_kill(fd, s, &b);
        if (a.status == 200 && strstr(a.body, "\"text\":\"0\""))
            return 0;
        if (now_us() > until)
            cell_failed(code, &a);
        usleep(POLL_US);
    }
}

/* A sandbox each, used and killed; then a rest, in which the pool fills up again. */
int verb_first_cells(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 200, rest_us = argc > 1 ? count_of(argv[1]) : 30000;
    int control = dial(s), data = dial(s);

    for (long i = 0; i < n; i++) {
        struct sandbox b;
        double t = now_us();
        sandbox_create(control, s, &b);
        double created = now_us();
        cell_run(data, &b, "1+1", "2");
        double done = now_us();
        print_us("create", created - t);
        print_us("first cell", done - created);
        print_us("create to first answer", done - t);
        sandbox_kill(control, s, &b);
        usleep((useconds_t)rest_us);
    }
    return 0;
}

/* neighbour SECONDS: what a tenant beside others notices, one request at a time */
int verb_neighbour(const struct server *s, int argc, char **argv)
{
    long seconds = argc > 0 ? count_of(argv[0]) : 10;
    double until = now_us() + (double)seconds * 1e6;
    int control = dial(s), data = dial(s);

    while (now_us() < until) {
        struct sandbox b;
        double t = now_us();
        sandbox_create(control, s, &b);
        double created = now_us();
        cell_run(data, &b, "1+1", "2");
        double answered = now_us();
        command_run(data, &b, "true");
        double ran = now_us();
        sandbox_kill(control, s, &b);
        double killed = now_us();
        print_us("create", created - t);
        print_us("cell", answered - created);
        print_us("command", ran - answered);
        print_us("kill", killed - ran);
        usleep(NEIGHBOUR_REST_US);
    }
    return 0;
}

/* cells ROUNDS [CELL] */
int verb_cells(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 1000;
    const struct cell *c = cell_named(argc > 1 ? argv[1] : "1+1");
    static struct answer a;
    struct sandbox b;
    int control = dial(s), data = dial(s);

    sandbox_create(control, s, &b);
    cell_run(data, &b, "1+1", "2");
    for (long i = 0; i < n; i++) {
        double t = now_us();
        cell_send(data, &b, c->code, &a);
        if (a.status != 200 || a.len < c->least || !strstr(a.body, c->says))
            cell_failed(c->name, &a);
        print_us("cell", now_us() - t);
    }
    sandbox_kill(control, s, &b);
    return 0;
}

/* Many sandboxes with a kernel each, that all answer in turn. Whoever started us ends them. */
int verb_crowd(const struct server *s, int argc, char **argv)
{
    long n = argc > 0 ? count_of(argv[0]) : 1000, rounds = argc > 1 ? count_of(argv[1]) : 2;
    struct sandbox *sandboxes = calloc((size_t)n, sizeof(*sandboxes));
    int control = dial(s), data = dial(s);
    char code[32], value[32];

    for (long i = 0; i < n; i++) {
        double t = now_us();
        sandbox_create(control, s, &sandboxes[i]);
        snprintf(code, sizeof(code), "x = %ld; x", i);
        snprintf(value, sizeof(value), "%ld", i);
        cell_run(data, &sandboxes[i], code, value);
        print_us("crowd: create to first answer", now_us() - t);
    }
    for (long i = 0; i < n * rounds; i++) {
        snprintf(value, sizeof(value), "%ld", i % n);
        double t = now_us();
        cell_run(data, &sandboxes[i % n], "x", value);
        print_us("crowd: cell", now_us() - t);
    }
    free(sandboxes);
    return 0;
}

/* Text from a cell to here. */
int verb_output(const struct server *s, int argc, char **argv)
{
    long megabytes = argc > 0 ? count_of(argv[0]) : 1000;
    static struct answer a;
    struct sandbox b;
    char code[256];
    int fd = dial(s);

    snprintf(code, sizeof(code), WRITE_MEGABYTES, megabytes);
    sandbox_create(fd, s, &b);
    cell_run(fd, &b, "1+1", "2");
    checkpoint("before");
    double t = now_us();
    uint64_t got = cell_send(fd, &b, code, &a);
    double us = now_us() - t;
    checkpoint("after");
    if (a.status != 200 || got < (uint64_t)megabytes * 1000000)
        cell_failed(code, &a);
    printf("{\"case\":\"output\",\"megabytes\":%ld,\"us\":%.0f}\n", megabytes, us);
    sandbox_kill(fd, s, &b);
    return 0;
}
