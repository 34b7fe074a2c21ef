/* The one place where the prompt waits: for keys, for signals, and for transfers that go on beside.
 *
 * Signals are blocked and read as events, so that nothing has to be safe in a handler, and ^C means
 * what it should at each place. */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"

struct repl_watch {
    CURLM *multi;
    int signal_fd;
    int ending; /* a signal that wants us to end came: stays set */
};

/* What libcurl has finished with; set as its CURLOPT_PRIVATE by repl_watch_add. */
struct repl_transfer {
    void (*done)(struct repl_transfer *t, CURLcode code);
};

struct repl_turn {
    bool input;              /* the descriptor has something, or has been hung up */
    bool interrupt;          /* ^C */
    bool resized, continued; /* SIGWINCH, SIGCONT */
};

int repl_watch_open(struct repl_watch *w, struct sg_error *e);
void repl_watch_close(struct repl_watch *w);
void repl_watch_add(struct repl_watch *w, CURL *easy, struct repl_transfer *t);

/* Lets transfers go on and waits for something, at most so long. fd: -1 for none. */
struct repl_turn repl_watch_turn(struct repl_watch *w, int fd, int timeout_ms);
