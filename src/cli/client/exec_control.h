/* The calls that go beside a process's stream: input, terminal size, signals. Only one is made at a
 * time, so that input keeps its order, and a signal goes before input that waits. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/repl_call.h"
#include "cli/client/sandbox.h"

#define EXEC_INPUT_MAX (64u * 1024)

enum exec_call { CALL_SIGNAL, CALL_RESIZE, CALL_INPUT, CALL_CLOSE };

struct exec_control {
    struct sandbox *sandbox;
    bool pty;
    uint32_t pid; /* 0: not started yet, so all calls wait */

    /* calls that wait */
    int signal;
    bool resize, close;
    struct strbuf input;
    bool input_over; /* the process takes no more input */

    struct repl_call call; /* the call that is being made, */
    enum exec_call kind;   /* and which one it is */
};

void exec_control_init(struct exec_control *c, struct sandbox *sandbox, struct repl_watch *watch,
                       bool pty);
void exec_control_done(struct exec_control *c);
/* Whether there is room for input. Then the caller fills c->input, or sets c->close at the end of
 * its input. */
bool exec_control_wants_input(const struct exec_control *c);
/* Begins the next call, unless one is being made. A call that fails does not end the session: the
 * stream tells how the process is. */
void exec_control_go_on(struct exec_control *c);
