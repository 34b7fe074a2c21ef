#include "lib/uv/handle.h"

#include <assert.h>

struct watch {
    uv_poll_t poll;
    uv_poll_cb fn;
    int events; /* the events that are watched for */
};

static void free_watch(uv_handle_t *h)
{
    free(CONTAINER_OF((uv_poll_t *)h, struct watch, poll));
}

static void free_alarm(uv_handle_t *h)
{
    free(h);
}

uv_poll_t *watch_new(uv_loop_t *loop, int fd, void *data)
{
    struct watch *w = xcalloc(1, sizeof(*w));
    int r = uv_poll_init(loop, &w->poll, fd);

    assert(r == 0); /* fd is a socket, or an anonymous file that epoll takes */
    w->poll.data = data;
    return &w->poll;
}

/* libuv stops watching a socket that has an error. But errors pass, like a port that nobody listens
 * at or news that were lost. So the watch goes on, and the callback is told of the error. */
static void on_poll(uv_poll_t *p, int status, int events)
{
    struct watch *w = CONTAINER_OF(p, struct watch, poll);

    if (status < 0) {
        uv_poll_start(p, w->events, on_poll);
        events = w->events;
    }
    w->fn(p, status, events);
}

void watch_for(uv_poll_t *p, int events, uv_poll_cb fn)
{
    struct watch *w = CONTAINER_OF(p, struct watch, poll);

    w->fn = fn;
    if (events == w->events) /* else libuv would remove the descriptor and add it again */
        return;
    w->events = events;
    if (events)
        uv_poll_start(p, events, on_poll);
    else
        uv_poll_stop(p);
}

void watch_drop(uv_poll_t **w)
{
    if (*w)
        uv_close((uv_handle_t *)*w, free_watch);
    *w = NULL;
}

void timer_every(uv_loop_t *loop, uv_timer_t *t, uint64_t ms, uv_timer_cb fn, void *data)
{
    uv_timer_init(loop, t);
    t->data = data;
    uv_timer_start(t, fn, ms, ms);
    uv_unref((uv_handle_t *)t);
}

uv_timer_t *alarm_new(uv_loop_t *loop, void *data)
{
    uv_timer_t *t = xcalloc(1, sizeof(*t));

    uv_timer_init(loop, t);
    t->data = data;
    return t;
}

void alarm_set(uv_timer_t *t, uint64_t ns, uv_timer_cb fn)
{
    uv_timer_start(t, fn, (ns + 999999) / 1000000, 0);
}

void alarm_drop(uv_timer_t **t)
{
    if (*t)
        uv_close((uv_handle_t *)*t, free_alarm);
    *t = NULL;
}
