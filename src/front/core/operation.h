/* An operation: one thing that this server does with a sandbox or a context, from begin to end, and
 * everything that is told of it.
 *
 * The code that does the work only calls operation_begin and operation_end. The span
 * (front/telemetry/trace.h), the histogram (front/telemetry/figures.h), the counter of failures,
 * the event (front/core/events.h) and the log line follow from the table in operation.c. So no
 * place can forget one of these, and no place has to know them all.
 *
 * A failure has a fault: `client` asked for something impossible, `code` is the user's code inside,
 * `agent` the program that serves it there, `sandbox` its limits, `infrastructure` everything that
 * is ours. fault_of derives the fault from an error. */
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
    uint64_t began_ns;               /* 0: not begun, or over */
    struct span *span;               /* NULL: not traced */
    struct trace_ref trace;          /* the parent for its steps: its own span's, or its parent's */
    const char *conversation, *path; /* from operation_place; or NULL */
    char request[ID_LEN + 1];        /* the request that it was begun for; "" */
    const char *detail;              /* for its event; or NULL */
    const char *label;               /* for its histogram; a literal; NULL: not counted there */
    struct list link;                /* in the list of its sandbox */
};

/* Sets the parent for operations that begin from now on, for code that does several things for one
 * request. Returns the parent before it, for operation_leave: for the rest of a block,
 * AUTO(operation_leave) struct trace_ref before UNUSED = operation_enter(&trace). */
struct trace_ref operation_enter(const struct trace_ref *r);
void operation_leave(const struct trace_ref *before);
struct trace_ref operation_current(void);
/* Sets the id of the request that is being handled now; NULL: none. ret_before, if not NULL, gets
 * the id before it. */
void operation_request(const char *id, char *ret_before);
/* Names the path whose sandbox the very next call makes, since that sandbox does not know its path
 * yet. Both texts must live until the sandbox is made. */
void operation_place(const char *conversation, const char *path);

/* Begins an operation, under the parent that operation_enter has set. */
void operation_begin(struct operation *d, enum operation_kind kind);
/* Names the sandbox: its attributes go into the span. While a cell, a program, a tool or an agent
 * is under way in a sandbox, connections that leave the sandbox are reported in its span. */
void operation_sandbox(struct operation *d, struct sandbox *b);
/* Takes the operation off its sandbox's list. Called before the owner gives up its reference to the
 * sandbox. */
void operation_leave_sandbox(struct operation *d);
/* Names the context. Arguments that are NULL leave the attribute as it is. */
void operation_context(struct operation *d, const char *tenant, const char *conversation,
                       const char *path, const char *context);
/* Ends an operation. r < 0: it failed, with e. b NULL: there is no sandbox. reason: one word for
 * the event, or NULL. Harmless if the operation was not begun or is over. */
void operation_end(struct operation *d, struct front *f, const struct sandbox *b, int r,
                   const struct sg_error *e, const char *reason);
/* Ends an operation without a figure, an event or a failure: only its span remains. */
void operation_drop(struct operation *d);
/* Reports an operation that was already over when the front heard of it: the warden did it. detail:
 * a sentence for the event, or NULL. */
void operation_told(struct front *f, struct sandbox *b, enum operation_kind kind,
                    const char *reason, const char *detail);

/* Reports that a request has changed the sandbox. what: timeout or network. */
void operation_updated(struct front *f, const struct sandbox *b, const char *what);

/* Reports a connection of a sandbox that has ended or was refused: in the span of the operation
 * under way there or, if there is none, in a span of its own after the last one. */
struct egress_news;
void operation_egress(struct front *f, const struct egress_news *n);

/* Adds input or output to the span if traces are to have content (setting trace_content). The text
 * is sanitised here, even if it was before. */
void operation_content(struct operation *d, struct front *f, enum span_key key, const char *text,
                       size_t len);
