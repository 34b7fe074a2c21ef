/* The events of a process, as the messages of its stream tell them. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

enum exec_event_kind {
    EXEC_EVENT_OTHER, /* keepalives, and messages of future servers */
    EXEC_EVENT_START,
    EXEC_EVENT_STDOUT, /* also the output of a terminal */
    EXEC_EVENT_STDERR,
    EXEC_EVENT_END,
    EXEC_EVENT_MAX_
};

struct exec_event {
    enum exec_event_kind kind;
    uint32_t pid;    /* EXEC_EVENT_START */
    int exit_status; /* EXEC_EVENT_END: as in a shell, 128 + N for signal N */
    char why[160];   /* ... and what the server says besides; "" if it is only that */
};

/* Parses a message of the stream; bytes of output are appended to *data. */
int exec_event_parse(const char *message, size_t len, struct exec_event *ret, struct strbuf *data,
                     struct sg_error *e);
/* Parses the last message of the stream: 0, or the error in it. */
int exec_event_parse_last(const char *message, size_t len, struct sg_error *e);

/* Turns "signal: killed" and the like into a signal's number; 0 if the text names no signal. */
int exec_event_signal(const char *status);
