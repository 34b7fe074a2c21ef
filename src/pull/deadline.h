/* How long all of it may take, and whether it is still wanted. */
#pragma once

#include <signal.h>

#include "lib/base/err.h"

struct deadline {
    uint64_t ns;                       /* of clock_ns */
    uint32_t seconds;                  /* as the request has it, for the error */
    const volatile sig_atomic_t *stop; /* set: not wanted any more */
};

struct deadline deadline_in(uint32_t seconds, const volatile sig_atomic_t *stop);
/* 0, or the error of an end that has come. */
int deadline_check(const struct deadline *d, struct sg_error *e);
/* Sleeps, unless that end comes before. */
int deadline_sleep(const struct deadline *d, uint64_t ms, struct sg_error *e);
