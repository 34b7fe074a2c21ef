/* Traces: what was done for whom, as OpenTelemetry's spans.
 *
 *   span_begin ... span_text, span_event, span_step ... span_end
 *        |                                                 |
 *        v                                                 v
 *   NULL if nobody wants traces, or this one      the queue: bounded, oldest out first (counted)
 *                                                          |  a batch, when it is full or old
 *                                                          v
 *                              otlp_json.c | otlp_proto.c --> exporter (exporter.h) --> the
 * collector
 *
 * Nothing here waits, and nothing fails a request: every function takes a NULL span and does
 * nothing then, a queue that is full drops, a collector that is down is tried again with growing
 * pauses while the queue goes on turning over. What was dropped is counted (figures.h).
 *
 * A trace_ref is what travels: 00-<trace>-<span>-<flags> of W3C. It is a value, kept where the work
 * is (a request, a sandbox that is being made). A traceparent that is nonsense counts as none. One
 * that is not sampled (flag 01 is 0) makes no spans, and is passed on as it is.
 *
 * What spans and attributes there are is listed below and nowhere else; docs/observability.md has a
 * table of the same, which a test compares. Values are cut at SPAN_VALUE_MAX, and a span has no
 * more than SPAN_ATTRS_MAX attributes and SPAN_EVENTS_MAX events. Nothing of what users send or
 * programs write is in a span, unless trace_content says so: then input and output are, sanitised
 * by who hands them over.
 *
 * One thread: the front's loop. */
#pragma once

#include "lib/base/err.h"

#define TRACEPARENT_LEN  55
#define SPAN_VALUE_MAX   (32u * 1024) /* of a text */
#define SPAN_ATTRS_MAX   24
#define SPAN_EVENTS_MAX  64
#define SPAN_STEPS_MAX   12
#define TRACE_QUEUE_MAX  8192                /* spans that wait */
#define TRACE_QUEUE_SIZE (16u * 1024 * 1024) /* bytes of them */

struct trace_ref {
    uint8_t trace[16], span[8];
    uint8_t flags;
    bool set;  /* there is one at all */
    bool ours; /* of a span of this server, not of who called */
};

/* False, and *ret is not set: it is none. */
bool trace_parse(const char *traceparent, struct trace_ref *ret);
/* "" if it is not set. */
void trace_format(const struct trace_ref *r, char ret[TRACEPARENT_LEN + 1]);

/* name in the trace. Those below `context.` and `sandbox.` are operations; steps are spans too,
 * children of the one whose steps they are. */
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

/* parent NULL or not set: a trace of its own. NULL: nobody wants it. Begins now. */
struct span *span_begin(enum span_name name, const struct trace_ref *parent);
/* Of this span, for what is done in its course; of NULL: not set. */
struct trace_ref span_ref(const struct span *s);
void span_text(struct span *s, enum span_key key, const char *value); /* NULL: no such attribute */
void span_number(struct span *s, enum span_key key, int64_t value);
void span_flag(struct span *s, enum span_key key, bool value);
/* Something that happened in its course; `name` is a literal. The attributes are those of `detail`,
 * up to four. */
struct span_detail {
    enum span_key key;
    const char *text; /* NULL: number */
    int64_t number;
};
void span_event(struct span *s, const char *name, const struct span_detail *detail, size_t n);
/* A child that has been: both by clock_ns. */
void span_step(struct span *s, enum span_name name, uint64_t begin_ns, uint64_t end_ns);
/* It did not come out well; `type` is one word ("timeout"), the message has no secret in it. */
void span_fail(struct span *s, const char *type, const char *message);
/* Ends now, goes to the queue; *s is NULL afterwards. */
void span_end(struct span **s);
/* As if it had not been. */
void span_drop(struct span **s);

/* ---- where they go --------------------------------------------------------------------------- */

struct settings;
struct exporter;
struct uv_loop_s;

/* Again after each change of the settings (otlp_*, langfuse_*, trace_*). Without a target spans are
 * not made. */
void trace_configure(const struct settings *s, struct exporter *h, struct uv_loop_s *loop);
bool trace_wanted(void);         /* somebody does */
bool trace_content_wanted(void); /* input and output too: setting trace_content */
/* What waits is sent, `done` comes when it has left or a second is over: for a server that ends. */
void trace_flush(void (*done)(void *arg), void *arg);
