/* A time limit that is counted in small steps. A sandbox that is frozen meanwhile loses at most one
 * step of it, not all. */
#pragma once

#include "lib/loop/loop.h"

#define COUNTDOWN_STEP_MS 1000

struct countdown {
    struct loop *loop;
    struct loop_timer timer;
    uint64_t left_ms;
    void (*step)(struct countdown *c); /* after each step but the last; may be NULL */
    void (*over)(struct countdown *c);
};

void countdown_init(struct countdown *c, struct loop *loop, void (*over)(struct countdown *c));
/* Starts counting from `ms`, even if a countdown is under way. */
void countdown_start(struct countdown *c, uint64_t ms);
void countdown_stop(struct countdown *c);
bool countdown_runs(const struct countdown *c);
