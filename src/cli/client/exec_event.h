/* What a process does, as the messages of its stream tell it. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

enum exec_event_kind {
    EXEC_EVENT_OTHER, /* keepalives, and what future servers may say */
    EXEC_EVENT_START,
    EXEC_EVENT_STDOUT, /* and what comes from a terminal */
    EXEC_EVENT_STDERR,
    EXEC_EVENT_END,
    EXEC_EVENT_MAX_
};

struct exec_event {
    enum exec_event_kind kind;
    uint32_t pid;    /* EXEC_EVENT_START */
    int exit_status; /* EXEC_EVENT_END: as a shell would have it, 128 + the signal for one */
};

/* A message of the stream; the bytes of output are appended to *data. */
int exec_event_parse(const char *message, size_t len, struct exec_event *ret, struct strbuf *data,
                     struct sg_error *e);
/* The last message of the stream: 0, or the error in it. */
int exec_event_parse_last(const char *message, size_t len, struct sg_error *e);

/* "signal: killed" and the like to a signal's number; 0 if it is none. */
int exec_event_signal(const char *status);
