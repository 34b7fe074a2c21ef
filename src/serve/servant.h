/* A servant: a process without rights that the warden starts, keeps alive and exchanges messages
 * with. There are two, front and guard.
 *
 *            start                       servant_ready, or READY_NS
 *   absent ---------> starting ------------------------------------> ready
 *     ^                  |  it ends                                    |  it ends
 *     +------------------+---------------------------------------------+
 *
 * When it ends it is started again: at once the first time, then after a pause that grows to a
 * second. One that ends again and again without becoming ready has failed: it is tried seldom then.
 *
 * Each gets everything anew (`greet`). `turn` numbers them: what was meant for one that is gone is
 * dropped. */
#pragma once

#include "base/err.h"
#include "serve/reactor.h"

#define SERVANT_DEATHS_MAX 10
#define SERVANT_FDS_MAX    3

struct server;
struct servant;
struct letter; /* a message that waits for room in the socket */

struct servant_kind {
    const char *name;
    uint64_t memlock;
    const char *(*argument)(const struct server *s); /* NULL: none */
    void (*greet)(struct server *s);
    /* Its socket is readable: take one message. An error: it is ended. */
    int (*take)(struct server *s, struct servant *v);
    void (*ended)(struct server *s); /* unexpectedly */
};

struct servant {
    const struct servant_kind *kind;
    struct server *server;
    const char *program, *dir; /* dir: below the state directory */
    uint32_t uid, gid;
    int pidfd, sock;
    struct event_source process, messages;
    struct timer timer; /* absent: when to start it; starting: when it counts as ready */
    uint32_t turn;
    bool ready, leaving; /* leaving: told to end, and not started again */
    bool refused;        /* it could not be started, and that was said */
    unsigned n_deaths;   /* in a row, without having been ready */
    uint64_t deaths_since_ns, pause_ns;
    struct letter *queue, **queue_end;
};

#define SERVANT_NONE                                                  \
    {                                                                 \
        .pidfd = -1, .sock = -1, .process.fd = -1, .messages.fd = -1, \
    }

/* Ids, program and directory are the caller's to set. */
void servant_init(struct servant *v, struct server *s, const struct servant_kind *kind);
/* If it cannot be started, that is tried again all the same. */
int servant_start(struct servant *v, struct sg_error *e);
void servant_ready(struct servant *v);
/* It ends by itself; it is not started again. */
void servant_leave(struct servant *v);
bool servant_lives(const struct servant *v);
/* It cannot be kept alive. */
bool servant_failed(const struct servant *v);
/* Hangs up, kills it after that time if it has not ended by itself, waits, and forgets it. */
void servant_end(struct servant *v, int grace_ms);

/* Sends, or keeps it until there is room; if it is not there, nothing. The descriptors stay the
 * caller's. */
void servant_tell(struct servant *v, const void *data, size_t len, const int *fds, size_t n_fds);
