#include "front/core/operation.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "front/core/events.h"
#include "front/core/news.h"
#include "front/core/output_filter.h"

#define NO_EVENT  EVENT_KIND_MAX_
#define NO_FIGURE FIGURE_MAX_
/* The position of the trace's id in a traceparent. */
#define TRACE_ID_AT  3
#define TRACE_ID_END 35

static const struct kind {
    enum span_name span;
    enum figure figure; /* a histogram */
    /* the histogram's default label; NULL: only counted if the caller sets one */
    const char *label;
    enum event_kind event;
    bool inside; /* runs code in the sandbox: its connections are reported in its span */
    const char *what;
} kinds[OPERATION_MAX_] = {
    [OPERATION_CREATE] = {SPAN_SANDBOX_CREATE, FIG_CREATE, "template", HAPPENED_SANDBOX_CREATED,
                          false, "creating the sandbox"},
    [OPERATION_PAUSE] = {SPAN_SANDBOX_PAUSE, FIG_PAUSE, "memory", HAPPENED_SANDBOX_PAUSED, false,
                         "pausing the sandbox"},
    [OPERATION_RESUME] = {SPAN_SANDBOX_RESUME, FIG_RECONNECT, "paused", HAPPENED_SANDBOX_RESUMED,
                          false, "resuming the sandbox"},
    [OPERATION_FORK] = {SPAN_SANDBOX_FORK, FIG_FORK, "fork", HAPPENED_SANDBOX_FORKED, false,
                        "forking the sandbox"},
    [OPERATION_CHECKPOINT] = {SPAN_SANDBOX_CHECKPOINT, FIG_FORK, "checkpoint",
                              HAPPENED_SANDBOX_CHECKPOINT, false, "making a checkpoint"},
    [OPERATION_REWIND] = {SPAN_SANDBOX_REWIND, FIG_FORK, "rewind", HAPPENED_SANDBOX_REWOUND, false,
                          "rewinding the sandbox"},
    [OPERATION_SNAPSHOT] = {SPAN_SANDBOX_SNAPSHOT, FIG_FORK, "snapshot", HAPPENED_SANDBOX_SNAPSHOT,
                            false, "making a snapshot"},
    [OPERATION_DESTROY] = {SPAN_SANDBOX_DESTROY, NO_FIGURE, NULL, HAPPENED_SANDBOX_ENDED, false,
                           "ending the sandbox"},
    [OPERATION_CONTEXT_GET] = {SPAN_CONTEXT_GET, FIG_RECONNECT, NULL, NO_EVENT, false,
                               "getting a context"},
    [OPERATION_CONTEXT_TERMINATE] = {SPAN_CONTEXT_TERMINATE, NO_FIGURE, NULL, NO_EVENT, false,
                                     "ending a context"},
    [OPERATION_CONTEXT_BRANCH] = {SPAN_CONTEXT_BRANCH, FIG_FORK, "branch",
                                  HAPPENED_CONTEXT_BRANCHED, false, "branching a path"},
    [OPERATION_CONTEXT_REWIND] = {SPAN_CONTEXT_REWIND, NO_FIGURE, NULL, NO_EVENT, false,
                                  "rewinding a context"},
    [OPERATION_CONTEXT_EXPLORE] = {SPAN_CONTEXT_EXPLORE, FIG_FORK, "explore", NO_EVENT, false,
                                   "exploring"},
    [OPERATION_TOOL] = {SPAN_TOOL_CALL, FIG_EXECUTE, "tool", NO_EVENT, true, "a tool call"},
    [OPERATION_CELL] = {SPAN_CELL, FIG_EXECUTE, "cell", NO_EVENT, true, "a cell"},
    [OPERATION_PROCESS] = {SPAN_PROCESS, FIG_EXECUTE, "process", NO_EVENT, true, "a program"},
    [OPERATION_AGENT] = {SPAN_AGENT, NO_FIGURE, NULL, NO_EVENT, true, "an agent"},
};

/* The trace and the request that work is being done for now. The front has one thread. */
static struct trace_ref current;
static char request[ID_LEN + 1];
static const char *place_conversation, *place_path;

struct trace_ref operation_enter(const struct trace_ref *r)
{
    struct trace_ref before = current;

    current = *r;
    return before;
}

void operation_leave(const struct trace_ref *before)
{
    current = *before;
}

struct trace_ref operation_current(void)
{
    return current;
}

void operation_request(const char *id, char *ret_before)
{
    if (ret_before)
        memcpy(ret_before, request, sizeof(request));
    snprintf(request, sizeof(request), "%s", id ? id : "");
}

void operation_place(const char *conversation, const char *path)
{
    place_conversation = conversation;
    place_path = path;
}

/* ---- whose fault ----------------------------------------------------------------------------- */

static enum fault fault_of(const struct sg_error *e)
{
    static const enum fault by_kind[SG_ERR_MAX_] = {
        [SG_ERR_NONE] = FAULT_INFRASTRUCTURE,  [SG_ERR_INTERNAL] = FAULT_INFRASTRUCTURE,
        [SG_ERR_INVALID] = FAULT_CLIENT,       [SG_ERR_NOT_FOUND] = FAULT_CLIENT,
        [SG_ERR_DENIED] = FAULT_CLIENT,        [SG_ERR_UNSUPPORTED] = FAULT_INFRASTRUCTURE,
        [SG_ERR_LIMIT] = FAULT_INFRASTRUCTURE, [SG_ERR_GONE] = FAULT_SANDBOX};

    if (e->kind == SG_ERR_LIMIT && e->code == -EDQUOT) /* the tenant's own; else this server's */
        return FAULT_CLIENT;
    return e->kind < SG_ERR_MAX_ ? by_kind[e->kind] : FAULT_INFRASTRUCTURE;
}

/* The cause as one word, from a small fixed set. */
static const char *cause_of(const struct sg_error *e)
{
    static const char *const by_kind[SG_ERR_MAX_] = {
        [SG_ERR_NONE] = "unknown",    [SG_ERR_INTERNAL] = "internal",
        [SG_ERR_INVALID] = "invalid", [SG_ERR_NOT_FOUND] = "not_found",
        [SG_ERR_DENIED] = "denied",   [SG_ERR_UNSUPPORTED] = "unsupported",
        [SG_ERR_LIMIT] = "limit",     [SG_ERR_GONE] = "gone"};

    if (e->code == -ETIMEDOUT)
        return "timeout";
    if (e->code == -EDQUOT)
        return "quota";
    if (e->code == -ENOMEM)
        return "memory";
    if (e->code == -EBUSY || e->code == -EALREADY)
        return "busy";
    if (e->code == -ESHUTDOWN)
        return by_kind[SG_ERR_GONE];
    return e->kind < SG_ERR_MAX_ ? by_kind[e->kind] : by_kind[SG_ERR_NONE];
}

/* ---- begin ----------------------------------------------------------------------------------- */

void operation_begin(struct operation *d, enum operation_kind kind)
{
    *d = (struct operation){.kind = kind, .began_ns = clock_ns(), .label = kinds[kind].label};
    if (kind == OPERATION_CREATE) {
        d->conversation = place_conversation;
        d->path = place_path;
        operation_place(NULL, NULL);
    }
    memcpy(d->request, request, sizeof(d->request));
    d->span = span_begin(kinds[kind].span, &current);
    d->trace = d->span ? span_ref(d->span) : current;
    span_text(d->span, KEY_REQUEST, request[0] ? request : NULL);
}

static void list_in(struct operation *d, struct sandbox *b)
{
    if (list_linked(&d->link))
        return;
    list_push(&b->operations, &d->link);
    b->last_trace = d->trace;
}

void operation_leave_sandbox(struct operation *d)
{
    list_remove(&d->link);
}

void operation_context(struct operation *d, const char *tenant, const char *conversation,
                       const char *path, const char *context)
{
    span_text(d->span, KEY_TENANT, tenant);
    span_text(d->span, KEY_CONVERSATION, conversation);
    span_text(d->span, KEY_SESSION, conversation);
    span_text(d->span, KEY_PATH, path);
    span_text(d->span, KEY_CONTEXT, context);
}

/* The user that the client works for, if the metadata name one; otherwise the tenant. */
static const char *user_of(const struct sandbox *b)
{
    static const char *const names[] = {"userId", "user_id", "user"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *v = jr_text_or(b->spec.metadata, names[i], NULL);
        if (v && v[0])
            return v;
    }
    return b->spec.tenant;
}

void operation_sandbox(struct operation *d, struct sandbox *b)
{
    if (d->began_ns == 0)
        return;
    if (kinds[d->kind].inside)
        list_in(d, b);
    if (!d->span)
        return;
    operation_context(d, b->spec.tenant, b->conversation ? b->conversation : d->conversation,
                      b->path ? b->path : d->path, b->spec.context[0] ? b->spec.context : NULL);
    span_text(d->span, KEY_SANDBOX, b->id);
    span_text(d->span, KEY_TEMPLATE, b->spec.alias[0] ? b->spec.alias : b->spec.template_id);
    span_text(d->span, KEY_USER, user_of(b));
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Counts a failure and marks the span. Only failures of the infrastructure are logged here: other
 * errors go to the client, and to the log when the request is over (request_log.h). */
static void tell_failure(const struct operation *d, const struct sandbox *b,
                         const struct sg_error *e)
{
    enum fault fault = fault_of(e);
    char label[64], trace[TRACEPARENT_LEN + 1];

    snprintf(label, sizeof(label), "%s:%s", fault_name(fault), cause_of(e));
    figure_add(FIG_FAILURES, label, 1);
    span_text(d->span, KEY_FAULT, fault_name(fault));
    span_fail(d->span, cause_of(e), e->message);
    if (fault != FAULT_INFRASTRUCTURE)
        return;
    trace_format(&d->trace, trace);
    if (trace[0])
        trace[TRACE_ID_END] = '\0'; /* only the trace's id, as in the log lines of requests */
    log_with(LEVEL_ERROR,
             &(struct log_about){.fault = fault,
                                 .sandbox_id = b ? b->id : NULL,
                                 .tenant = b ? b->spec.tenant : NULL,
                                 .request = d->request,
                                 .trace = trace[0] ? trace + TRACE_ID_AT : NULL},
             "%s failed: %s", kinds[d->kind].what, e->message);
}

static void tell_event(const struct operation *d, struct front *f, const struct sandbox *b,
                       enum event_kind kind, const char *reason)
{
    if (kind == NO_EVENT || !b)
        return;
    event_emit(
        f, kind,
        &(struct event_about){.tenant = b->spec.tenant,
                              .sandbox_id = b->id,
                              .context = b->spec.context[0] ? b->spec.context : NULL,
                              .conversation = b->conversation ? b->conversation : d->conversation,
                              .path = b->path ? b->path : d->path,
                              .reason = reason,
                              .detail = d->detail,
                              .request = d->request[0] ? d->request : NULL,
                              .sandbox = b});
}

void operation_updated(struct front *f, const struct sandbox *b, const char *what)
{
    struct operation d = {.conversation = NULL};

    memcpy(d.request, request, sizeof(d.request));
    tell_event(&d, f, b, HAPPENED_SANDBOX_UPDATED, what);
}

void operation_end(struct operation *d, struct front *f, const struct sandbox *b, int r,
                   const struct sg_error *e, const char *reason)
{
    const struct kind *k = &kinds[d->kind];

    if (d->began_ns == 0)
        return;
    span_text(d->span, KEY_REASON, reason);
    if (d->kind == OPERATION_CREATE) {
        f->creates += r >= 0;
        f->creates_failed += r < 0 && fault_of(e) == FAULT_INFRASTRUCTURE;
    }
    if (r < 0) {
        tell_failure(d, b, e);
    } else {
        if (k->figure != NO_FIGURE && d->label)
            figure_observe(k->figure, d->label, clock_ns() - d->began_ns);
        tell_event(d, f, b, k->event, reason);
        if (d->kind == OPERATION_DESTROY)
            figure_add(FIG_ENDED, reason, 1);
        if (d->kind == OPERATION_DESTROY && strcmp(reason, "expired") == 0)
            figure_add(FIG_REAPED, "sandbox", 1);
    }
    list_remove(&d->link);
    span_end(&d->span);
    d->began_ns = 0;
}

void operation_drop(struct operation *d)
{
    if (d->began_ns == 0)
        return;
    list_remove(&d->link);
    span_end(&d->span);
    d->began_ns = 0;
}

void operation_told(struct front *f, struct sandbox *b, enum operation_kind kind,
                    const char *reason, const char *detail)
{
    struct trace_ref before = operation_enter(&b->last_trace);
    struct operation d;

    operation_begin(&d, kind);
    d.label = NULL; /* how long it took is not known here */
    d.detail = detail;
    operation_sandbox(&d, b);
    operation_end(&d, f, b, 0, NULL, reason);
    operation_leave(&before);
}

/* ---- what goes out, and what goes in --------------------------------------------------------- */

void operation_egress(struct front *f, const struct egress_news *n)
{
    struct sandbox *b = trace_wanted() ? sandbox_find(f, n->id) : NULL;
    const struct span_detail detail[] = {
        {.key = KEY_VERDICT, .text = egress_verdict_name(n->verdict)},
        {.key = KEY_DESTINATION, .text = n->target},
        {.key = KEY_DESTINATION_PORT, .number = n->port},
        {.key = KEY_REASON, .text = n->why}};

    if (!b)
        return;
    struct operation *d = LIST_FIND(struct operation, at, &b->operations, link, at->span);
    if (d) {
        span_event(d->span, "egress", detail, ARRAY_SIZE(detail));
        return;
    }
    /* The cell ended before the guard reported its connection. */
    struct span *s = span_begin(SPAN_EGRESS, &b->last_trace);
    span_text(s, KEY_TENANT, b->spec.tenant);
    span_text(s, KEY_SANDBOX, b->id);
    span_event(s, "egress", detail, ARRAY_SIZE(detail));
    span_end(&s);
}

void operation_content(struct operation *d, struct front *f, enum span_key key, const char *text,
                       size_t len)
{
    AUTO(free_p) char *copy = NULL, *clean = NULL;

    if (!d->span || !trace_content_wanted() || !text)
        return;
    len = len < SPAN_VALUE_MAX ? len : SPAN_VALUE_MAX;
    copy = xcalloc(1, len + 1);
    clean = xcalloc(1, SPAN_VALUE_MAX + 1);
    memcpy(copy, text, len);
    output_filter_stored_message(f, copy, clean, SPAN_VALUE_MAX + 1);
    span_text(d->span, key, clean);
}
