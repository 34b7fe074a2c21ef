/* The answer to /execute: one JSON object a line. A sandbox's kernel sends it, so it is hostile
 * input: lines are bounded, and only the members that we ask for are looked at. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

/* A result is at most 32 MiB, and JSON's escapes make its text longer. */
#define REPL_LINE_MAX (128u * 1024 * 1024)

enum repl_event_kind {
    REPL_EVENT_OTHER, /* keepalives, and messages of future servers */
    REPL_EVENT_COUNT,
    REPL_EVENT_STDOUT,
    REPL_EVENT_STDERR,
    REPL_EVENT_RESULT,
    REPL_EVENT_ERROR,
    REPL_EVENT_END,
    REPL_EVENT_MAX_
};

struct repl_event {
    enum repl_event_kind kind;
    uint64_t count;       /* REPL_EVENT_COUNT */
    bool main;            /* REPL_EVENT_RESULT: the value of the cell, not something displayed */
    const json_t *object; /* the whole event; valid until the callback returns */
    const char *line;     /* the event's line as it came */
    size_t len;
};

struct repl_text {
    const char *text; /* "" if there is no text; may contain NUL bytes */
    size_t len;
};

/* A member of the event's object, if it is text. */
struct repl_text repl_event_text(const struct repl_event *event, const char *key);

typedef int repl_event_fn(void *arg, const struct repl_event *event, struct sg_error *e);

/* Takes a piece of the answer, cut anywhere, and calls fn for each line that it completes; stops at
 * the first error. -EPROTO if a line is too long or no JSON object. `pending` keeps the beginning of
 * a line: a buffer of REPL_LINE_MAX. */
int repl_events_feed(struct strbuf *pending, const char *data, size_t len, repl_event_fn *fn,
                     void *arg, struct sg_error *e);
