/* Reads the lines of a server's log file (warden/logfile.h) one after the other, none twice. Others
 * append to the file, and now and then the server copies it aside and empties it. */
#pragma once

#include <sys/stat.h>

#include "lib/text/strbuf.h"

#define LOG_TAIL_LINE_MAX (64u * 1024) /* Sandglass writes no line that is so long */

struct log_tail {
    int dir, fd;
    off_t at;            /* how far the file has been read */
    struct stat aside;   /* the copy when we last looked; st_ino 0: there was none */
    struct strbuf begun; /* a line whose end has not come yet */
};

typedef void (*log_tail_fn)(void *arg, const char *line, size_t len);

/* dir: the directory of the log. 0 or -errno. */
int log_tail_open(struct log_tail *t, const char *dir);
/* Calls fn for each whole line that is new since the last call; the first call takes all lines
 * there are. 0 or -errno. */
int log_tail_read(struct log_tail *t, log_tail_fn fn, void *arg);
void log_tail_close(struct log_tail *t);
