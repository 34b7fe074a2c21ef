/* The server's log as a file: STATE/log/server.log, one JSON object a line. `sandglass logs
 * --server` reads it.
 *
 * The warden opens the file; front and guard get the descriptor when they are started
 * (LOG_FILE_FD), and have no way to open it themselves. All of them append, so the warden can empty
 * the file under them: when it is larger than the setting log_size, the warden copies it to
 * server.log.1, replacing an older copy, and truncates it. A line that is written between the two
 * is lost, which is rare.
 *
 * A server that cannot open the file serves without it. If the copy fails, because the disk is
 * full, the warden gives the copy up and truncates the file all the same, so that the log never
 * fills a disk. */
#pragma once

#include "lib/loop/loop.h"

#define LOGFILE_NAME "server.log"

struct server;

struct logfile {
    struct server *server;
    int dir, fd; /* -1: there is none */
    struct loop_timer timer;
};

#define LOGFILE_NONE        \
    {                       \
        .dir = -1, .fd = -1 \
    }

/* Called when settings and state directory are there. If the file cannot be opened, says so in the
 * log. */
void logfile_open(struct logfile *l, struct server *s);
/* Checks the file's size now. */
void logfile_check(struct logfile *l);
void logfile_close(struct logfile *l);
