/* A child program: a process without rights that the warden starts, keeps alive and exchanges
 * messages with: the front, its workers, and the guard.
 *
 *            start                       child_program_ready: it says so
 *   absent ---------> starting ------------------------------------> ready
 *     ^                  |  it ends                                    |  it ends
 *     +------------------+---------------------------------------------+
 *
 * When it ends it is started again: at once if it was ready, else after a pause that doubles from
 * 50 ms to 30 s. One that hangs is killed first (warden/processes/heartbeat.h). One that cannot
 * start says why (child_program_failing), and so does the log each time; `sandglass doctor` reads
 * it from a file of the state directory, CHILD_PROGRAM_TROUBLE, which has a line for each that is
 * in trouble now.
 *
 * Each gets everything anew (`greet`). `turn` numbers them: what was meant for one that is gone is
 * dropped. */
#pragma once

#include "lib/base/err.h"
#include "warden/processes/heartbeat.h"

#define CHILD_PROGRAM_FIRST_TRIES 5 /* of one that never was ready: see child_program_failed */
#define CHILD_PROGRAM_FDS_MAX     3

#define CHILD_PROGRAM_WHY 256

struct server;
struct child_program;
struct letter; /* a message that waits for room in the socket */

struct child_program_kind {
    const char *name;
    struct heartbeat_kind heart;
    uint64_t memlock;
    bool has_log;                                    /* it gets the file that the log is in */
    const char *(*argument)(const struct server *s); /* NULL: none */
    void (*greet)(struct server *s);
    /* Its socket is readable: take one message. An error: it is ended. */
    int (*take)(struct server *s, struct child_program *v);
    void (*ended)(struct server *s); /* unexpectedly */
};

struct child_program {
    const struct child_program_kind *kind;
    struct server *server;
    const char *program, *dir; /* dir: below the state directory */
    uint32_t uid, gid;
    int pidfd, sock;
    struct event_source process, messages;
    struct timer timer; /* absent: when to start it */
    struct heartbeat heart;
    uint32_t turn;
    bool ready, leaving; /* leaving: told to end, and not started again */
    bool refused;        /* it could not be started, and that was said */
    bool was_ready;      /* this one, or one before it */
    bool hung;           /* it has been killed for that */
    unsigned n_deaths;   /* in a row, without having been ready */
    uint64_t pause_ns;
    char why[CHILD_PROGRAM_WHY]; /* it cannot start; "": it did not say */
    struct letter *queue, **queue_end;
};

#define CHILD_PROGRAM_NONE                                            \
    {                                                                 \
        .pidfd = -1, .sock = -1, .process.fd = -1, .messages.fd = -1, \
    }

/* Ids, program and directory are the caller's to set. */
void child_program_init(struct child_program *v, struct server *s,
                        const struct child_program_kind *kind);
/* If it cannot be started, that is tried again all the same. */
int child_program_start(struct child_program *v, struct sg_error *e);
/* True: the first of all that was. */
bool child_program_ready(struct child_program *v);
/* It is about to end, and says why. */
void child_program_failing(struct child_program *v, const char *why);
/* For child_program_kind: what to do with one that hangs. */
void child_program_kill(struct heartbeat *b, enum process_fault why);
/* It ends by itself; it is not started again. */
void child_program_leave(struct child_program *v);
bool child_program_lives(const struct child_program *v);
/* None of them was ever ready, and enough were tried: v->why. */
bool child_program_failed(const struct child_program *v);
/* Hangs up, kills it after that time if it has not ended by itself, waits, and forgets it. */
void child_program_end(struct child_program *v, int grace_ms);

/* Sends, or keeps it until there is room; if it is not there, nothing. The descriptors stay the
 * caller's. */
void child_program_tell(struct child_program *v, const void *data, size_t len, const int *fds,
                        size_t n_fds);
