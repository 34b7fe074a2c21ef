/* An operation: one thing that this server does with a sandbox or a context, from its begin to its
 * end, and everything that is to be told of it.
 *
 * Who does it calls operation_begin and operation_end; the span (front/telemetry/trace.h), the
 * histogram (front/telemetry/figures.h), the counter of failures, the event (front/core/events.h)
 * and the line of the log follow from the table in operation.c. So none of these is forgotten at a
 * place, and no place knows about all of them.
 *
 * A failure has a fault: `client` asked for what cannot be, `code` is what runs inside, `agent` the
 * program that serves it there, `sandbox` its limits, `infrastructure` all that is ours. fault_of
 * tells it from an error. */
#pragma once

#include "front/core/sandbox.h"
#include "lib/log/log.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/trace.h"

enum operation_kind {
    OPERATION_CREATE,
    OPERATION_PAUSE,
    OPERATION_RESUME,
    OPERATION_FORK,
    OPERATION_CHECKPOINT,
    OPERATION_REWIND,
    OPERATION_SNAPSHOT,
    OPERATION_DESTROY,
    OPERATION_CONTEXT_GET,
    OPERATION_CONTEXT_TERMINATE,
    OPERATION_CONTEXT_BRANCH,
    OPERATION_CONTEXT_REWIND,
    OPERATION_CONTEXT_EXPLORE,
    OPERATION_TOOL,
    OPERATION_CELL,
    OPERATION_PROCESS,
    OPERATION_AGENT,
    OPERATION_MAX_
};

struct operation {
    enum operation_kind kind;
    uint64_t began_ns;               /* 0: it is none */
    struct span *span;               /* NULL: not traced */
    struct trace_ref trace;          /* for what is done in its course: its own, or its parent's */
    const char *conversation, *path; /* operation_place; or NULL */
    char request[ID_LEN + 1];        /* that it was begun for; "" */
    const char *detail;              /* of its event; or NULL */
    const char *label;              /* of its histogram; a literal; NULL: it is not counted there */
    struct operation *next, **link; /* of those under way in a sandbox; link NULL: in none */
};

/* What is begun meanwhile, without a parent of its own, hangs there: for who does several things
 * for one request. Returns what was before, for operation_leave. */
struct trace_ref operation_enter(const struct trace_ref *r);
void operation_leave(const struct trace_ref *before);
struct trace_ref operation_current(void);
/* The id of the request that is being heard now; NULL: none. ret_before: the one before, or NULL.
 */
void operation_request(const char *id, char *ret_before);
/* The path whose sandbox is made next, by the very next call, and does not know it yet; both texts
 * live until it is made. */
void operation_place(const char *conversation, const char *path);

/* Begins now, for whom operation_enter has said. */
void operation_begin(struct operation *d, enum operation_kind kind);
/* Whose it is: attributes of the span. What goes out of the sandbox while a cell, a program, a tool
 * or an agent is under way in it is told there. */
void operation_sandbox(struct operation *d, struct sandbox *b);
/* It is not under way in its sandbox any more: before who does it lets go of that one. */
void operation_leave_sandbox(struct operation *d);
/* Which context; those that are NULL stay as they were. */
void operation_context(struct operation *d, const char *tenant, const char *conversation,
                       const char *path, const char *context);
/* How it came out; r < 0 with e. b NULL: there is no sandbox. reason: one word for the event, or
 * NULL. Harmless on one that was not begun, or has ended. */
void operation_end(struct operation *d, struct front *f, const struct sandbox *b, int r,
                   const struct sg_error *e, const char *reason);
/* It is over without a figure, an event or a failure: its span alone tells of it. */
void operation_drop(struct operation *d);
/* One that was over as soon as it was heard of: the warden's doing. detail: a sentence for the
 * event, or NULL. */
void operation_told(struct front *f, struct sandbox *b, enum operation_kind kind,
                    const char *reason, const char *detail);

/* A connection of a sandbox that has ended or was refused: an event of what is under way in it, or
 * a span of its own behind what was last. */
struct egress_news;
void operation_egress(struct front *f, const struct egress_news *n);

/* What went in, or came out, if content is wanted in traces (setting trace_content): sanitised
 * here, whatever it was before. */
void operation_content(struct operation *d, struct front *f, enum span_key key, const char *text,
                       size_t len);

enum fault fault_of(const struct sg_error *e);
