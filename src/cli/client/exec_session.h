/* A program in a sandbox, connected to us: one stream tells what the program does, and calls beside
 * it carry input and signals. One loop around libcurl runs everything; it also watches our standard
 * input, our outputs and signals.
 *
 *   starting --START--> running --END--> ended     the stream is over and the output written
 *      |                   |
 *      +-------error-------+-----------> failed    refused, connection lost, time over
 *                          +-----------> left      third signal, nobody reads, --detach */
#pragma once

#include "cli/client/payload.h"
#include "cli/client/repl_watch.h"
#include "cli/client/sandbox.h"

#define EXEC_OUTPUT_HIGH (256u * 1024) /* with so much output waiting, the stream waits too */

struct exec_session_options {
    struct payload_start start;
    bool input;          /* forward our standard input */
    bool detach;         /* leave as soon as the program runs */
    uint64_t timeout_ms; /* 0: no limit */
    struct repl_watch *watch;
};

struct exec_result {
    int exit_status;
    uint32_t pid;
    char why[160]; /* what the server says of the program's end besides that; or "" */
};

/* Returns when the program has ended. -ETIMEDOUT when its time is over, -EHOSTUNREACH when the
 * connection is lost. */
int exec_session_run(struct sandbox *sandbox, const struct exec_session_options *o,
                     struct exec_result *ret, struct sg_error *e);
