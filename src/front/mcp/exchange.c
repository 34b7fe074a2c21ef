#include "front/mcp/exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/uv/handle.h"
#include "front/mcp/call.h"

#define TICK_MS      1000
#define PATIENCE_MS  5000  /* after this, an answer without progress becomes a stream */
#define HEARTBEAT_MS 10000 /* between comments, while there is nothing else to write */
#define PIECE        (64u * 1024)
#define ERROR_MAX    4096
#define OUT_MAX      (4u * MESSAGE_MAX) /* bytes of answers of a batch, until the last one comes */
#define STREAM_TYPE  "text/event-stream"
#define JSON_TYPE    "application/json"
#define HEARTBEAT    ": still there\n\n"

/* The exchange is answered, or the client has gone: then nobody wants the remaining calls. */
static void on_close(struct http_req *req)
{
    struct exchange *x = req->owner;
    struct mcp_call *c;

    alarm_drop(&x->timer);
    while ((c = LIST_FIRST(struct mcp_call, &x->calls, of_exchange)))
        mcp_call_abandon(c);
    strbuf_done(&x->out);
    json_decref(x->body);
    free(x);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void pump(struct exchange *x)
{
    if (x->out.truncated) {
        http_abort(x->http); /* the client must not take a part for the whole */
        return;
    }
    while (!x->choked && x->written < x->out.len) {
        size_t n = x->out.len - x->written;

        n = n < PIECE ? n : PIECE;
        x->choked = !http_write(x->http, x->out.buf + x->written, n);
        x->written += n;
        x->wrote_ms = uv_now(x->front->loop);
    }
    http_keep(x->http, x->out.len - x->written);
    if (x->written < x->out.len)
        return;
    strbuf_reset(&x->out);
    x->written = 0;
    if (x->open == 0)
        http_finish(x->http);
}

static void on_writable(struct http_req *req)
{
    struct exchange *x = req->owner;

    x->choked = false;
    if (x->streaming)
        pump(x);
}

static void add_event(struct exchange *x, const char *message, size_t len)
{
    strbuf_addstr(&x->out, "event: message\ndata: ");
    strbuf_add(&x->out, message, len);
    strbuf_addstr(&x->out, "\n\n");
}

/* Starts the stream. Messages gathered for a JSON document become its first events; each message is
 * a line. */
static void start_stream(struct exchange *x)
{
    AUTO(strbuf_done) struct strbuf gathered = x->out;

    strbuf_init(&x->out, OUT_MAX);
    for (char *at = gathered.buf, *end; *at; at = end + 1) {
        end = strchrnul(at, '\n');
        add_event(x, at, (size_t)(end - at));
        if (!*end)
            break;
    }
    x->out.truncated |= gathered.truncated;
    http_add_header(x->http, "Cache-Control", "no-store");
    http_add_header(x->http, "X-Accel-Buffering", "no"); /* proxies must not buffer */
    http_start(x->http, 200, STREAM_TYPE, -1);
    x->streaming = true;
    pump(x);
}

bool exchange_tell(struct exchange *x, const struct strbuf *message)
{
    if (!x->may_stream || x->choked || message->truncated)
        return false;
    if (!x->streaming)
        start_stream(x);
    add_event(x, message->buf, message->len);
    pump(x);
    return true;
}

static void on_tick(uv_timer_t *t)
{
    struct exchange *x = t->data;
    uint64_t now = uv_now(t->loop);

    LIST_EACH(struct mcp_call, c, &x->calls, of_exchange)
        mcp_call_tell_progress(c);
    if (!x->may_stream || x->choked)
        return;
    if (!x->streaming && now - x->began_ms >= PATIENCE_MS)
        start_stream(x);
    if (x->streaming && now - x->wrote_ms >= HEARTBEAT_MS) {
        strbuf_addstr(&x->out, HEARTBEAT);
        pump(x);
    }
}

/* ---- a JSON document ------------------------------------------------------------------------- */

static void reply_json_document(struct exchange *x)
{
    AUTO(strbuf_done) struct strbuf document = strbuf_upto(OUT_MAX + 2);
    int status = x->errors > 0 && !x->batch && x->error_status ? x->error_status : 200;

    http_keep(x->http, 0); /* the document waits in the connection from now on */
    if (x->out.truncated) {
        exchange_refuse(x->http, 413, MESSAGE_INVALID_REQUEST,
                        "The answers are too long, taken together: ask for fewer at once");
        return;
    }
    if (!x->batch) {
        http_reply(x->http, status, JSON_TYPE, x->out.buf, x->out.len);
        return;
    }
    for (char *p = x->out.buf; (p = strchr(p, '\n')); p++)
        *p = ',';
    strbuf_addch(&document, '[');
    strbuf_add(&document, x->out.buf, x->out.len);
    strbuf_addch(&document, ']');
    http_reply(x->http, status, JSON_TYPE, document.buf, document.len);
}

/* Every request is answered: ends the answer. */
static void finish(struct exchange *x)
{
    alarm_drop(&x->timer);
    if (x->streaming)
        pump(x);
    else if (x->out.len > 0 && (x->may_json || x->error_status))
        reply_json_document(x);
    else
        start_stream(x); /* perhaps without an event: the request was cancelled */
}

/* ---- answers --------------------------------------------------------------------------------- */

void exchange_forgo(struct exchange *x)
{
    if (--x->open == 0)
        finish(x);
}

void exchange_answer(struct exchange *x, const struct strbuf *message)
{
    if (x->streaming) {
        add_event(x, message->buf, message->len);
        pump(x);
    } else {
        if (x->out.len > 0)
            strbuf_addch(&x->out, '\n');
        strbuf_add(&x->out, message->buf, message->len);
        http_keep(x->http, x->out.len);
    }
    exchange_forgo(x);
}

void exchange_error(struct exchange *x, const json_t *id, enum message_code code,
                    const char *message, const char *data)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ERROR_MAX);

    x->errors++;
    http_failed(x->http,
                x->error_status            ? x->error_status
                : code == MESSAGE_INTERNAL ? 500
                                           : 400,
                message);
    message_error(&out, id, code, message, data);
    exchange_answer(x, &out);
}

bool exchange_refuse(struct http_req *req, int status, enum message_code code, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ERROR_MAX);
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    message_error(&out, NULL, code, text, NULL);
    http_failed(req, status, text);
    http_reply(req, status, JSON_TYPE, out.buf, out.len);
    return false;
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct exchange *exchange_new(struct http_req *req, const struct store_tenant *tenant)
{
    struct exchange *x =
        NEW(struct exchange, .http = req, .front = front_of(req), .tenant = *tenant,
            .began_ms = uv_now(front_of(req)->loop), .out = strbuf_upto(OUT_MAX));

    req->owner = x;
    req->on_close = on_close;
    req->on_writable = on_writable;
    return x;
}

void exchange_begin(struct exchange *x)
{
    x->open = 1;
}

void exchange_end(struct exchange *x)
{
    if (x->open > 1) {
        x->timer = alarm_new(x->front->loop, x);
        uv_timer_start(x->timer, on_tick, TICK_MS, TICK_MS);
    }
    exchange_forgo(x);
}
