/* The WebSockets of one agent. The agent talks with the writer: messages that the writer has not
 * confirmed are kept, and if the writer reads slowly, the agent waits. Readers only look on. */
#include <stdio.h>
#include <string.h>

#include "front/acp/impl.h"
#include "lib/text/parse.h"
#include "front/core/request_log.h"
#include "front/core/reply.h"

#define PIECE       (128u * 1024)  /* bytes of messages in one write */
#define INPUT_HIGH  (256u * 1024)  /* more waiting input than this: the client is not read */
#define CONFIRM_MAX (1024u * 1024) /* more unconfirmed bytes than this: a ping asks */
#define PARTS       8              /* ... or more than this part of the backlog's limit */
#define TAKEN_OVER  4409

size_t viewers_count(const struct hosted *h)
{
    size_t n = 0;

    LIST_EACH(struct viewer, v, &h->viewers, link)
        n++;
    return n;
}

static void shut(struct viewer *v, unsigned code, const char *reason)
{
    if (v->closing)
        return;
    v->closing = true;
    ws_close(v->ws, code, reason);
}

void viewers_close(struct hosted *h, unsigned code, const char *reason)
{
    LIST_EACH(struct viewer, v, &h->viewers, link)
        shut(v, code, reason);
}

void viewers_drop(struct hosted *h)
{
    struct viewer *v;

    viewers_close(h, WS_GOING_AWAY, "the agent has been removed from the list");
    /* The WebSockets end later, when the agent is gone. */
    while ((v = LIST_POP(struct viewer, &h->viewers, link)))
        v->agent = NULL;
    h->writer = NULL;
}

/* ---- messages to the client ------------------------------------------------------------------ */

/* Sends a ping, which asks whether everything sent has arrived, if it is time to know. */
static void ask_confirmation(struct viewer *v)
{
    struct hosted *h = v->agent;
    const struct backlog *b = &h->backlog;
    size_t most = b->limit / PARTS < CONFIRM_MAX ? b->limit / PARTS : CONFIRM_MAX;
    char text[24];

    if (h->writer != v || v->ping_out || v->cursor.boundary <= b->confirmed)
        return;
    if (v->cursor.boundary - b->confirmed < most && h->owed == 0 && !agent_ended(h))
        return;
    v->ping_out = true;
    v->ping_number++;
    v->ping_boundary = v->cursor.boundary;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)v->ping_number);
    ws_ping(v->ws, text, strlen(text));
}

static unsigned close_code(const struct hosted *h)
{
    switch (h->fault) {
    case FAULT_CLIENT:
        return WS_NORMAL;
    case FAULT_AGENT:
        return h->state == AGENT_EXITED ? WS_NORMAL : WS_GOING_AWAY;
    case FAULT_SANDBOX:
        return WS_GOING_AWAY;
    case FAULT_INFRASTRUCTURE:
    case FAULT_CODE:
    case FAULT_MAX_:
        break;
    }
    return WS_INTERNAL;
}

static void lags(struct viewer *v)
{
    char reason[WS_REASON_MAX];

    snprintf(reason, sizeof(reason), "you read too slowly: message %llu is no longer kept",
             (unsigned long long)v->cursor.next);
    shut(v, WS_TRY_AGAIN, reason);
}

static void pump(struct viewer *v)
{
    struct hosted *h = v->agent;
    const char *p;
    ssize_t n = 1;

    while (!v->blocked && !v->closing && n > 0) {
        n = backlog_take(&h->backlog, &v->cursor, PIECE, &p);
        if (n < 0)
            lags(v);
        else if (n > 0)
            v->blocked = !ws_send_frames(v->ws, p, (size_t)n, v->cursor.frame_left == 0);
    }
    if (v->closing)
        return;
    if (v->paused)
        hosted_read_on(h);
    ask_confirmation(v);
    if (n == 0 && agent_ended(h))
        shut(v, close_code(h), h->reason);
}

void viewers_pump(struct hosted *h)
{
    LIST_EACH(struct viewer, v, &h->viewers, link)
        pump(v);
}

static void on_writable(struct ws *w)
{
    struct viewer *v = ws_owner(w);

    v->blocked = false;
    if (v->agent)
        pump(v);
}

static void on_pong(struct ws *w, const char *data, size_t len)
{
    struct viewer *v = ws_owner(w);
    struct hosted *h = v->agent;
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v->ping_number);
    if (!h || h->writer != v || !v->ping_out || len != strlen(text) || memcmp(data, text, len) != 0)
        return;
    v->ping_out = false;
    backlog_confirm(&h->backlog, v->ping_boundary);
    hosted_read_on(h);
    ask_confirmation(v);
}

/* ---- messages of the client ------------------------------------------------------------------ */

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
    struct viewer *v = ws_owner(w);

    if (!v->agent || v->closing)
        return;
    if (!text)
        shut(v, WS_UNSUPPORTED, "messages must be text, not binary");
    else if (!v->writer)
        shut(v, WS_POLICY, "a reader cannot write: connect as the writer");
    else if (memchr(data, '\n', len))
        shut(v, WS_POLICY, "a message must be one line, without a newline");
    else if (!hosted_take(v->agent, data, len))
        shut(v, WS_TRY_AGAIN, "the agent does not read: send this message again later");
}

static void on_messages_end(struct ws *w)
{
    struct viewer *v = ws_owner(w);
    struct hosted *h = v->agent;

    if (!h || h->writer != v)
        return;
    hosted_give_input(h);
    if (v->closing || h->input.len - h->input_at <= INPUT_HIGH)
        return;
    v->paused = true;
    ws_pause(w);
    hosted_read_on(h);
}

void viewers_resume(struct hosted *h)
{
    if (!h->writer || !h->writer->paused)
        return;
    h->writer->paused = false;
    ws_resume(h->writer->ws);
}

static void on_close(struct ws *w, unsigned code, const char *reason)
{
    struct viewer *v = ws_owner(w);
    struct hosted *h = v->agent;

    if (h) {
        sandbox_log_add(&h->log, LOG_INFO, FAULT_CLIENT, 0, "a %s has left (%u%s%.100s)",
                        v->writer ? "writer" : "reader", code, reason[0] ? ": " : "", reason);
        list_remove(&v->link);
        if (h->writer == v)
            h->writer = NULL;
    }
    free(v);
}

static const struct ws_handlers handlers = {.on_message = on_message,
                                            .on_messages_end = on_messages_end,
                                            .on_pong = on_pong,
                                            .on_writable = on_writable,
                                            .on_close = on_close};

/* ---- new connections ------------------------------------------------------------------------- */

struct view_request {
    bool reader, takeover, after_given;
    uint64_t after;
};

/* False: the request has been answered. */
static bool read_view_request(struct http_req *req, struct view_request *ret)
{
    const char *role = http_query_get(req, "role"), *after = http_query_get(req, "after");
    const char *takeover = http_query_get(req, "takeover");
    struct sg_error e = {0};

    *ret = (struct view_request){.reader = role && strcmp(role, "reader") == 0,
                                 .takeover = takeover && strcmp(takeover, "true") == 0,
                                 .after_given = http_query_has(req, "after")};
    if (http_query_has(req, "role") && !ret->reader && (!role || strcmp(role, "writer") != 0))
        err_invalid(&e, "'role' must be writer or reader");
    else if (http_query_has(req, "takeover") && !ret->takeover &&
             (!takeover || strcmp(takeover, "false") != 0))
        err_invalid(&e, "'takeover' must be true or false");
    else if (ret->after_given)
        parse_u64("after", after ? after : "", 0, INT64_MAX - 1, &ret->after, &e);
    if (e.kind != SG_ERR_NONE)
        reply_sg_error(req, &e);
    return e.kind == SG_ERR_NONE;
}

static void reply_dropped(struct hosted *h, struct http_req *req, uint64_t after)
{
    const struct backlog *b = &h->backlog;

    if (b->first_number < b->next)
        reply_error(req, 410,
                    "message %llu is no longer kept: there are %llu to %llu; begin with after=%llu",
                    (unsigned long long)after + 1, (unsigned long long)b->first_number,
                    (unsigned long long)b->next - 1, (unsigned long long)b->first_number - 1);
    else
        reply_error(req, 410, "message %llu is no longer kept: begin with after=%llu",
                    (unsigned long long)after + 1, (unsigned long long)b->next - 1);
}

/* Finds the message to begin with. False: the request has been answered. */
static bool find_place(struct hosted *h, struct http_req *req, const struct view_request *want,
                       struct backlog_cursor *ret)
{
    int r = 0;

    if (want->after_given)
        r = backlog_seek(&h->backlog, want->after + 1, ret);
    else if (want->reader)
        r = backlog_seek(&h->backlog, h->backlog.next, ret);
    else
        backlog_seek_waiting(&h->backlog, ret);
    if (r == -ESTALE)
        reply_dropped(h, req, want->after);
    else if (r < 0)
        reply_error(req, 400, "'after' is %llu, and the agent has sent %llu messages",
                    (unsigned long long)want->after, (unsigned long long)h->backlog.next - 1);
    return r == 0;
}

/* False: the request has been answered. */
static bool has_place(struct hosted *h, struct http_req *req, const struct view_request *want)
{
    size_t readers = viewers_count(h) - (h->writer ? 1 : 0);

    /* Writers whose place was taken over count until they are gone: they are few, and gone soon. */
    if (readers >= (want->reader ? AGENT_READERS_MAX : 2 * AGENT_READERS_MAX)) {
        reply_error(req, 429, "the agent already has %zu connections", viewers_count(h));
        return false;
    }
    if (!want->reader && h->writer && !want->takeover) {
        reply_error(req, 409,
                    "the agent already has a writer: connect with role=reader, or with "
                    "takeover=true in its place");
        return false;
    }
    return true;
}

static void add_number(struct http_req *req, const char *name, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    http_add_header(req, name, text);
}

/* Sends the counters as a message, for clients that cannot read headers. */
static void say_hello(struct viewer *v)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"next\":%llu,\"received\":%llu,\"role\":\"%s\"}",
             (unsigned long long)v->cursor.next, (unsigned long long)v->agent->received,
             v->writer ? "writer" : "reader");
    ws_send(v->ws, true, text, strlen(text));
}

static void enter(struct hosted *h, struct viewer *v)
{
    if (v->writer) {
        if (h->writer)
            shut(h->writer, TAKEN_OVER, "another writer has taken over");
        h->writer = v;
        backlog_confirm_only(&h->backlog, &v->cursor);
    }
    v->agent = h;
    list_push(&h->viewers, &v->link);
}

void agent_attach(struct hosted *h, struct http_req *req)
{
    const char *subprotocol = ws_offers(req, AGENT_SUBPROTOCOL) ? AGENT_SUBPROTOCOL : NULL;
    struct backlog_cursor cursor;
    struct view_request want;

    if (!ws_wanted(req)) {
        ws_accept(req, NULL, 0, &handlers, NULL);
        return;
    }
    if (!read_view_request(req, &want) || !has_place(h, req, &want) ||
        !find_place(h, req, &want, &cursor))
        return;
    request_log_about(req, NULL, h->sandbox_id);
    add_number(req, "Sandglass-Acp-Next", cursor.next);
    add_number(req, "Sandglass-Acp-Received", h->received);
    http_add_header(req, "Sandglass-Acp-Role", want.reader ? "reader" : "writer");
    struct viewer *v = NEW(struct viewer, .writer = !want.reader, .cursor = cursor);
    v->ws = ws_accept(req, subprotocol, AGENT_MESSAGE_MAX, &handlers, v);
    if (!v->ws) {
        free(v);
        return;
    }
    enter(h, v);
    sandbox_log_add(&h->log, LOG_INFO, FAULT_CLIENT, 0, "a %s has connected",
                    v->writer ? "writer" : "reader");
    if (subprotocol)
        say_hello(v);
    hosted_read_on(h);
    pump(v);
}
