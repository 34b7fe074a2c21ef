/* The server's event loop, called so because the agent has a loop of its own: one thread, one
 * epoll, timers in a heap.
 *
 * A source or timer is embedded in the object it belongs to; the callback finds the object with
 * CONTAINER_OF. Each turn takes one event only, so a callback may free any object, its own too,
 * once that is out of it. Timers are exact to the microsecond: waiting for a sandbox to
 * freeze takes less than a millisecond.
 *
 * Idle work is what must not delay anything else: its callback runs when nothing is waiting, and
 * does a small piece. */
#pragma once

#include <sys/epoll.h>

#include "lib/base/err.h"

struct reactor;

struct event_source {
    int fd; /* -1: not in */
    void (*fn)(struct event_source *src, uint32_t events);
};

struct timer {
    uint64_t at_ns; /* clock_ns() */
    void (*fn)(struct timer *timer);
    size_t place; /* in the heap, from 1; 0: not armed */
};

struct reactor {
    int epoll_fd;
    struct timer **heap; /* from 1 */
    size_t n_timers, cap;
    bool want_idle;
    void (*idle)(struct reactor *re);
};

int reactor_init(struct reactor *re, struct sg_error *e);
void reactor_done(struct reactor *re);
/* Waits, then runs an event, what timers are due, or idle work. 0 or -errno. */
int reactor_turn(struct reactor *re);

/* Adds the source with these events, or changes its events. A descriptor must be valid. */
void reactor_watch(struct reactor *re, struct event_source *src, int fd, uint32_t events);
/* Takes it out, before the descriptor is closed. Does nothing if it is not in. */
void reactor_unwatch(struct reactor *re, struct event_source *src);
void timer_set(struct reactor *re, struct timer *timer, uint64_t at_ns);
void timer_cancel(struct reactor *re, struct timer *timer);
/* Calls re->idle once when there is nothing else to do. */
void reactor_want_idle(struct reactor *re);
