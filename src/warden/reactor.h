/* The warden's event loop: one thread, one epoll, timers in a heap. It is called reactor because
 * the agent has a loop of its own.
 *
 * A source or timer is embedded in the object it belongs to; the callback finds the object with
 * CONTAINER_OF. Each turn takes only one event, so a callback may free any object, even the one its
 * own source is in, once it has taken that source out of the reactor. Timers are exact to the
 * microsecond, because a sandbox freezes in less than a millisecond.
 *
 * Linux may have no room to watch a descriptor (fs.epoll.max_user_watches, memory). The reactor then
 * asks for its events with poll, some times a hundredth of a second late, until there is room again:
 * no sandbox ends for it. Meanwhile nothing new is begun (descriptors.h).
 *
 * Idle work must not delay anything else: its callback runs when no event is waiting, and does one
 * small piece. */
#pragma once

#include <sys/epoll.h>

#include "lib/base/err.h"

struct reactor;

struct event_source {
    int fd;          /* -1: not watched */
    uint32_t polled; /* the events, while epoll has no room for the source; else 0 */
    size_t place;    /* its index among the polled ones */
    void (*fn)(struct event_source *src, uint32_t events);
};

struct timer {
    uint64_t at_ns; /* when it is due, by clock_ns() */
    void (*fn)(struct timer *timer);
    size_t place; /* its index in the heap, from 1; 0: not armed */
};

struct reactor {
    int epoll_fd;
    struct timer **heap; /* heap[1] is the first */
    size_t n_timers, cap;
    struct event_source **polled;
    size_t n_polled, polled_cap, next_polled;
    bool want_idle;
    void (*idle)(struct reactor *re);
};

int reactor_init(struct reactor *re, struct sg_error *e);
void reactor_done(struct reactor *re);
/* Waits, then runs one event, or the timers that are due, or idle work. 0 or -errno. */
int reactor_turn(struct reactor *re);

/* Adds the source with these events, or changes its events. fd must be open. */
void reactor_watch(struct reactor *re, struct event_source *src, int fd, uint32_t events);
/* Removes the source; call it before fd is closed. Does nothing if the source is not watched. */
void reactor_unwatch(struct reactor *re, struct event_source *src);
void timer_set(struct reactor *re, struct timer *timer, uint64_t at_ns);
void timer_cancel(struct reactor *re, struct timer *timer);
/* Calls re->idle once when there is nothing else to do. */
void reactor_want_idle(struct reactor *re);
