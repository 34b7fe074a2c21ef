#include "inside/agent/loop.h"

#include "lib/base/clock.h"

#define EVENTS_PER_TURN 64

int loop_init(struct loop *l)
{
    *l = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    return l->epoll_fd < 0 ? -errno : 0;
}

static void empty_bin(struct loop *l)
{
    struct loop_trash *t;

    while ((t = LIST_POP(struct loop_trash, &l->bin, link)))
        t->fn(t);
}

void loop_done(struct loop *l)
{
    empty_bin(l);
    close_p(&l->epoll_fd);
}

int loop_watch(struct loop *l, struct loop_source *src, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = src};
    int op = src->fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (epoll_ctl(l->epoll_fd, op, fd, &ev) < 0)
        return -errno;
    src->fd = fd;
    return 0;
}

void loop_unwatch(struct loop *l, struct loop_source *src)
{
    if (src->fd >= 0)
        epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
    src->fd = -1;
}

void loop_task_queue(struct loop *l, struct loop_task *task)
{
    if (!list_linked(&task->link))
        list_push(&l->tasks, &task->link);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->link);
}

void loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
    if (!list_linked(&timer->link))
        list_push(&l->timers, &timer->link);
}

void loop_timer_cancel(struct loop_timer *timer)
{
    list_remove(&timer->link);
}

void loop_throw_away(struct loop *l, struct loop_trash *trash)
{
    list_push(&l->bin, &trash->link);
}

static int wait_ms(const struct loop *l)
{
    uint64_t first = UINT64_MAX;

    if (!list_empty(&l->tasks))
        return 0;
    LIST_EACH(const struct loop_timer, t, &l->timers, link)
        if (t->deadline_ns < first)
            first = t->deadline_ns;
    return first == UINT64_MAX ? -1 : clock_poll_ms(first);
}

/* Runs the tasks queued so far; tasks that these queue run in the next turn. */
static void run_tasks(struct loop *l)
{
    struct list now = {0};
    struct loop_task *task;

    list_move(&l->tasks, &now);
    while ((task = LIST_POP(struct loop_task, &now, link)))
        task->fn(task);
}

/* A timer may cancel others, so the search starts again after each. */
static void run_timers(struct loop *l)
{
    uint64_t now = list_empty(&l->timers) ? 0 : clock_ns();
    struct loop_timer *t;

    while ((t = LIST_FIND(struct loop_timer, at, &l->timers, link, at->deadline_ns <= now))) {
        loop_timer_cancel(t);
        t->fn(t);
    }
}

int loop_turn(struct loop *l)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int n = epoll_wait(l->epoll_fd, events, EVENTS_PER_TURN, wait_ms(l));

    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        struct loop_source *src = events[i].data.ptr;

        /* an earlier event of this turn may have taken it out */
        if (src->fd >= 0)
            src->fn(src, events[i].events);
    }
    run_tasks(l);
    run_timers(l);
    empty_bin(l);
    return 0;
}
