/* What only the library can do with control groups; tests/vm/checks.sh judges what is printed.
 *
 * Pause: a program inside notes the time again and again. While the sandbox is paused its control
 * group must be frozen, and afterwards the notes must have a gap as long as the pause.
 *
 * Reuse: an engine keeps its control groups. What one sandbox used must not be told of the next. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sandglass.h>

#define PAUSE_MS  2000
#define NOTES_MAX (1u << 20)

static const char *const start_clock[] = {
    "sh", "-c",
    "setsid sh -c 'while :; do cat /proc/uptime; sleep 0.1; done' >notes 2>&1 & sleep 1", NULL};
static const char *const wait_a_second[] = {"sleep", "1", NULL};
static const char *const use_memory[] = {"python3", "-c", "x = bytearray(200 << 20)", NULL};
static const char *const use_nothing[] = {"true", NULL};

/* told: the name under which to print the peak of its memory, or NULL. */
static int step(struct sg_sandbox *sandbox, const char *const *argv, const char *told,
                struct sg_error *e)
{
    struct sg_exec exec = SG_EXEC_INIT;
    struct sg_result result;
    int r;

    exec.argv = argv;
    r = sg_sandbox_exec(sandbox, &exec, &result, e);
    if (r < 0)
        return r;
    if (told)
        printf("%s: peak %llu MiB\n", told,
               (unsigned long long)(result.usage.memory_peak_bytes >> 20));
    sg_result_free(&result);
    return 0;
}

/* The groups of this machine that are frozen now. */
static int count_frozen(void)
{
    glob_t found = {0};
    int n = 0;

    if (glob("/sys/fs/cgroup/sandglass/*/*/*/cgroup.events", 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char line[64];
        FILE *f = fopen(found.gl_pathv[i], "re");
        while (f && fgets(line, sizeof(line), f))
            n += strcmp(line, "frozen 1\n") == 0;
        if (f)
            fclose(f);
    }
    globfree(&found);
    return n;
}

/* The longest time between two lines of /proc/uptime, in milliseconds. */
static long longest_gap_ms(const char *notes)
{
    double last = -1, now, longest = 0;

    for (const char *line = notes; line && sscanf(line, "%lf", &now) == 1;) {
        if (last >= 0 && now - last > longest)
            longest = now - last;
        last = now;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return (long)(longest * 1000);
}

static int print_gap(const char *when, struct sg_sandbox *sandbox, struct sg_error *e)
{
    char *notes;
    size_t len;
    int r = sg_sandbox_read_file(sandbox, "user", "notes", NOTES_MAX, &notes, &len, e);

    if (r < 0)
        return r;
    printf("%s: longest gap %ld ms\n", when, longest_gap_ms(notes));
    free(notes);
    return 0;
}

static int pause_it(struct sg_sandbox *sandbox, struct sg_error *e)
{
    int r = sg_sandbox_pause(sandbox, e);

    if (r < 0)
        return r;
    printf("paused: %d frozen\n", count_frozen());
    usleep(PAUSE_MS * 1000);
    r = sg_sandbox_resume(sandbox, e);
    if (r == 0)
        printf("resumed: %d frozen\n", count_frozen());
    return r;
}

static int test_pause(struct sg_sandbox *sandbox, struct sg_error *e)
{
    int r = step(sandbox, start_clock, NULL, e);

    if (r == 0)
        r = print_gap("before", sandbox, e);
    if (r == 0)
        r = pause_it(sandbox, e);
    if (r == 0)
        r = step(sandbox, wait_a_second, NULL, e);
    if (r == 0)
        r = print_gap("after", sandbox, e);
    /* It is closed while it is paused. */
    return r < 0 ? r : sg_sandbox_pause(sandbox, e);
}

static int test_large(struct sg_sandbox *sandbox, struct sg_error *e)
{
    return step(sandbox, use_memory, "large", e);
}

static int test_small(struct sg_sandbox *sandbox, struct sg_error *e)
{
    return step(sandbox, use_nothing, "small", e);
}

static int in_sandbox(struct sg_engine *engine,
                      int (*test)(struct sg_sandbox *sandbox, struct sg_error *e),
                      struct sg_error *e)
{
    struct sg_options options = SG_OPTIONS_INIT;
    struct sg_sandbox *sandbox;
    int r = sg_sandbox_open(engine, &options, &sandbox, e), closed;

    if (r < 0)
        return r;
    r = test(sandbox, e);
    closed = sg_sandbox_close(sandbox, r < 0 ? NULL : e);
    return r < 0 ? r : closed;
}

int main(void)
{
    struct sg_engine *engine = NULL;
    struct sg_error error;
    int r = sg_engine_open(1, &engine, &error);

    if (r == 0)
        r = in_sandbox(engine, test_pause, &error);
    if (r == 0)
        r = in_sandbox(engine, test_large, &error);
    if (r == 0)
        r = in_sandbox(engine, test_small, &error);
    sg_engine_close(engine);
    if (r < 0)
        fprintf(stderr, "library: %s\n", error.message);
    return r < 0;
}
