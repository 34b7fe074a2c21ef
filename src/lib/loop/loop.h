/* The event loop of the warden and of the agent: one thread, one epoll, level-triggered, timers in a
 * heap.
 *
 * A source, timer or task is embedded in the object it belongs to; the callback finds the object
 * with CONTAINER_OF. A loop whose turns take one event each (the warden's) lets a callback free any
 * object, even the one its own source is in, once it has taken that source out of the loop. With
 * more events in a turn (the agent's) nothing is freed meanwhile: an object that is over takes its
 * sources out and puts itself into the bin, which is emptied between turns. Timers are exact to the
 * microsecond, because a sandbox freezes in less than a millisecond.
 *
 * Linux may have no room to watch a descriptor (fs.epoll.max_user_watches, memory). The loop then
 * asks for its events with poll, some times a hundredth of a second late, until there is room again:
 * nothing ends for it.
 *
 * Idle work must not delay anything else: its callback runs when no event is waiting, and does one
 * small piece. */
#pragma once

#include <sys/epoll.h>

#include "lib/base/list.h"

#define LOOP_BATCH_MAX 64

struct loop_source {
    int fd; /* -1: not in the loop */
    uint32_t events;
    struct list polled; /* linked while epoll has no room for it */
    void (*fn)(struct loop_source *src, uint32_t events);
};

struct loop_timer {
    uint64_t at_ns; /* when it is due, by clock_ns() */
    void (*fn)(struct loop_timer *timer);
    size_t place; /* its index in the heap, from 1; 0: not armed */
};

struct loop {
    int epoll_fd;
    int batch;                /* events of a turn */
    struct loop_timer **heap; /* heap[1] is the first */
    size_t n_timers, cap;
    struct list polled;
    struct list tasks, bin; /* see tasks.h, as the functions: NULL without any */
    void (*run_tasks)(struct loop *l);
    void (*empty_bin)(struct loop *l);
    void (*no_room)(void); /* called when the first source is polled; or NULL */
    bool want_idle;
    void (*idle)(struct loop *l);
};

/* -errno. */
int loop_init(struct loop *l, int batch);
void loop_done(struct loop *l);
/* Waits, runs events or idle work, then tasks and timers that are due, and empties the bin. 0 or
 * -errno. */
int loop_turn(struct loop *l);

/* Adds the source with these events, or changes its events. fd must be open. */
void loop_watch(struct loop *l, struct loop_source *src, int fd, uint32_t events);
/* Takes the source out; call it before fd is closed. Does nothing if the source is not in the
 * loop. */
void loop_unwatch(struct loop *l, struct loop_source *src);
void loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t at_ns);
void loop_timer_cancel(struct loop *l, struct loop_timer *timer);
/* Calls l->idle once when there is nothing else to do. */
void loop_want_idle(struct loop *l);
