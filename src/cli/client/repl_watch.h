/* The one place where the prompt waits: for keys, for signals, and for transfers in the background.
 *
 * Signals are blocked and read as events, so that no code has to be safe in a signal handler, and
 * each caller decides what ^C means. */
#pragma once

#include <curl/curl.h>

#include "lib/base/err.h"

struct repl_watch {
    CURLM *multi;
    int signal_fd;
    int ending; /* a signal that asked us to end; stays set */
};

/* A transfer in the background, with a function to call at its end. repl_watch_add sets it as the
 * CURLOPT_PRIVATE of its handle. */
struct repl_transfer {
    void (*done)(struct repl_transfer *t, CURLcode code);
};

struct repl_turn {
    bool input;              /* the descriptor has input, or was hung up */
    bool interrupt;          /* ^C */
    bool resized, continued; /* SIGWINCH, SIGCONT */
};

int repl_watch_open(struct repl_watch *w, struct sg_error *e);
void repl_watch_close(struct repl_watch *w);
void repl_watch_add(struct repl_watch *w, CURL *easy, struct repl_transfer *t);

/* Runs transfers and waits for an event, at most so long. fd: the input to watch, -1 for none. */
struct repl_turn repl_watch_turn(struct repl_watch *w, int fd, int timeout_ms);
