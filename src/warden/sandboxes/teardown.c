#include "warden/sandboxes/teardown.h"

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/server.h"
#include "warden/sandboxes/tenant_pool.h"

#define LOOK_NS 5000000ull

struct teardown {
    struct list link;
    struct tenant_pool *tenant_pool;
    struct instance *instance;
    struct loop_source process;
    struct loop_timer timer;
    teardown_done done;
    void *arg;
};

static void look(struct teardown *g)
{
    struct server *s = g->tenant_pool->server;
    struct sg_error e = {0};
    int r;

    loop_unwatch(&s->loop, &g->process); /* its descriptor is closed with it */
    r = OPS(g->instance)->ended(g->instance, &e);
    if (r == -EAGAIN) {
        int fd = OPS(g->instance)->process(g->instance);

        /* No descriptor: the process to wait for belongs to the broker, which was copying the
         * sandbox or starting a kernel in it, and nobody will tell of its end. So look again by the
         * timer. */
        if (fd >= 0)
            loop_watch(&s->loop, &g->process, fd, EPOLLIN);
        loop_timer_set(&s->loop, &g->timer,
                       fd >= 0 ? OPS(g->instance)->end_deadline(g->instance)
                               : clock_ns() + LOOK_NS);
        return;
    }
    loop_timer_cancel(&s->loop, &g->timer);
    list_remove(&g->link);
    if (r < 0)
        log_line(LEVEL_ERROR, "%s", e.message);
    tenant_pool_return(g->tenant_pool);
    if (g->done)
        g->done(g->arg);
    free(g);
}

static void on_process(struct loop_source *src, uint32_t events UNUSED)
{
    look(CONTAINER_OF(src, struct teardown, process));
}

static void on_timer(struct loop_timer *timer)
{
    look(CONTAINER_OF(timer, struct teardown, timer));
}

void teardown_begin(struct tenant_pool *w, struct instance *i, teardown_done done, void *arg)
{
    struct server *s = w->server;
    struct teardown *g = NEW(struct teardown, .tenant_pool = w, .instance = i,
                             .process = {.fd = -1, .fn = on_process}, .timer.fn = on_timer,
                             .done = done, .arg = arg);

    list_push(&s->teardowns, &g->link);
    OPS(i)->end(i, w->n_out);
    look(g);
}

void teardowns_close(struct server *s)
{
    struct teardown *g;

    while ((g = LIST_POP(struct teardown, &s->teardowns, link))) {
        loop_unwatch(&s->loop, &g->process);
        loop_timer_cancel(&s->loop, &g->timer);
        free(g);
    }
}
