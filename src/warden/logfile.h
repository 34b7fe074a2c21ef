/* The server's log as a file: STATE/log/server.log, JSON, a line each. `sandglass logs --server`
 * reads it.
 *
 * The warden opens it; front and guard get the descriptor when they are started (LOG_FILE_FD), and
 * have no way to open it. All append, so that it can be emptied under them: when it has become
 * larger than the setting log_size, the warden copies it to server.log.1, in the place of an older
 * one, and cuts it off. What is written in between is lost: a line, seldom.
 *
 * A server without it serves. A copy that fails, because the disk is full, is given up; the file is
 * cut off all the same, so that the log never fills a disk. */
#pragma once

#include "warden/reactor.h"

#define LOGFILE_NAME "server.log"

struct server;

struct logfile {
    struct server *server;
    int dir, fd; /* -1: there is none */
    struct timer timer;
};

#define LOGFILE_NONE        \
    {                       \
        .dir = -1, .fd = -1 \
    }

/* Settings and state directory are there. Says in the log what cannot be. */
void logfile_open(struct logfile *l, struct server *s);
/* Looks at its size now. */
void logfile_check(struct logfile *l);
void logfile_close(struct logfile *l);
