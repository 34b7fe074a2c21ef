/* A child program: a process without rights that the warden starts, keeps alive and exchanges
 * messages with. There are the front, its workers, and the guard.
 *
 *            start                       child_program_ready: it says so
 *   absent ---------> starting ------------------------------------> ready
 *     ^                  |  it ends                                    |  it ends
 *     +------------------+---------------------------------------------+
 *
 * A child program that ends is started again: at once if it was ready, else after a pause that
 * doubles from 50 ms to 30 s. If it hangs, it is killed first (warden/processes/heartbeat.h). If it
 * cannot start, it says why (child_program_failing), and the log says so each time. `sandglass
 * doctor` reads the reason from STATE/trouble (warden/processes/trouble.h), which has a line for
 * each child program that is in trouble now.
 *
 * Each new process is told everything anew (`greet`). `turn` numbers the processes: a message for
 * one that is gone is dropped. */
#pragma once

#include "lib/ipc/link.h"
#include "warden/processes/heartbeat.h"

#define CHILD_PROGRAM_FIRST_TRIES 5 /* see child_program_failed */

#define CHILD_PROGRAM_WHY 256

struct server;
struct child_program;

struct child_program_kind {
    const char *name;
    enum process process;
    uint32_t beat;    /* the type of a heartbeat */
    size_t told_size; /* of a message that it gets */
    uint64_t memlock;
    bool has_log;         /* it gets the log file's descriptor */
    const char *argument; /* NULL: none */
    void (*greet)(struct server *s, struct child_program *v);
    uint32_t magic; /* of the messages, in both directions: they begin as struct ipc_head */
    size_t size;    /* of a message that it sends */
    size_t fds_max; /* descriptors with one */
    /* A message has come; descriptors that are not taken out are closed. On an error the process is
     * ended. */
    int (*take)(struct server *s, struct child_program *v, void *m, struct ipc_fds *fds);
    void (*ended)(struct server *s); /* unexpectedly; NULL: nothing to do */
};

struct child_program {
    const struct child_program_kind *kind;
    struct server *server;
    const char *program, *dir; /* dir: below the state directory */
    uint32_t uid, gid;
    int pidfd;
    struct ipc_kind link_kind;
    struct ipc_link link;
    struct loop_source process, messages;
    struct loop_timer timer; /* absent: when to start it */
    struct heartbeat_kind heart_kind;
    struct heartbeat heart;
    uint32_t turn;
    bool ready, leaving; /* leaving: told to end, and not started again */
    bool refused;        /* it could not be started, and the log says so */
    bool was_ready;      /* this process, or one before it */
    bool hung;           /* killed because it hung */
    unsigned n_deaths;   /* in a row, without having been ready */
    uint64_t pause_ns;
    char why[CHILD_PROGRAM_WHY]; /* why it cannot start; "": it did not say */
};

#define CHILD_PROGRAM_NONE                                                 \
    {                                                                      \
        .pidfd = -1, .link.sock = -1, .process.fd = -1, .messages.fd = -1, \
    }

/* The caller sets ids, program and directory. */
void child_program_init(struct child_program *v, struct server *s,
                        const struct child_program_kind *kind);
/* Starts the process. On an error too, it is tried again later. */
int child_program_start(struct child_program *v, struct sg_error *e);
/* The process says that it is ready. True: it is the first of this child program that ever was. */
bool child_program_ready(struct child_program *v);
/* The process says why it is about to end. */
void child_program_failing(struct child_program *v, const char *why);
/* The process ends by itself; it will not be started again. */
void child_program_leave(struct child_program *v);
bool child_program_lives(const struct child_program *v);
/* True if no process of it was ever ready, and CHILD_PROGRAM_FIRST_TRIES were tried; v->why says
 * why. */
bool child_program_failed(const struct child_program *v);
/* Closes the socket, waits until the process ends, kills it after grace_ms, and reaps it. */
void child_program_end(struct child_program *v, int grace_ms);

/* Sends a message, or keeps it until the socket has room. Does nothing if there is no process.
 * Fills in the magic. The descriptors stay the caller's. */
void child_program_tell(struct child_program *v, void *message, size_t len, const int *fds,
                        size_t n_fds);
/* Gives a child program and the front a socket to each other, if both are there. The messages bring
 * them their ends. */
void child_program_meet(struct child_program *v, void *hello, size_t len, enum order_tell to_front);
