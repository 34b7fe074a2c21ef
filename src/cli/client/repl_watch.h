/* The one place where the prompt, exec and mcp wait: for input, for signals, and for transfers.
 *
 * Signals are blocked and read as events, so that no code has to be safe in a signal handler, and
 * each caller decides what ^C means. */
#pragma once

#include <curl/curl.h>
#include <poll.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "cli/client/web.h"

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

#define REPL_SIGNALS_MAX 8
#define REPL_FDS_MAX     4

struct repl_turn {
    bool input;                    /* the descriptor has input, or was hung up */
    bool interrupt;                /* ^C */
    bool resized, continued;       /* SIGWINCH, SIGCONT */
    int signals[REPL_SIGNALS_MAX]; /* the others and SIGINT, in their order */
    size_t n_signals;
};

int repl_watch_open(struct repl_watch *w, struct sg_error *e);
void repl_watch_close(struct repl_watch *w);
void repl_watch_add(struct repl_watch *w, CURL *easy, struct repl_transfer *t);

/* Runs transfers, as far as they go without waiting. True if one has ended. */
bool repl_watch_run(struct repl_watch *w);
/* Waits at most so long for an event: for a transfer to go on, for a signal, or for one of at most
 * REPL_FDS_MAX descriptors, whose revents it sets. */
struct repl_turn repl_watch_wait(struct repl_watch *w, struct pollfd *fds, size_t n,
                                 int timeout_ms);
/* Both, one after the other. fd: the input to watch, -1 for none. */
struct repl_turn repl_watch_turn(struct repl_watch *w, int fd, int timeout_ms);

/* One HTTP call in the background: nobody waits for it. */
struct repl_call {
    struct repl_transfer transfer;
    struct repl_watch *watch;
    CURL *easy;
    bool busy;
    struct strbuf url, body;
    struct curl_slist *headers;
    struct web_reply reply;
    /* Called at the end, if not NULL, with the result and the answer. */
    void (*finished)(void *arg, CURLcode code, const struct web_reply *reply);
    void *arg;
};

void repl_call_init(struct repl_call *c, struct repl_watch *watch);
void repl_call_done(struct repl_call *c);
/* Begins a POST; the call must not be busy. The call takes over the buffers and headers. */
void repl_call_post(struct repl_call *c, struct strbuf *url, struct strbuf *body,
                    struct curl_slist **headers);
