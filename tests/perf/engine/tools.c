#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

_Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

long parse_count(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end != '\0' || n <= 0)
        fail(text, "not a count");
    return n;
}

static pid_t spawn(char *const *argv, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (out < 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    int r = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        fail(argv[0], strerror(r));
    return pid;
}

static void wait_for(pid_t pid, const char *name)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status != 0)
        fail(name, "did not end with status 0");
}

void spawn_and_wait(char *const *argv)
{
    wait_for(spawn(argv, -1), argv[0]);
}

void spawn_and_read(char *const *argv, char *ret, size_t size)
{
    size_t have = 0;
    ssize_t n;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        fail("pipe", "no descriptor");
    pid_t pid = spawn(argv, fds[1]);
    close(fds[1]);
    while (have + 1 < size && (n = read(fds[0], ret + have, size - have - 1)) > 0)
        have += (size_t)n;
    ret[have] = '\0';
    close(fds[0]);
    wait_for(pid, argv[0]);
}

void series_add(struct series *s, double us)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 256;
        s->us = realloc(s->us, s->room * sizeof(s->us[0]));
        if (!s->us)
            fail(s->name, "out of memory");
    }
    s->us[s->n++] = us;
}

void series_print(const struct series *s)
{
    for (size_t i = 0; i < s->n; i++)
        printf("{\"case\": \"%s\", \"us\": %.1f}\n", s->name, s->us[i]);
}

struct sg_engine *engine_open(unsigned max_sandboxes)
{
    struct sg_engine *engine;
    struct sg_error e;

    if (sg_engine_open(max_sandboxes, &engine, &e) < 0)
        fail("open an engine", e.message);
    return engine;
}

struct sg_sandbox *sandbox_open(struct sg_engine *engine, const struct sg_options *options)
{
    struct sg_sandbox *s;
    struct sg_error e;

    if (sg_sandbox_open(engine, options, &s, &e) < 0)
        fail("open a sandbox", e.message);
    return s;
}

void sandbox_exec(struct sg_sandbox *s, const char *const *argv, struct sg_result *ret)
{
    struct sg_exec exec = SG_EXEC_INIT;
    struct sg_result result;
    struct sg_error e;

    exec.argv = argv;
    exec.timeout_ms = 600000;
    if (sg_sandbox_exec(s, &exec, &result, &e) < 0)
        fail(argv[0], e.message);
    if (result.status != SG_STATUS_SUCCESS) {
        fputs(result.stderr_data, stderr);
        fail(argv[0], result.error_message);
    }
    if (ret)
        *ret = result;
    else
        sg_result_free(&result);
}

void sandbox_close(struct sg_sandbox *s)
{
    struct sg_error e;

    if (sg_sandbox_close(s, &e) < 0)
        fail("close a sandbox", e.message);
}

void checkpoint(const char *name)
{
    int c;

    printf("{\"checkpoint\": \"%s\"}\n", name);
    fflush(stdout);
    while ((c = getchar()) != '\n')
        if (c == EOF)
            fail(name, "nobody is listening any more");
}
