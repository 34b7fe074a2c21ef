/* Traces: what the server did for whom, as OpenTelemetry's spans.
 *
 *   span_begin ... span_text, span_event, span_step ... span_end
 *       |                                                  |  encoded: otlp_json.c | otlp_proto.c
 *       v                                                  v
 *   NULL if nobody wants traces,       the queue: bounded, oldest out first (counted)
 *   or not this one                                        |  a batch, when it is full or old
 *                                                          v
 *                                      exporter (exporter.h)  -->  the collector
 *
 * Nothing here waits, and nothing makes a request fail. Every function does nothing for a NULL
 * span. A full queue drops spans. A collector that is down is tried again with growing pauses,
 * while new spans push the oldest out of the queue. Dropped spans are counted (figures.h).
 *
 * A trace_ref names a span across programs: 00-<trace>-<span>-<flags> of W3C. It is a value, kept
 * where the work is (in a request, in a sandbox that is being made). A malformed traceparent counts
 * as none. A trace that is not sampled (flag 01 is 0) gets no spans, and its trace_ref is passed on
 * unchanged.
 *
 * All spans and attributes are listed below and nowhere else; docs/observability.md has a table of
 * them, which a test compares. Values are cut at SPAN_VALUE_MAX, and a span has at most
 * SPAN_ATTRS_MAX attributes and SPAN_EVENTS_MAX events. A span has nothing that users send or
 * programs write, unless trace_content is set: then it has input and output, sanitised by the
 * caller.
 *
 * One thread uses this: the front's loop. */
#pragma once

#include "lib/base/err.h"

#define TRACEPARENT_LEN  55
#define SPAN_VALUE_MAX   (32u * 1024) /* of a text */
#define SPAN_ATTRS_MAX   24
#define SPAN_EVENTS_MAX  64
#define SPAN_STEPS_MAX   12
#define TRACE_QUEUE_MAX  8192                /* spans that wait to be sent */
#define TRACE_QUEUE_SIZE (16u * 1024 * 1024) /* bytes of those spans */

struct trace_ref {
    uint8_t trace[16], span[8];
    uint8_t flags;
    bool set;  /* false: there is no span */
    bool ours; /* the span is this server's, not the caller's */
};

/* False: the text is no traceparent, and *ret is not set. */
bool trace_parse(const char *traceparent, struct trace_ref *ret);
/* Writes a traceparent; "" if r is not set. */
void trace_format(const struct trace_ref *r, char ret[TRACEPARENT_LEN + 1]);

/* The names of spans. Those that begin with `context.` and `sandbox.` are operations. Steps are
 * spans too, children of the span that they are steps of. */
#define SPAN_NAMES(X)                           \
    X(CONTEXT_GET, "context.get_or_create")     \
    X(CONTEXT_TERMINATE, "context.terminate")   \
    X(CONTEXT_BRANCH, "context.branch")         \
    X(CONTEXT_REWIND, "context.rewind")         \
    X(CONTEXT_EXPLORE, "context.explore")       \
    X(SANDBOX_CREATE, "sandbox.create")         \
    X(SANDBOX_PAUSE, "sandbox.pause")           \
    X(SANDBOX_RESUME, "sandbox.resume")         \
    X(SANDBOX_FORK, "sandbox.fork")             \
    X(SANDBOX_CHECKPOINT, "sandbox.checkpoint") \
    X(SANDBOX_REWIND, "sandbox.rewind")         \
    X(SANDBOX_SNAPSHOT, "sandbox.snapshot")     \
    X(SANDBOX_DESTROY, "sandbox.destroy")       \
    X(STEP_POLICY, "sandbox.create.policy")     \
    X(STEP_ORDER, "sandbox.create.order")       \
    X(STEP_TAKE, "sandbox.create.take")         \
    X(STEP_FILES, "sandbox.create.files")       \
    X(STEP_NETWORK, "sandbox.create.network")   \
    X(STEP_KERNELS, "sandbox.create.kernels")   \
    X(STEP_READY, "sandbox.create.ready")       \
    X(TOOL_CALL, "tool.call")                   \
    X(CELL, "cell.execute")                     \
    X(PROCESS, "process.start")                 \
    X(AGENT, "agent.session")                   \
    X(EGRESS, "egress")

#define SPAN_NAME_ENUM(id, name) SPAN_##id,
enum span_name { SPAN_NAMES(SPAN_NAME_ENUM) SPAN_NAME_MAX_ };
const char *span_name_text(enum span_name name);

/* Attributes. Langfuse shows session, user, input and output under these names; where it is a
 * target spans have one more, langfuse.observation.type: tool, agent or span. */
#define SPAN_KEYS(X)                          \
    X(TENANT, "sandglass.tenant")             \
    X(CONVERSATION, "sandglass.conversation") \
    X(PATH, "sandglass.path")                 \
    X(SANDBOX, "sandglass.sandbox")           \
    X(CONTEXT, "sandglass.context")           \
    X(TOOL, "sandglass.tool")                 \
    X(LANGUAGE, "sandglass.language")         \
    X(TEMPLATE, "sandglass.template")         \
    X(FORCED, "sandglass.forced")             \
    X(CREATED, "sandglass.created")           \
    X(POOLED, "sandglass.pooled")             \
    X(COUNT, "sandglass.count")               \
    X(REASON, "sandglass.reason")             \
    X(FAULT, "sandglass.layer")               \
    X(REQUEST, "sandglass.request")           \
    X(EXIT_CODE, "process.exit.code")         \
    X(ERROR_TYPE, "error.type")               \
    X(DESTINATION, "destination.address")     \
    X(DESTINATION_PORT, "destination.port")   \
    X(VERDICT, "sandglass.verdict")           \
    X(SESSION, "session.id")                  \
    X(USER, "user.id")                        \
    X(INPUT, "langfuse.observation.input")    \
    X(OUTPUT, "langfuse.observation.output")

#define SPAN_KEY_ENUM(id, name) KEY_##id,
enum span_key { SPAN_KEYS(SPAN_KEY_ENUM) KEY_MAX_ };
const char *span_key_text(enum span_key key);

struct span;

/* Begins a span now. parent NULL or not set: the span begins a trace of its own. Returns NULL if
 * nobody wants the span. */
struct span *span_begin(enum span_name name, const struct trace_ref *parent);
/* The reference of this span, for work that is done in its course; not set for a NULL span. */
struct trace_ref span_ref(const struct span *s);
void span_text(struct span *s, enum span_key key, const char *value); /* NULL: no such attribute */
void span_number(struct span *s, enum span_key key, int64_t value);
void span_flag(struct span *s, enum span_key key, bool value);
/* Adds an event that happened in the span's course; `name` is a literal. The event's attributes are
 * those of `detail`, up to four. */
struct span_detail {
    enum span_key key;
    const char *text; /* NULL: the value is `number` */
    int64_t number;
};
void span_event(struct span *s, const char *name, const struct span_detail *detail, size_t n);
/* Adds a step that is over, as a child span; both times are of clock_ns. */
void span_step(struct span *s, enum span_name name, uint64_t begin_ns, uint64_t end_ns);
/* Marks the span as failed; `type` is one word ("timeout"), and the message has no secret in it. */
void span_fail(struct span *s, const char *type, const char *message);
/* Ends the span now and queues it; *s is NULL afterwards. */
void span_end(struct span **s);
/* Drops the span as if it had never begun. */
void span_drop(struct span **s);

/* ---- the targets ----------------------------------------------------------------------------- */

struct settings;
struct exporter;
struct uv_loop_s;

/* Called again after each change of the settings (otlp_*, langfuse_*, trace_*). Without a target no
 * spans are made. */
void trace_configure(const struct settings *s, struct exporter *h, struct uv_loop_s *loop);
bool trace_wanted(void);         /* the settings name a target */
bool trace_content_wanted(void); /* input and output too: the setting trace_content */
/* Sends the spans that wait, for a server that ends. Calls `done` when they are sent, or after a
 * second. */
void trace_flush(void (*done)(void *arg), void *arg);
