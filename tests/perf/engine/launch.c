/* From nothing to a program that has ended: in sandboxes of an engine, and as commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SLOTS          16 /* of the engine */
#define WARM_UP        (2 * SLOTS)
#define COMMAND_ROUNDS 3  /* to warm up commands, whose state is the page cache */
#define BLOCK          50 /* sandboxes in a row */
#define CONTENDERS_MAX 24

struct contender {
    struct series whole, create, exec, close; /* the last three for sandboxes only */
    char *const *command;                     /* a command, or else */
    struct sg_engine *engine;                 /* a sandbox around this program: */
    const char *const *program;
};

static void run_in_sandbox(struct contender *c)
{
    double t0 = now_us();
    struct sg_sandbox *s = sandbox_open(c->engine, NULL);
    double t1 = now_us();
    sandbox_exec(s, c->program, NULL);
    double t2 = now_us();
    sandbox_close(s);
    double t3 = now_us();

    series_add(&c->create, t1 - t0);
    series_add(&c->exec, t2 - t1);
    series_add(&c->close, t3 - t2);
    series_add(&c->whole, t3 - t0);
}

static void run_once(struct contender *c)
{
    if (c->engine) {
        run_in_sandbox(c);
        return;
    }
    double start = now_us();
    spawn_and_wait(c->command);
    series_add(&c->whole, now_us() - start);
}

static void forget(struct contender *c)
{
    c->whole.n = c->create.n = c->exec.n = c->close.n = 0;
}

static void take_turns(struct contender *c, size_t n, long warm_up, long rounds)
{
    for (long i = -warm_up; i < rounds; i++) {
        for (size_t k = 0; k < n; k++) {
            if (i == 0)
                forget(&c[k]);
        }
        for (size_t k = 0; k < n; k++)
            run_once(&c[i % 2 ? n - 1 - k : k]);
    }
    for (size_t k = 0; k < n; k++) {
        series_print(&c[k].whole);
        series_print(&c[k].create);
        series_print(&c[k].exec);
        series_print(&c[k].close);
    }
}

/* The programs, and how they are started. The static one is below /usr, so that every contender
 * sees it where it is. */
struct programs {
    char static_path[512], dynamic_path[16];
    char *bare[2], *bwrap_static[12], *bwrap_dynamic[12];
    const char *static_inside[2];
};

static const char *const dynamic_inside[] = {"/bin/true", NULL};

/* What bwrap is run with everywhere: the host's files read-only, its own /dev and /proc. */
static void bwrap_around(char *program, char *ret[12])
{
    static char words[][20] = {
        "/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/",     "/",
        "--dev",          "/dev",          "--proc",    "/proc", "--die-with-parent"};
    size_t n = sizeof(words) / sizeof(words[0]);

    for (size_t i = 0; i < n; i++)
        ret[i] = words[i];
    ret[n] = program;
    ret[n + 1] = NULL;
}

static void programs_init(struct programs *p, const char *dir)
{
    *p = (struct programs){.dynamic_path = "/bin/true"};
    snprintf(p->static_path, sizeof(p->static_path), "%s/true", dir);
    p->bare[0] = p->static_path;
    p->static_inside[0] = p->static_path;
    bwrap_around(p->static_path, p->bwrap_static);
    bwrap_around(p->dynamic_path, p->bwrap_dynamic);
}

int verb_engine(int argc, char **argv)
{
    struct programs p;

    if (argc != 2)
        return 2;
    programs_init(&p, argv[1]);
    struct sg_engine *engine = engine_open(SLOTS);
    struct contender c[] = {
        {.whole.name = "engine.static",
         .create.name = "engine.static.create",
         .exec.name = "engine.static.exec",
         .close.name = "engine.static.close",
         .engine = engine,
         .program = p.static_inside},
        {.whole.name = "engine.static.bwrap", .command = p.bwrap_static},
        {.whole.name = "engine.dynamic",
         .create.name = "engine.dynamic.create",
         .exec.name = "engine.dynamic.exec",
         .close.name = "engine.dynamic.close",
         .engine = engine,
         .program = dynamic_inside},
        {.whole.name = "engine.dynamic.bwrap", .command = p.bwrap_dynamic},
        {.whole.name = "engine.static.bare", .command = p.bare},
    };
    take_turns(c, sizeof(c) / sizeof(c[0]), WARM_UP, parse_count(argv[0]));
    sg_engine_close(engine);
    return 0;
}

/* Without a pause in which an engine could prepare its next sandbox: blocks in a row, in turns. */
int verb_series(int argc, char **argv)
{
    struct programs p;

    if (argc != 2)
        return 2;
    programs_init(&p, argv[1]);
    struct contender c[] = {
        {.whole.name = "series.engine", .engine = engine_open(SLOTS), .program = p.static_inside},
        {.whole.name = "series.bwrap", .command = p.bwrap_static},
    };
    struct series mean[] = {{.name = "series.engine"}, {.name = "series.bwrap"}};
    for (int i = 0; i < WARM_UP; i++)
        run_once(&c[0]);
    for (long i = 0, n = parse_count(argv[0]); i < n; i++) {
        double start = now_us();
        for (int k = 0; k < BLOCK; k++)
            run_once(&c[i % 2]);
        series_add(&mean[i % 2], (now_us() - start) / BLOCK);
    }
    series_print(&mean[0]);
    series_print(&mean[1]);
    sg_engine_close(c[0].engine);
    return 0;
}

/* NAME COMMAND [ARG]... [:: NAME COMMAND [ARG]...]...: cut in place. */
static size_t split(int argc, char **argv, struct contender *ret)
{
    size_t n = 0;

    for (int i = 0, start = 0; i <= argc; i++) {
        if (i < argc && strcmp(argv[i], "::") != 0)
            continue;
        if (i - start < 2 || n == CONTENDERS_MAX)
            fail("commands", "each needs a name and a command, and there are at most 24");
        argv[i] = NULL;
        ret[n++] = (struct contender){.whole.name = argv[start], .command = argv + start + 1};
        start = i + 1;
    }
    return n;
}

int verb_commands(int argc, char **argv)
{
    struct contender c[CONTENDERS_MAX];

    if (argc < 3)
        return 2;
    take_turns(c, split(argc - 1, argv + 1, c), COMMAND_ROUNDS, parse_count(argv[0]));
    return 0;
}
