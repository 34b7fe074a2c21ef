/* Heartbeats: find the server's processes that work no more, though they have not ended.
 *
 * Once a second the warden sends each process a beat over the socket that it has anyway, and the
 * process answers. Any other message of the process counts as an answer too.
 *
 *                 it said something                                     `hung` is called:
 *               +------------------+            silent 5 s, and         front, guard, workers,
 *   start ----> v     1 s          |            stopped (T, t)          spawner, broker are killed,
 *            heard ---------> silent 1, 2 ... ----------------> hung    and replaced as when they
 *                                               or silent 15 s          die; a holder is continued,
 *                                                                       since its tenant's
 *                                                                       sandboxes hang on it
 *
 * A process that is starting has 120 s: it may be busy for long, bringing a database up to date.
 *
 * Seconds are counted in looks a second apart, not by the clock. So a warden that was stopped
 * itself, or a machine that slept, makes one look only, and blames nobody. A stopped process is
 * noticed within 6 seconds; one that hangs otherwise (in an endless loop or an endless wait) within
 * 16.
 *
 * systemd watches the warden itself (warden/processes/notify.h). */
#pragma once

#include "lib/base/list.h"
#include "wire/warden.h"
#include "lib/loop/loop.h"

struct server;
struct heartbeat;

struct heartbeat_kind {
    enum process process;
    /* Sends the process a beat. Its answer must reach heartbeat_heard. */
    void (*beat)(struct heartbeat *b);
    /* why: PROCESS_STOPPED or PROCESS_SILENT, which is already logged and counted. */
    void (*hung)(struct heartbeat *b, enum process_fault why);
};

struct heartbeat {
    struct list link; /* in heartbeats.all while it is watched */
    const struct heartbeat_kind *kind;
    int pid;         /* of a process that has not been reaped */
    unsigned silent; /* looks since it was heard */
    bool heard;      /* since the last look */
    bool starting;   /* it gets more time */
};

struct heartbeats {
    struct list all;
    struct loop_timer timer;
};

/* Begins to send beats. */
void heartbeats_start(struct server *s);
void heartbeats_stop(struct server *s);
/* Begins to watch a process. b stays the caller's; call heartbeat_stop before the process is
 * reaped. */
void heartbeat_start(struct server *s, struct heartbeat *b, const struct heartbeat_kind *kind,
                     int pid);
void heartbeat_heard(struct heartbeat *b);
/* Does nothing if it is not watched. */
void heartbeat_stop(struct heartbeat *b);
