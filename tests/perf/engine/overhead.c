/* The same program outside and inside, in turns, by the program's own clock. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define CPUS_MILLI   4000u /* enough never to be throttled */
#define MEMORY_BYTES (4ull << 30)
#define DISK_BYTES   (1ull << 30)

static void report(const char *name, const char *where, const char *text)
{
    double wall_us, cpu_us;

    if (sscanf(text, "%lf %lf", &wall_us, &cpu_us) != 2)
        fail(name, "printed no figures");
    printf("{\"case\": \"%s.%s\", \"us\": %.1f, \"cpu_us\": %.1f}\n", name, where, wall_us, cpu_us);
}

static void run_outside(const char *name, char *const *argv)
{
    char text[128];

    spawn_and_read(argv, text, sizeof(text));
    if (name)
        report(name, "outside", text);
}

static void run_inside(const char *name, struct sg_sandbox *s, char *const *argv)
{
    struct sg_result r;

    sandbox_exec(s, (const char *const *)argv, &r);
    if (name)
        report(name, "inside", r.stdout_data);
    sg_result_free(&r);
}

static struct sg_sandbox *open_with(struct sg_engine *engine, const char *dir)
{
    const char *roots[] = {dir, NULL};
    struct sg_mount mount = {.source = dir, .target = BENCH_DIR};
    struct sg_policy policy = {.mount_roots = roots};
    struct sg_options o = SG_OPTIONS_INIT;

    o.mounts = &mount;
    o.n_mounts = 1;
    o.policy = &policy;
    o.limits.cpus_milli = CPUS_MILLI;
    o.limits.memory_bytes = MEMORY_BYTES;
    o.limits.disk_bytes = DISK_BYTES;
    return sandbox_open(engine, &o);
}

int verb_overhead(int argc, char **argv)
{
    char **outside = argv + 3, **inside = outside;

    while (argc > 3 && *inside && strcmp(*inside, "::") != 0)
        inside++;
    if (argc < 6 || !*inside)
        return 2;
    *inside++ = NULL;
    struct sg_engine *engine = engine_open(1);
    struct sg_sandbox *s = open_with(engine, argv[2]);
    run_outside(NULL, outside); /* brings files into the page cache */
    run_inside(NULL, s, inside);
    for (long i = 0, n = parse_count(argv[0]); i < n; i++) {
        if (i % 2 == 0)
            run_outside(argv[1], outside);
        run_inside(argv[1], s, inside);
        if (i % 2 == 1)
            run_outside(argv[1], outside);
    }
    sandbox_close(s);
    sg_engine_close(engine);
    return 0;
}
