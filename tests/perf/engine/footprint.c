/* What sandboxes hold while they live and leave when they end. Another process does the counting,
 * at the checkpoints. */
#include <stdlib.h>

#include "bench.h"

int verb_hold(int argc, char **argv)
{
    struct series create = {.name = "hold.create"};

    if (argc != 1)
        return 2;
    long n = parse_count(argv[0]);
    struct sg_sandbox **held = calloc((size_t)n, sizeof(held[0]));
    if (!held)
        fail(argv[0], "out of memory");
    struct sg_engine *engine = engine_open(n < 1024 ? 1024 : (unsigned)n + 1);
    sandbox_close(sandbox_open(engine, NULL)); /* what is needed once only is there now */
    checkpoint("empty");
    for (long i = 0; i < n; i++) {
        double start = now_us();
        held[i] = sandbox_open(engine, NULL);
        series_add(&create, now_us() - start);
    }
    checkpoint("full");
    for (long i = 0; i < n; i++)
        sandbox_close(held[i]);
    sg_engine_close(engine);
    series_print(&create);
    free(held);
    return 0;
}

/* Leaves a process behind that only the end of the sandbox ends. */
static const char *const leave_one[] = {"/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 &", NULL};

static void cycle(struct sg_engine *engine)
{
    struct sg_sandbox *s = sandbox_open(engine, NULL);

    sandbox_exec(s, leave_one, NULL);
    sandbox_close(s);
}

int verb_cycles(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    long n = parse_count(argv[0]), slots = parse_count(argv[1]);
    struct sg_engine *engine = engine_open((unsigned)slots);
    for (long i = 0; i < 2 * slots; i++)
        cycle(engine);
    sg_engine_close(engine);

    checkpoint("start"); /* the kernel's caches are warm and nothing of ours is open */
    engine = engine_open((unsigned)slots);
    for (long i = 0; i < 2 * slots; i++)
        cycle(engine);
    checkpoint("warm"); /* every slot has been used */
    for (long i = 0; i < n; i++)
        cycle(engine);
    checkpoint("cycled");
    sg_engine_close(engine);
    checkpoint("closed");
    return 0;
}
