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
    while (l->bin) {
        struct loop_trash *t = l->bin;

        l->bin = t->next;
        t->fn(t);
    }
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
    if (task->link)
        return;
    task->next = l->tasks;
    task->link = &l->tasks;
    if (l->tasks)
        l->tasks->link = &task->next;
    l->tasks = task;
}

void loop_task_cancel(struct loop_task *task)
{
    if (!task->link)
        return;
    *task->link = task->next;
    if (task->next)
        task->next->link = task->link;
    task->link = NULL;
}

void loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
    if (timer->link)
        return;
    timer->next = l->timers;
    timer->link = &l->timers;
    if (l->timers)
        l->timers->link = &timer->next;
    l->timers = timer;
}

void loop_timer_cancel(struct loop_timer *timer)
{
    if (!timer->link)
        return;
    *timer->link = timer->next;
    if (timer->next)
        timer->next->link = timer->link;
    timer->link = NULL;
}

void loop_throw_away(struct loop *l, struct loop_trash *trash)
{
    trash->next = l->bin;
    l->bin = trash;
}

static int wait_ms(const struct loop *l)
{
    uint64_t first = UINT64_MAX;

    if (l->tasks)
        return 0;
    for (const struct loop_timer *t = l->timers; t; t = t->next)
        if (t->deadline_ns < first)
            first = t->deadline_ns;
    return first == UINT64_MAX ? -1 : clock_poll_ms(first);
}

/* Runs the tasks queued so far; tasks that these queue run in the next turn. */
static void run_tasks(struct loop *l)
{
    struct loop_task *now = l->tasks;

    l->tasks = NULL;
    if (now)
        now->link = &now;
    while (now) {
        struct loop_task *task = now;

        loop_task_cancel(task);
        task->fn(task);
    }
}

/* A timer may cancel others, so the search starts again after each. */
static void run_timers(struct loop *l)
{
    uint64_t now = l->timers ? clock_ns() : 0;
    struct loop_timer *t = l->timers;

    while (t) {
        if (t->deadline_ns > now) {
            t = t->next;
            continue;
        }
        loop_timer_cancel(t);
        t->fn(t);
        t = l->timers;
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
