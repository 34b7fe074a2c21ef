/* Lines of a server's log file (warden/logfile.h), which others append to, and which now and then
 * is copied aside and emptied: one after the other, none twice. */
#pragma once

#include <sys/stat.h>

#include "lib/text/strbuf.h"

#define LOG_TAIL_LINE_MAX (64u * 1024) /* none of ours is that long */

struct log_tail {
    int dir, fd;
    off_t at;            /* read up to there */
    struct stat aside;   /* the copy as it was last seen; st_ino 0: there was none */
    struct strbuf begun; /* a line whose end has not come */
};

typedef void (*log_tail_fn)(void *arg, const char *line, size_t len);

/* dir: that of the log. -errno. */
int log_tail_open(struct log_tail *t, const char *dir);
/* Calls fn for each whole line that has come since; first for all that there are. -errno. */
int log_tail_read(struct log_tail *t, log_tail_fn fn, void *arg);
void log_tail_close(struct log_tail *t);
