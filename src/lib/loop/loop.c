#include "lib/loop/loop.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/clock.h"

#define NS_PER_S 1000000000u
#define POLL_NS  10000000 /* how late an event may be that epoll has no room for */

int loop_init(struct loop *l, int batch)
{
    *l = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .batch = batch};
    return l->epoll_fd < 0 ? -errno : 0;
}

void loop_done(struct loop *l)
{
    if (l->empty_bin)
        l->empty_bin(l);
    close_p(&l->epoll_fd);
    free(l->heap);
    *l = (struct loop){.epoll_fd = -1};
}

/* ---- sources --------------------------------------------------------------------------------- */

static int tell_epoll(struct loop *l, struct loop_source *src, int op, int fd)
{
    struct epoll_event ev = {.events = src->events, .data.ptr = src};

    return epoll_ctl(l->epoll_fd, op, fd, &ev);
}

static void poll_instead(struct loop *l, struct loop_source *src)
{
    if (list_empty(&l->polled) && l->no_room)
        l->no_room();
    list_append(&l->polled, &src->polled);
}

void loop_watch(struct loop *l, struct loop_source *src, int fd, uint32_t events)
{
    src->events = events;
    if (!list_linked(&src->polled) &&
        tell_epoll(l, src, src->fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd) < 0)
        poll_instead(l, src);
    src->fd = fd;
}

void loop_unwatch(struct loop *l, struct loop_source *src)
{
    if (list_linked(&src->polled))
        list_remove(&src->polled);
    else if (src->fd >= 0)
        epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
    src->fd = -1;
}

/* Runs the next polled source that has an event, and makes it the last. Offers one to epoll each
 * time. */
static bool run_polled(struct loop *l)
{
    struct loop_source *first = LIST_FIRST(struct loop_source, &l->polled, polled);

    if (first && tell_epoll(l, first, EPOLL_CTL_ADD, first->fd) == 0)
        list_remove(&first->polled);
    LIST_EACH(struct loop_source, src, &l->polled, polled) {
        struct pollfd p = {.fd = src->fd, .events = (short)src->events};

        if (poll(&p, 1, 0) > 0) {
            list_remove(&src->polled);
            list_append(&l->polled, &src->polled);
            src->fn(src, (uint32_t)p.revents);
            return true;
        }
    }
    return false;
}

/* ---- timers: a binary heap, the first one on top --------------------------------------------- */

static void put(struct loop *l, size_t place, struct loop_timer *t)
{
    l->heap[place] = t;
    t->place = place;
}

static void sift_up(struct loop *l, struct loop_timer *t)
{
    size_t i = t->place;

    for (; i > 1 && l->heap[i / 2]->at_ns > t->at_ns; i /= 2)
        put(l, i, l->heap[i / 2]);
    put(l, i, t);
}

static void sift_down(struct loop *l, struct loop_timer *t)
{
    size_t i = t->place;

    for (;;) {
        size_t child = 2 * i;
        if (child < l->n_timers && l->heap[child + 1]->at_ns < l->heap[child]->at_ns)
            child++;
        if (child > l->n_timers || l->heap[child]->at_ns >= t->at_ns)
            break;
        put(l, i, l->heap[child]);
        i = child;
    }
    put(l, i, t);
}

void loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t at_ns)
{
    timer->at_ns = at_ns;
    if (timer->place == 0) {
        l->heap = xgrow(l->heap, l->n_timers + 1, &l->cap, sizeof(l->heap[0]));
        put(l, ++l->n_timers, timer);
    }
    sift_up(l, timer);
    sift_down(l, timer);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *timer)
{
    struct loop_timer *last;
    size_t place = timer->place;

    if (place == 0)
        return;
    timer->place = 0;
    last = l->heap[l->n_timers--];
    if (last == timer)
        return;
    put(l, place, last);
    sift_up(l, last);
    sift_down(l, last);
}

static void run_timers(struct loop *l)
{
    uint64_t now = l->n_timers ? clock_ns() : 0;

    while (l->n_timers > 0 && l->heap[1]->at_ns <= now) {
        struct loop_timer *t = l->heap[1];
        loop_timer_cancel(l, t);
        t->fn(t);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

void loop_want_idle(struct loop *l)
{
    l->want_idle = true;
}

/* musl has no epoll_pwait2; the kernel has had it since 5.11. */
static int wait_events(struct loop *l, struct epoll_event *ret)
{
    uint64_t wait = list_empty(&l->polled) ? UINT64_MAX : POLL_NS;

    if (l->want_idle || !list_empty(&l->tasks)) {
        wait = 0;
    } else if (l->n_timers > 0) {
        uint64_t now = clock_ns(), at = l->heap[1]->at_ns, left = at > now ? at - now : 0;
        wait = left < wait ? left : wait;
    }
    struct timespec t = {.tv_sec = (time_t)(wait / NS_PER_S), .tv_nsec = wait % NS_PER_S};
    return (int)syscall(SYS_epoll_pwait2, l->epoll_fd, ret, l->batch,
                        wait == UINT64_MAX ? NULL : &t, NULL, 0);
}

int loop_turn(struct loop *l)
{
    struct epoll_event events[LOOP_BATCH_MAX];
    int n = wait_events(l, events);

    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        struct loop_source *src = events[i].data.ptr;

        /* An earlier event of this turn may have taken it out. */
        if (src->fd >= 0)
            src->fn(src, events[i].events);
    }
    if (n <= 0 && !run_polled(l) && n == 0 && l->want_idle) {
        l->want_idle = false;
        l->idle(l);
    }
    if (l->run_tasks)
        l->run_tasks(l);
    run_timers(l);
    if (l->empty_bin)
        l->empty_bin(l);
    return 0;
}
