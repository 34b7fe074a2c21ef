/* The calls that go beside a process's stream: input, size of the terminal, signals. They go one at
 * a time, so that input keeps its order, and a signal goes before input that waits. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/sandbox.h"
#include "cli/client/web.h"

#define EXEC_INPUT_MAX (64u * 1024)

enum exec_call { CALL_NONE, CALL_SIGNAL, CALL_RESIZE, CALL_INPUT, CALL_CLOSE };

struct exec_control {
    struct sandbox *sandbox;
    CURLM *multi;
    CURL *easy;
    bool pty;
    uint32_t pid; /* 0: not started yet, everything waits */

    /* what is to be said */
    int signal;
    bool resize, close;
    struct strbuf input;
    bool input_over; /* the process takes no more */

    /* what is being said */
    enum exec_call call;
    struct strbuf url, body;
    struct curl_slist *headers;
    struct web_reply reply;
};

void exec_control_init(struct exec_control *c, struct sandbox *sandbox, CURLM *multi, bool pty);
void exec_control_done(struct exec_control *c);
/* Whether there is room for input: then the caller fills c->input, or sets c->close at its end. */
bool exec_control_wants_input(const struct exec_control *c);
/* Begins the next call if it is time for one. */
void exec_control_go_on(struct exec_control *c);
/* libcurl has finished with c->easy. What fails here is no reason to end: the stream tells. */
void exec_control_finished(struct exec_control *c, CURLcode code);
