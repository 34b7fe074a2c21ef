#include "lib/uv/ipc_uv.h"

#include <poll.h>

#include "lib/base/clock.h"
#include "lib/uv/handle.h"

static void on_event(uv_poll_t *watch, int status UNUSED, int events UNUSED)
{
    struct ipc_uv *u = watch->data;

    ipc_link_ready(&u->link);
}

static void on_alarm(uv_timer_t *alarm)
{
    struct ipc_uv *u = alarm->data;

    ipc_link_expire(&u->link);
}

static void set_alarm(struct ipc_uv *u)
{
    uint64_t due = ipc_link_due(&u->link), now;

    if (due == UINT64_MAX)
        return;
    if (!u->alarm)
        u->alarm = alarm_new(u->loop, u);
    now = clock_ns();
    if (!uv_is_active((uv_handle_t *)u->alarm))
        alarm_set(u->alarm, due > now ? due - now : 0, on_alarm);
}

static void changed(struct ipc_link *l)
{
    struct ipc_uv *u = CONTAINER_OF(l, struct ipc_uv, link);
    int events = ipc_link_events(l);

    if (l->sock < 0) {
        watch_drop(&u->watch);
        alarm_drop(&u->alarm);
        return;
    }
    if (!u->watch)
        u->watch = watch_new(u->loop, l->sock, u);
    watch_for(u->watch, (events & POLLIN ? UV_READABLE : 0) | (events & POLLOUT ? UV_WRITABLE : 0),
              on_event);
    set_alarm(u);
}

void ipc_uv_init(struct ipc_uv *u, uv_loop_t *loop, const struct ipc_kind *kind)
{
    *u = (struct ipc_uv){.loop = loop};
    ipc_link_init(&u->link, kind, changed);
}
