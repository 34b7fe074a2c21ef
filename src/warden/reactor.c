#include "warden/reactor.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"

#define NS_PER_S 1000000000u
#define POLL_NS  10000000 /* how late an event may be that epoll has no room for */

int reactor_init(struct reactor *re, struct sg_error *e)
{
    *re = (struct reactor){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    return re->epoll_fd < 0 ? err_errno(e, "make an epoll") : 0;
}

void reactor_done(struct reactor *re)
{
    close_p(&re->epoll_fd);
    free(re->heap);
    free(re->polled);
    *re = (struct reactor){.epoll_fd = -1};
}

static int tell_epoll(struct reactor *re, struct event_source *src, int op, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = src};

    return epoll_ctl(re->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

static void poll_instead(struct reactor *re, struct event_source *src, uint32_t events)
{
    re->polled = xgrow(re->polled, re->n_polled, &re->polled_cap, sizeof(re->polled[0]));
    if (re->n_polled == 0)
        log_line(LEVEL_WARN,
                 "no room to watch another descriptor: until there is some, nothing new "
                 "is begun (see fs.epoll.max_user_watches)");
    src->polled = events;
    src->place = re->n_polled;
    re->polled[re->n_polled++] = src;
}

static void poll_no_more(struct reactor *re, struct event_source *src)
{
    struct event_source *last = re->polled[--re->n_polled];

    re->polled[src->place] = last;
    last->place = src->place;
    src->polled = 0;
}

void reactor_watch(struct reactor *re, struct event_source *src, int fd, uint32_t events)
{
    if (src->polled)
        src->polled = events;
    else if (tell_epoll(re, src, src->fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, events) < 0)
        poll_instead(re, src, events);
    src->fd = fd;
}

void reactor_unwatch(struct reactor *re, struct event_source *src)
{
    if (src->polled)
        poll_no_more(re, src);
    else if (src->fd >= 0)
        epoll_ctl(re->epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
    src->fd = -1;
}

/* Runs the next polled source that has an event. Offers one to epoll each time. */
static bool run_polled(struct reactor *re)
{
    struct event_source *first = re->polled[0];

    if (tell_epoll(re, first, EPOLL_CTL_ADD, first->fd, first->polled) == 0)
        poll_no_more(re, first);
    for (size_t i = 0; i < re->n_polled; i++) {
        struct event_source *src = re->polled[re->next_polled++ % re->n_polled];
        struct pollfd p = {.fd = src->fd, .events = (short)src->polled};

        if (poll(&p, 1, 0) > 0) {
            src->fn(src, (uint32_t)p.revents);
            return true;
        }
    }
    return false;
}

/* ---- timers: a binary heap, the first one on top --------------------------------------------- */

static void put(struct reactor *re, size_t place, struct timer *t)
{
    re->heap[place] = t;
    t->place = place;
}

static void sift_up(struct reactor *re, struct timer *t)
{
    size_t i = t->place;

    for (; i > 1 && re->heap[i / 2]->at_ns > t->at_ns; i /= 2)
        put(re, i, re->heap[i / 2]);
    put(re, i, t);
}

static void sift_down(struct reactor *re, struct timer *t)
{
    size_t i = t->place;

    for (;;) {
        size_t child = 2 * i;
        if (child < re->n_timers && re->heap[child + 1]->at_ns < re->heap[child]->at_ns)
            child++;
        if (child > re->n_timers || re->heap[child]->at_ns >= t->at_ns)
            break;
        put(re, i, re->heap[child]);
        i = child;
    }
    put(re, i, t);
}

void timer_set(struct reactor *re, struct timer *timer, uint64_t at_ns)
{
    timer->at_ns = at_ns;
    if (timer->place == 0) {
        re->heap = xgrow(re->heap, re->n_timers + 1, &re->cap, sizeof(re->heap[0]));
        put(re, ++re->n_timers, timer);
    }
    sift_up(re, timer);
    sift_down(re, timer);
}

void timer_cancel(struct reactor *re, struct timer *timer)
{
    struct timer *last;
    size_t place = timer->place;

    if (place == 0)
        return;
    timer->place = 0;
    last = re->heap[re->n_timers--];
    if (last == timer)
        return;
    put(re, place, last);
    sift_up(re, last);
    sift_down(re, last);
}

/* ---- turns ----------------------------------------------------------------------------------- */

void reactor_want_idle(struct reactor *re)
{
    re->want_idle = true;
}

/* musl has no epoll_pwait2; the kernel has had it since 5.11. */
static int wait_event(struct reactor *re, struct epoll_event *ret)
{
    struct timespec t = {0}, *timeout = &t;
    uint64_t now = clock_ns();

    if (!re->want_idle && re->n_timers == 0)
        timeout = NULL;
    else if (!re->want_idle && re->heap[1]->at_ns > now) {
        uint64_t left = re->heap[1]->at_ns - now;
        t = (struct timespec){.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = left % NS_PER_S};
    }
    if (re->n_polled > 0 && (!timeout || t.tv_sec > 0 || t.tv_nsec > POLL_NS)) {
        t = (struct timespec){.tv_nsec = POLL_NS};
        timeout = &t;
    }
    return (int)syscall(SYS_epoll_pwait2, re->epoll_fd, ret, 1, timeout, NULL, 0);
}

static void run_timers(struct reactor *re)
{
    uint64_t now = re->n_timers ? clock_ns() : 0;

    while (re->n_timers > 0 && re->heap[1]->at_ns <= now) {
        struct timer *t = re->heap[1];
        timer_cancel(re, t);
        t->fn(t);
    }
}

int reactor_turn(struct reactor *re)
{
    struct epoll_event ev;
    int n = wait_event(re, &ev);

    if (n < 0 && errno != EINTR)
        return -errno;
    if (n == 1) {
        struct event_source *src = ev.data.ptr;
        src->fn(src, ev.events);
    } else if (re->n_polled > 0 && run_polled(re)) {
        ;
    } else if (n == 0 && re->want_idle) {
        re->want_idle = false;
        re->idle(re);
    }
    run_timers(re);
    return 0;
}
