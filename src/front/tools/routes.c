/* POST /v1/tools/NAME: a run for a client of HTTP.
 *
 * A JSON client gets one answer at the end. A stream is server-sent events: each line of the run as
 * `event: <its type>` and `data: <the line>`, at last `event: done` with the answer; while nothing
 * else is written, a comment every five seconds. The stream starts with the first of these, so a
 * run that is refused at once has its own status either way. When the client goes away, the cell is
 * interrupted. */
#include <stdio.h>
#include <string.h>

#include "lib/uv/handle.h"
#include "front/e2b/request.h"
#include "front/core/output_filter.h"
#include "front/tools/call.h"
#include "front/tools/routes.h"
#include "front/tools/outlet.h"

#define HEARTBEAT_MS 5000
#define TYPE_MAX     64

struct tool_http {
    struct http_req *req;
    struct e2b_req *q;
    enum tool tool;
    struct tool_run *run; /* NULL when the run is over */
    bool stream, started;
    struct outlet outlet;
    uv_timer_t *timer;
    uint64_t wrote_ms;
};

static void on_gone(void *work)
{
    struct tool_http *h = work;

    if (h->run)
        tool_run_cancel(h->run);
    alarm_drop(&h->timer);
    outlet_done(&h->outlet);
    free(h);
}

static void on_writable(struct http_req *req)
{
    struct tool_http *h = e2b_of(req)->work;

    if (outlet_pump(&h->outlet) && h->run)
        tool_run_resume(h->run);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void start_stream(struct tool_http *h)
{
    if (h->started)
        return;
    h->started = true;
    http_add_header(h->req, "Cache-Control", "no-store");
    http_add_header(h->req, "X-Accel-Buffering", "no"); /* proxies must not buffer */
    http_start(h->req, 200, "text/event-stream", -1);
}

static bool write_event(struct tool_http *h, const char *type, size_t type_len, const char *data,
                        size_t len)
{
    char head[TYPE_MAX + 32];

    start_stream(h);
    h->wrote_ms = uv_now(h->q->front->loop);
    int n = snprintf(head, sizeof(head), "event: %.*s\ndata: ", (int)type_len, type);
    outlet_write(&h->outlet, head, (size_t)n);
    outlet_write(&h->outlet, data, len);
    return outlet_write(&h->outlet, "\n\n", 2);
}

/* Sends a line of a run as an event. We write these lines ourselves: each begins with its type. */
static bool on_line(void *arg, const char *line, size_t len)
{
    static const char head[] = "{\"type\":\"";
    const char *type = line + sizeof(head) - 1, *end = NULL;

    if (len > sizeof(head) && memcmp(line, head, sizeof(head) - 1) == 0)
        end = memchr(type, '"', len - sizeof(head) + 1);
    if (!end || end - type > TYPE_MAX)
        return true;
    return write_event(arg, type, (size_t)(end - type), line, len);
}

static void on_timer(uv_timer_t *t)
{
    struct tool_http *h = t->data;

    if (uv_now(t->loop) - h->wrote_ms < HEARTBEAT_MS || h->outlet.choked)
        return;
    start_stream(h);
    h->wrote_ms = uv_now(t->loop);
    outlet_write(&h->outlet, ": \n\n", 4);
}

static void start_timer(struct tool_http *h)
{
    h->timer = alarm_new(h->q->front->loop, h);
    h->wrote_ms = uv_now(h->q->front->loop);
    uv_timer_start(h->timer, on_timer, HEARTBEAT_MS, HEARTBEAT_MS / 5);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void answer_json(struct tool_http *h, const struct tool_result *r, const struct strbuf *body)
{
    if (r->elsewhere)
        reply_add_location(h->req, r->elsewhere);
    if (r->status == 503)
        http_add_header(h->req, "Retry-After", "1");
    http_start(h->req, r->status, "application/json", (int64_t)body->len);
    outlet_write(&h->outlet, body->buf, body->len);
    outlet_finish(&h->outlet);
}

static struct strbuf *answer_new(enum tool t, const struct tool_result *r, const char *request)
{
    struct strbuf *body = xcalloc(1, sizeof(*body));
    struct json j = {.out = body};

    strbuf_init(body, TOOL_ANSWER_MAX);
    tool_result_json(&j, t, r, request);
    return body;
}

static void *make(unsigned form UNUSED, enum tool t, const struct tool_result *r)
{
    return answer_new(t, r, NULL);
}

static void drop(void *made)
{
    strbuf_done(made);
    free(made);
}

static void on_done(void *arg, const struct tool_result *r)
{
    struct tool_http *h = arg;
    struct strbuf *body = r->made ? r->made : answer_new(h->tool, r, h->req->id);

    h->run = NULL;
    alarm_drop(&h->timer);
    if (r->status != 200)
        http_failed(h->req, r->status, r->refusal.message);
    if (body->truncated && !h->started) {
        reply_error(h->req, 500, "the answer is too large");
    } else if (body->truncated) {
        http_abort(h->req);
    } else if (h->stream && (h->started || r->status == 200)) {
        write_event(h, "done", strlen("done"), body->buf, body->len);
        outlet_finish(&h->outlet);
    } else {
        answer_json(h, r, body);
    }
    drop(body);
}

/* ---- the request ----------------------------------------------------------------------------- */

static struct sanitise_level take_sanitise(struct e2b_req *q)
{
    const char *name = field_text(&q->in, "sanitise", SIZE_MAX, NULL);
    struct sanitise_level level = {.set = name != NULL};
    bool refused = false;

    if (name && sanitise_mode_parse(name, &level.mode) < 0)
        field_must(&q->in, "sanitise", "enforce, report-only or off");
    json_object_del(q->body, "sanitise");
    if (!fields_ok(&q->in) || !level.set)
        return level;
    output_filter_mode(q->front, &q->tenant, true, &level, &refused);
    if (refused)
        fields_fail(&q->in, SG_ERR_DENIED, -EACCES,
                    "sanitise: off is not allowed here: the server or the tenant forbids it");
    return level;
}

struct sanitise_level take_own_fields(struct e2b_req *q, bool *stream)
{
    const char *accept = http_header_get(q->http, "accept");

    if (stream) {
        *stream = field_flag(&q->in, "stream", accept && strstr(accept, "text/event-stream"));
        json_object_del(q->body, "stream");
    }
    if (strcmp(field_text(&q->in, "tenantId", SIZE_MAX, q->tenant.id), q->tenant.id) != 0)
        fields_fail(&q->in, SG_ERR_DENIED, -EACCES, "tenantId is not that of the key");
    json_object_del(q->body, "tenantId");
    return take_sanitise(q);
}

static void begin(struct http_req *req, enum tool tool)
{
    struct tool_listener listener = {
        .forced = true, .make = make, .drop = drop, .on_done = on_done};
    struct e2b_req *q = e2b_of(req);
    bool stream;

    listener.sanitise = take_own_fields(q, &stream);
    if (!e2b_read(q))
        return;
    struct tool_http *h = NEW(struct tool_http, .req = req, .q = q, .tool = tool, .stream = stream);
    outlet_init(&h->outlet, req, TOOL_ANSWER_MAX + TOOL_RESULTS_MAX);
    q->work = h;
    q->on_gone = on_gone;
    req->on_writable = on_writable;
    listener.arg = h;
    if (stream) {
        listener.on_line = on_line;
        start_timer(h);
    }
    struct tool_place place = {.conversation = http_query_get(req, "conversationId"),
                               .path = http_query_get(req, "pathId"),
                               .message = http_query_get(req, "messageId")};
    h->run = tool_begin(q->front, &q->tenant, tool, q->body, &place, &listener);
    /* The run has read the body by now. Code may run for long, so the body is freed early. */
    json_decref(steal_ptr(&q->body));
}

static void run_code(struct http_req *req)
{
    begin(req, TOOL_RUN_CODE);
}

static void run_analysis(struct http_req *req)
{
    begin(req, TOOL_RUN_ANALYSIS);
}

/* Room for code and parameters, with their escapes. */
static size_t body_max(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct context_limits limits;

    context_limits(q->front, &q->tenant, &limits);
    return 2 * limits.code_max + 2 * (size_t)PARAMETERS_MAX + 1024u * 1024;
}

void tools_run_code(struct http_req *req)
{
    e2b_with_body(req, body_max(req), run_code);
}

void tools_run_analysis(struct http_req *req)
{
    e2b_with_body(req, body_max(req), run_analysis);
}
