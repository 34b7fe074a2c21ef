/* The agent's event loop: one thread, one epoll, level-triggered.
 *
 * A source, timer or task is embedded in the object it belongs to; the callback finds the object
 * with CONTAINER_OF. Nothing is freed during a turn: an object that is over takes its sources out
 * of the loop and puts itself into the bin, which is emptied between turns. So a callback may end
 * any object. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "lib/base/list.h"

struct loop;

struct loop_source {
    int fd; /* -1: not in the loop */
    void (*fn)(struct loop_source *src, uint32_t events);
};

/* Runs once, in the next turn. A task with much to do queues itself again for each next part. */
struct loop_task {
    void (*fn)(struct loop_task *task);
    struct list link;
};

struct loop_timer {
    uint64_t deadline_ns;
    void (*fn)(struct loop_timer *timer);
    struct list link;
};

struct loop_trash {
    struct list link;
    void (*fn)(struct loop_trash *trash); /* frees the object */
};

struct loop {
    int epoll_fd;
    struct list tasks, timers, bin;
};

int loop_init(struct loop *l);
void loop_done(struct loop *l);
/* Waits, runs what is due, empties the bin. 0 or -errno. */
int loop_turn(struct loop *l);

/* Adds the source with these events, or changes its events. */
int loop_watch(struct loop *l, struct loop_source *src, int fd, uint32_t events);
/* Takes the source out; the descriptor stays open. Does nothing if the source is not in the
 * loop. */
void loop_unwatch(struct loop *l, struct loop_source *src);

void loop_task_queue(struct loop *l, struct loop_task *task);
void loop_task_cancel(struct loop_task *task);
void loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t deadline_ns);
void loop_timer_cancel(struct loop_timer *timer);
void loop_throw_away(struct loop *l, struct loop_trash *trash);
