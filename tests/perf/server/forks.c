/* Live fork: copies of sandboxes that have something in memory and in files, checkpoints, and ways
 * back. Every answer is checked: a copy must know what its source knew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define WIDTH_MAX 100

struct rig {
    const struct server *server;
    int control, data;
    struct sandbox sandbox;
};

/* Its value, as text, must be this. NULL: it has none. */
static void take_cell(int fd, const char *code, const char *value)
{
    static _Thread_local struct answer a;
    char text[96];

    read_answer(fd, &a);
    snprintf(text, sizeof(text), "\"text\":\"%s\"}", value ? value : "");
    if (a.status != 200 || (value && !strstr(a.body, text)) || strstr(a.body, "\"type\":\"error\""))
        fail(code, a.body);
}

static void cell(int fd, const struct sandbox *b, const char *code, const char *value)
{
    cell_ask(fd, b, code);
    take_cell(fd, code, value);
}

/* The n-th that an answer names, from 0 on. */
static void nth_sandbox(const struct answer *a, size_t n, struct sandbox *ret)
{
    const char *at = a->body;

    for (size_t i = 0; i <= n; i++) {
        at = strstr(at, "{\"sandbox\":");
        if (!at)
            fail("fork: fewer than were asked for", a->body);
        at++;
    }
    json_field(at, "sandboxID", ret->id, sizeof(ret->id));
    json_field(at, "envdAccessToken", ret->token, sizeof(ret->token));
}

static void fork_sandboxes(const struct rig *r, const struct sandbox *from, long count,
                           struct answer *ret)
{
    char path[128], body[64];

    snprintf(path, sizeof(path), "/sandboxes/%s/fork", from->id);
    snprintf(body, sizeof(body), "{\"count\":%ld,\"timeout\":3600}", count);
    call(r->control, r->server, "POST", path, body, 201, ret);
    if (strstr(ret->body, "\"fresh\""))
        fail("fork: a kernel was not carried", ret->body);
}

static void fork_sandbox(const struct rig *r, const struct sandbox *from, struct sandbox *ret)
{
    static struct answer a;

    fork_sandboxes(r, from, 1, &a);
    nth_sandbox(&a, 0, ret);
}

/* name: NULL if nobody asks for it. */
static void take_checkpoint(const struct rig *r, char name[64])
{
    static struct answer a;
    char path[128];

    snprintf(path, sizeof(path), "/sandboxes/%s/checkpoints", r->sandbox.id);
    call(r->control, r->server, "POST", path, "{}", 201, &a);
    if (name)
        json_field(a.body, "checkpointId", name, 64);
}

/* A sandbox with `mib` MiB of ones in an array; "small": in pages of 4 KiB. */
static void rig_up(const struct server *s, struct rig *r, long mib, const char *pages)
{
    static struct answer a;
    char code[512];

    *r = (struct rig){.server = s, .control = dial(s), .data = dial(s)};
    call(r->control, s, "POST", "/v2/sandboxes", "{\"templateID\":\"base\",\"timeout\":3600}", 201,
         &a);
    json_field(a.body, "sandboxID", r->sandbox.id, sizeof(r->sandbox.id));
    json_field(a.body, "envdAccessToken", r->sandbox.token, sizeof(r->sandbox.token));
    snprintf(code, sizeof(code),
             "import mmap, numpy\\nm = mmap.mmap(-1, %ld << 20, mmap.MAP_PRIVATE | "
             "mmap.MAP_ANONYMOUS)\\nm.madvise(mmap.MADV_%s)\\n"
             "a = numpy.frombuffer(m, 'int64'); a[:] = 1; x = 0",
             mib, strcmp(pages, "small") == 0 ? "NOHUGEPAGE" : "HUGEPAGE");
    cell(r->data, &r->sandbox, code, NULL);
}

/* Something new, in memory and in a file. */
static void change(const struct rig *r, long n)
{
    char code[160];

    snprintf(code, sizeof(code),
             "a[7] = %ld; x += 1\\nwith open('/home/user/f', 'w') as f: _ = f.write('%ld')", n, n);
    cell(r->data, &r->sandbox, code, NULL);
}

static const char reads_both[] = "int(a[7]), int(a[-1]), open('/home/user/f').read()";

static void must_know(int fd, const struct sandbox *b, long n)
{
    char value[96];

    snprintf(value, sizeof(value), "(%ld, 1, '%ld')", n, n);
    cell(fd, b, reads_both, value);
}

/* How long its kernels stood still for each copy, as the sandbox's own log has it. */
static void print_paused(const struct rig *r)
{
    static struct answer a;
    char path[160];

    snprintf(path, sizeof(path), "/v2/sandboxes/%s/logs?limit=1000&search=Checkpoint",
             r->sandbox.id);
    call(r->control, r->server, "GET", path, "", 200, &a);
    for (const char *at = strstr(a.body, " taken, "); at; at = strstr(at + 1, " taken, "))
        print_us("paused", strtod(at + strlen(" taken, "), NULL));
}

/* forks ROUNDS REST_US MIB huge|small */
int verb_forks(const struct server *s, int argc, char **argv)
{
    if (argc != 4)
        fail("usage", "forks ROUNDS REST_US MIB huge|small");
    long n = count_of(argv[0]), rest_us = count_of(argv[1]);
    struct rig r;

    rig_up(s, &r, count_of(argv[2]), argv[3]);
    for (long i = 1; i <= n; i++) {
        struct sandbox b;
        change(&r, i);
        double t = now_us();
        fork_sandbox(&r, &r.sandbox, &b);
        double forked = now_us();
        must_know(r.data, &b, i);
        double done = now_us();
        print_us("fork", forked - t);
        print_us("first cell", done - forked);
        print_us("fork to first answer", done - t);
        must_know(r.data, &r.sandbox, i);
        sandbox_kill(r.control, s, &b);
        usleep((useconds_t)rest_us);
    }
    print_paused(&r);
    sandbox_kill(r.control, s, &r.sandbox);
    return 0;
}

/* fork-fan WIDTH ROUNDS REST_US MIB: all at once, each asked on a connection of its own. */
int verb_fork_fan(const struct server *s, int argc, char **argv)
{
    if (argc != 4)
        fail("usage", "fork-fan WIDTH ROUNDS REST_US MIB");
    long width = count_of(argv[0]), rounds = count_of(argv[1]), rest_us = count_of(argv[2]);
    static struct sandbox sandboxes[WIDTH_MAX];
    static struct answer a;
    int fds[WIDTH_MAX];
    char value[96];
    struct rig r;

    if (width > WIDTH_MAX)
        fail("fork-fan", "that wide it cannot be");
    rig_up(s, &r, count_of(argv[3]), "huge");
    for (long i = 0; i < width; i++)
        fds[i] = dial(s);
    for (long round = 1; round <= rounds; round++) {
        change(&r, round);
        snprintf(value, sizeof(value), "(%ld, 1, '%ld')", round, round);
        usleep((useconds_t)rest_us);
        double t = now_us();
        fork_sandboxes(&r, &r.sandbox, width, &a);
        print_us("fan: forked", now_us() - t);
        for (long i = 0; i < width; i++) {
            nth_sandbox(&a, (size_t)i, &sandboxes[i]);
            cell_ask(fds[i], &sandboxes[i], reads_both);
        }
        for (long i = 0; i < width; i++)
            take_cell(fds[i], reads_both, value);
        print_us("fan: all have answered", now_us() - t);
        for (long i = 0; i < width; i++)
            sandbox_kill(r.control, s, &sandboxes[i]);
    }
    sandbox_kill(r.control, s, &r.sandbox);
    return 0;
}

/* checkpoints ROUNDS MIB: in turns with a sandbox that never has one. */
int verb_checkpoints(const struct server *s, int argc, char **argv)
{
    if (argc != 2)
        fail("usage", "checkpoints ROUNDS MIB");
    long n = count_of(argv[0]), mib = count_of(argv[1]);
    struct rig r, plain;
    char value[32];

    rig_up(s, &r, mib, "huge");
    rig_up(s, &plain, mib, "huge");
    for (long i = 1; i <= n; i++) {
        snprintf(value, sizeof(value), "%ld", i);
        double t = now_us();
        take_checkpoint(&r, NULL);
        double taken = now_us();
        cell(r.data, &r.sandbox, "x += 1; x", value);
        double after = now_us();
        cell(plain.data, &plain.sandbox, "x += 1; x", value);
        double begin = now_us();
        cell(r.data, &r.sandbox, "x", value);
        double next = now_us();
        cell(plain.data, &plain.sandbox, "x", value);
        double never = now_us();
        print_us("checkpoint", taken - t);
        print_us("cell after it", after - taken);
        print_us("the next cell", next - begin);
        print_us("cell, never any", never - next);
    }
    print_paused(&r);
    sandbox_kill(r.control, s, &r.sandbox);
    sandbox_kill(r.control, s, &plain.sandbox);
    return 0;
}

/* rewinds ROUNDS REST_US MIB */
int verb_rewinds(const struct server *s, int argc, char **argv)
{
    if (argc != 3)
        fail("usage", "rewinds ROUNDS REST_US MIB");
    long n = count_of(argv[0]), rest_us = count_of(argv[1]);
    static struct answer a;
    char name[64], path[128], body[128];
    struct rig r;

    rig_up(s, &r, count_of(argv[2]), "huge");
    change(&r, 1);
    take_checkpoint(&r, name);
    snprintf(path, sizeof(path), "/sandboxes/%s/rewind", r.sandbox.id);
    snprintf(body, sizeof(body), "{\"checkpointId\":\"%s\"}", name);
    for (long i = 2; i < n + 2; i++) {
        change(&r, i);
        must_know(r.data, &r.sandbox, i);
        double t = now_us();
        call(r.control, s, "POST", path, body, 200, &a);
        double back = now_us();
        must_know(r.data, &r.sandbox, 1);
        double done = now_us();
        print_us("rewind", back - t);
        print_us("rewind: first cell", done - back);
        print_us("rewind to first answer", done - t);
        usleep((useconds_t)rest_us);
    }
    sandbox_kill(r.control, s, &r.sandbox);
    return 0;
}

/* fork-chain LEVELS REST_US MIB: each is a copy of the one before, which ends. */
int verb_fork_chain(const struct server *s, int argc, char **argv)
{
    if (argc != 3)
        fail("usage", "fork-chain LEVELS REST_US MIB");
    long levels = count_of(argv[0]), rest_us = count_of(argv[1]);
    char code[256], value[64];
    struct rig r;

    rig_up(s, &r, count_of(argv[2]), "huge");
    cell(r.data, &r.sandbox, "seen = []; open('/home/user/seen', 'w').close()", NULL);
    for (long i = 1; i <= levels; i++) {
        struct sandbox b;
        snprintf(code, sizeof(code),
                 "seen.append(%ld)\\nwith open('/home/user/seen', 'a') as f: _ = f.write('x')", i);
        cell(r.data, &r.sandbox, code, NULL);
        snprintf(value, sizeof(value), "(%ld, %ld)", i, i);
        double t = now_us();
        fork_sandbox(&r, &r.sandbox, &b);
        cell(r.data, &b, "len(seen), len(open('/home/user/seen').read())", value);
        print_us("chain: a level", now_us() - t);
        sandbox_kill(r.control, s, &r.sandbox);
        r.sandbox = b;
        usleep((useconds_t)rest_us);
    }
    snprintf(code, sizeof(code), "seen == list(range(1, %ld)) and int(a.sum()) == len(a)",
             levels + 1);
    cell(r.data, &r.sandbox, code, "True");
    sandbox_kill(r.control, s, &r.sandbox);
    return 0;
}

/* fork-idle WIDTH MIB: what copies and checkpoints hold that nobody uses. */
int verb_fork_idle(const struct server *s, int argc, char **argv)
{
    if (argc != 2)
        fail("usage", "fork-idle WIDTH MIB");
    long width = count_of(argv[0]);
    static struct answer a;
    struct sandbox b;
    struct rig r;

    rig_up(s, &r, count_of(argv[1]), "huge");
    change(&r, 1);
    fork_sandbox(&r, &r.sandbox, &b); /* the first of everything */
    sandbox_kill(r.control, s, &b);
    take_checkpoint(&r, NULL);
    checkpoint("empty");
    for (long i = 0; i < width; i++)
        take_checkpoint(&r, NULL);
    checkpoint("checkpoints");
    fork_sandboxes(&r, &r.sandbox, width, &a);
    checkpoint("branches");
    for (long i = 0; i < width; i++) {
        nth_sandbox(&a, (size_t)i, &b);
        must_know(r.data, &b, 1);
    }
    checkpoint("used");
    for (long i = 0; i < width; i++) {
        nth_sandbox(&a, (size_t)i, &b);
        sandbox_kill(r.control, s, &b);
    }
    sandbox_kill(r.control, s, &r.sandbox);
    return 0;
}
