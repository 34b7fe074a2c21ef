/* Heartbeats: which of the server's processes works no more, though it has not ended.
 *
 * Once a second each is sent a beat over the socket that it has anyway, and answers it; whatever
 * else it says counts as well.
 *
 *                 it said something                                     `hung` is called:
 *               +------------------+            silent 5 s, and         front, guard, workers,
 *   start ----> v     1 s          |            stopped (T, t)          spawner, broker are killed,
 *            heard ---------> silent 1, 2 ... ----------------> hung    and replaced as when they
 *                                               or silent 15 s          die; a holder is continued,
 *                                                                       since its tenant's
 *                                                                       sandboxes hang on it
 *
 * What is starting may be at work for long, on a database that is brought up to date: it has 120 s.
 *
 * Seconds are counted in looks that were a second apart, not by the clock: a warden that was
 * stopped itself, or a machine that slept, looks once, and holds nothing against anybody. So what
 * is stopped is noticed within 6 seconds, what hangs otherwise (a loop without end, a wait that
 * never ends) within 16.
 *
 * The warden's own heart is systemd's to watch (warden/processes/notify.h). */
#pragma once

#include "wire/warden.h"
#include "warden/reactor.h"

struct server;
struct heartbeat;

struct heartbeat_kind {
    enum process process;
    /* Sends it a word. What it answers must reach heartbeat_heard. */
    void (*beat)(struct heartbeat *b);
    /* why: PROCESS_STOPPED or PROCESS_SILENT. It has been logged and counted. */
    void (*hung)(struct heartbeat *b, enum process_fault why);
};

struct heartbeat {
    struct heartbeat *next, **link; /* link NULL: not watched */
    const struct heartbeat_kind *kind;
    int pid;         /* of a process that is not reaped */
    unsigned silent; /* looks since it was heard */
    bool heard;      /* since the last look */
    bool starting;   /* more patience */
};

struct heartbeats {
    struct heartbeat *first;
    struct timer timer;
};

/* Begins to look. */
void heartbeats_start(struct server *s);
void heartbeats_stop(struct server *s);
/* Watches it, from now on; b is the caller's, and must be stopped before the process is reaped. */
void heartbeat_start(struct server *s, struct heartbeat *b, const struct heartbeat_kind *kind,
                     int pid);
void heartbeat_heard(struct heartbeat *b);
/* Nothing if it is not watched. */
void heartbeat_stop(struct heartbeat *b);
