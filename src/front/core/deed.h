/* A deed: one thing that this server does with a sandbox or a context, from its begin to its end,
 * and everything that is to be told of it.
 *
 * Who does it calls deed_begin and deed_end; the span (front/telemetry/trace.h), the histogram
 * (front/telemetry/figures.h), the counter of failures, the event (front/core/events.h) and the
 * line of the log follow from the table in deed.c. So none of these is forgotten at a place, and no
 * place knows about all of them.
 *
 * A failure has a layer: `client` asked for what cannot be, `code` is what runs inside, `agent` the
 * program that serves it there, `sandbox` its limits, `infrastructure` all that is ours. layer_of
 * tells it from an error. */
#pragma once

#include "front/core/box.h"
#include "lib/log/log.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/trace.h"

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
    uint64_t began_ns;               /* 0: it is none */
    struct span *span;               /* NULL: not traced */
    struct trace_ref trace;          /* for what is done in its course: its own, or its parent's */
    const char *conversation, *path; /* deed_place; or NULL */
    char request[ID_LEN + 1];        /* that it was begun for; "" */
    const char *detail;              /* of its event; or NULL */
    const char *label;         /* of its histogram; a literal; NULL: it is not counted there */
    struct deed *next, **link; /* of those under way in a box; link NULL: in none */
};

/* What is begun meanwhile, without a parent of its own, hangs there: for who does several things
 * for one request. Returns what was before, for deed_leave. */
struct trace_ref deed_enter(const struct trace_ref *r);
void deed_leave(const struct trace_ref *before);
struct trace_ref deed_current(void);
/* The id of the request that is being heard now; NULL: none. ret_before: the one before, or NULL.
 */
void deed_request(const char *id, char *ret_before);
/* The path whose sandbox is made next, by the very next call, and does not know it yet; both texts
 * live until it is made. */
void deed_place(const char *conversation, const char *path);

/* Begins now, for whom deed_enter has said. */
void deed_begin(struct deed *d, enum deed_kind kind);
/* Whose it is: attributes of the span. What goes out of the box while a cell, a program, a tool or
 * an agent is under way in it is told there. */
void deed_box(struct deed *d, struct box *b);
/* It is not under way in its box any more: before who does it lets go of that one. */
void deed_leave_box(struct deed *d);
/* Which context; those that are NULL stay as they were. */
void deed_context(struct deed *d, const char *tenant, const char *conversation, const char *path,
                  const char *context);
/* How it came out; r < 0 with e. b NULL: there is no sandbox. reason: one word for the event, or
 * NULL. Harmless on one that was not begun, or has ended. */
void deed_end(struct deed *d, struct front *f, const struct box *b, int r, const struct sg_error *e,
              const char *reason);
/* It is over without a figure, an event or a failure: its span alone tells of it. */
void deed_drop(struct deed *d);
/* One that was over as soon as it was heard of: the warden's doing. detail: a sentence for the
 * event, or NULL. */
void deed_told(struct front *f, struct box *b, enum deed_kind kind, const char *reason,
               const char *detail);

/* A connection of a sandbox that has ended or was refused: an event of what is under way in it, or
 * a span of its own behind what was last. */
struct egress_news;
void deed_egress(struct front *f, const struct egress_news *n);

/* What went in, or came out, if content is wanted in traces (setting trace_content): sanitised
 * here, whatever it was before. */
void deed_content(struct deed *d, struct front *f, enum span_key key, const char *text, size_t len);

enum log_layer layer_of(const struct sg_error *e);
