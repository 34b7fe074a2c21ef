/* A deed: one thing that this server does with a sandbox or a context, from its begin to its end,
 * and everything that is to be told of it.
 *
 * Who does it calls deed_begin and deed_end; the span (telemetry/trace.h), the histogram
 * (telemetry/figures.h), the counter of failures, the event (front/events.h) and the line of the
 * log follow from the table in deed.c. So none of these is forgotten at a place, and no place knows
 * about all of them.
 *
 * A failure has a layer: `client` asked for what cannot be, `code` is what runs inside, `agent` the
 * program that serves it there, `sandbox` its limits, `infrastructure` all that is ours. layer_of
 * tells it from an error. */
#pragma once

#include "front/box.h"
#include "order/log.h"
#include "telemetry/figures.h"
#include "telemetry/trace.h"

enum deed_kind {
    DEED_CREATE,
    DEED_PAUSE,
    DEED_RESUME,
    DEED_FORK,
    DEED_CHECKPOINT,
    DEED_REWIND,
    DEED_SNAPSHOT,
    DEED_DESTROY,
    DEED_CONTEXT_GET,
    DEED_CONTEXT_TERMINATE,
    DEED_CONTEXT_BRANCH,
    DEED_CONTEXT_REWIND,
    DEED_CONTEXT_EXPLORE,
    DEED_TOOL,
    DEED_CELL,
    DEED_PROCESS,
    DEED_AGENT,
    DEED_MAX_
};

struct deed {
    enum deed_kind kind;
    uint64_t began_ns;      /* 0: it is none */
    struct span *span;      /* NULL: not traced */
    struct trace_ref trace; /* for what is done in its course: its own, or its parent's */
    const char *label;      /* of its histogram; a literal */
};

/* parent may be NULL. */
void deed_begin(struct deed *d, enum deed_kind kind, const struct trace_ref *parent);
/* Whose it is: attributes of the span. */
void deed_box(struct deed *d, const struct box *b);
void deed_context(struct deed *d, const char *conversation, const char *path, const char *context);
/* How it came out; r < 0 with e. b NULL: there is no sandbox. about: what the event has to say
 * beyond b; NULL: nothing. Harmless on one that was not begun, or ended before. */
struct event_about;
void deed_end(struct deed *d, struct front *f, const struct box *b, int r, const struct sg_error *e,
              const struct event_about *about);
/* The same without a word: what it was to be did not begin. */
void deed_drop(struct deed *d);

enum log_layer layer_of(const struct sg_error *e);
/* "KEY=VALUE" for the environment of what runs inside: TRACEPARENT; "" if there is no trace. */
#define DEED_ENV_MAX (sizeof "TRACEPARENT=" + TRACEPARENT_LEN)
void deed_environment(const struct trace_ref *r, char ret[DEED_ENV_MAX]);
