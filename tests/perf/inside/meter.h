/* How long a workload took, by its own clock, so that starting and ending it are left out. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct meter {
    double wall_us, cpu_us;
};

static inline double meter_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline struct meter meter_start(void)
{
    return (struct meter){meter_clock(CLOCK_MONOTONIC), meter_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

/* One line that bench_overhead reads: wall and processor time in microseconds. */
static inline void meter_print(struct meter start)
{
    struct meter end = meter_start();

    printf("%.1f %.1f\n", end.wall_us - start.wall_us, end.cpu_us - start.cpu_us);
}

static inline _Noreturn void meter_fail(const char *what)
{
    perror(what);
    exit(1);
}
