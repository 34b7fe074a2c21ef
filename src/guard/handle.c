#include "guard/handle.h"

#include <assert.h>

static void free_handle(uv_handle_t *h)
{
    free(h);
}

uv_poll_t *watch_new(uv_loop_t *loop, int fd, void *data)
{
    uv_poll_t *w = xcalloc(1, sizeof *w);
    int r = uv_poll_init(loop, w, fd);

    assert(r == 0); /* a socket, or an anonymous file that epoll takes */
    w->data = data;
    return w;
}

void watch_for(uv_poll_t *w, int events, uv_poll_cb fn)
{
    if (events)
        uv_poll_start(w, events, fn);
    else
        uv_poll_stop(w);
}

void watch_drop(uv_poll_t **w)
{
    if (*w)
        uv_close((uv_handle_t *)*w, free_handle);
    *w = NULL;
}

uv_timer_t *alarm_new(uv_loop_t *loop, void *data)
{
    uv_timer_t *t = xcalloc(1, sizeof *t);

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
        uv_close((uv_handle_t *)*t, free_handle);
    *t = NULL;
}
