#include "inside/agent/countdown.h"

#include "lib/base/clock.h"

static uint64_t next_step(const struct countdown *c)
{
    return c->left_ms < COUNTDOWN_STEP_MS ? c->left_ms : COUNTDOWN_STEP_MS;
}

static void arm(struct countdown *c)
{
    loop_timer_set(c->loop, &c->timer, clock_ns() + next_step(c) * 1000000);
}

static void on_timer(struct loop_timer *timer)
{
    struct countdown *c = CONTAINER_OF(timer, struct countdown, timer);

    c->left_ms -= next_step(c);
    if (c->left_ms == 0) {
        c->over(c);
        return;
    }
    arm(c);
    if (c->step)
        c->step(c);
}

void countdown_init(struct countdown *c, struct loop *loop, void (*over)(struct countdown *c))
{
    *c = (struct countdown){.loop = loop, .timer.fn = on_timer, .over = over};
}

void countdown_start(struct countdown *c, uint64_t ms)
{
    c->left_ms = ms;
    arm(c);
}

void countdown_stop(struct countdown *c)
{
    loop_timer_cancel(c->loop, &c->timer);
}

bool countdown_runs(const struct countdown *c)
{
    return c->timer.place > 0;
}
