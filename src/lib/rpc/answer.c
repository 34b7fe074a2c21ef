/* Writes the answers of calls. */
#include <stdarg.h>

#include "lib/rpc/codec.h"
#include "lib/rpc/impl.h"

#define ERROR_MAX  8192 /* room for a message of 1 KiB, each character escaped */
#define PUMP_PIECE (64u * 1024)

static size_t budget_used;

bool rpc_budget_take(struct rpc_call *c, size_t bytes)
{
    if (bytes > RPC_BUDGET - budget_used)
        return false;
    c->budget += bytes;
    budget_used += bytes;
    return true;
}

void rpc_budget_release(struct rpc_call *c)
{
    budget_used -= c->budget;
    c->budget = 0;
}

static const char *content_type(const struct rpc_call *c)
{
    if (c->codec == RPC_PROTO)
        return c->streaming ? "application/connect+proto" : "application/proto";
    return c->streaming ? "application/connect+json" : "application/json";
}

/* Writes one frame in one write, so that it leaves in one piece. */
static bool write_frame(struct rpc_call *c, unsigned flags, struct strbuf *frame)
{
    if (!http_started(c->req))
        http_start(c->req, 200, content_type(c), -1);
    rpc_envelope_header(frame->buf, flags, frame->len - RPC_ENVELOPE_HEADER);
    return http_write(c->req, frame->buf, frame->len);
}

static void frame_init(struct strbuf *frame)
{
    static const char header[RPC_ENVELOPE_HEADER];

    strbuf_init(frame, RPC_ENVELOPE_HEADER + RPC_REPLY_MAX);
    strbuf_add(frame, header, sizeof(header));
}

static void put_error(struct strbuf *out, enum rpc_code code, const char *message)
{
    strbuf_addf(out, "{\"code\":\"%s\",\"message\":", rpc_code_name(code));
    json_put_quoted(out, message, strlen(message));
    strbuf_addch(out, '}');
}

void rpc_answer_error(struct http_req *req, int status, enum rpc_code code, const char *message)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ERROR_MAX);

    put_error(&out, code, message);
    http_failed(req, status, message);
    http_reply(req, status, "application/json", out.buf, out.len);
}

void rpc_fail(struct rpc_call *c, enum rpc_code code, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char message[1024];
    va_list ap;

    if (c->over)
        return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    rpc_abandon(c);
    if (!c->streaming) {
        rpc_answer_error(c->req, rpc_code_status(code), code, message);
        return;
    }
    http_failed(c->req, rpc_code_status(code), message);
    frame_init(&out);
    strbuf_addstr(&out, "{\"error\":");
    put_error(&out, code, message);
    strbuf_addch(&out, '}');
    write_frame(c, RPC_ENVELOPE_END, &out);
    http_finish(c->req);
}

bool rpc_send(struct rpc_call *c, json_t *value)
{
    AUTO(strbuf_done) struct strbuf frame = {0};

    if (c->over) {
        json_decref(value);
        return false;
    }
    frame_init(&frame);
    rpc_encode(c->method->out, c->codec, value, &frame);
    json_decref(value);
    if (frame.truncated) {
        rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "a message of the answer is too large");
        return false;
    }
    c->blocked = !write_frame(c, 0, &frame);
    if (c->keepalive_at)
        c->keepalive_at = uv_now(c->loop) + c->keepalive_ms;
    return !c->blocked;
}

void rpc_finish(struct rpc_call *c)
{
    AUTO(strbuf_done) struct strbuf frame = {0};

    if (c->over)
        return;
    rpc_abandon(c);
    frame_init(&frame);
    strbuf_addstr(&frame, "{}");
    write_frame(c, RPC_ENVELOPE_END, &frame);
    http_finish(c->req);
}

void rpc_answer_pump(struct rpc_call *c)
{
    bool more = true;

    while (more && c->rest_off < c->rest.len) {
        size_t n = c->rest.len - c->rest_off;
        n = n < PUMP_PIECE ? n : PUMP_PIECE;
        more = http_write(c->req, c->rest.buf + c->rest_off, n);
        c->rest_off += n;
    }
    if (c->rest_off < c->rest.len)
        return;
    strbuf_done(&c->rest);
    rpc_budget_release(c);
    http_finish(c->req);
}

void rpc_reply_encoded(struct rpc_call *c, struct strbuf *body)
{
    size_t counted = body->len > RPC_SMALL ? body->len : 0;

    if (c->over) {
        strbuf_done(body);
        return;
    }
    rpc_budget_release(c);
    if (body->truncated || !rpc_budget_take(c, counted)) {
        strbuf_done(body);
        rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "the answer is too large");
        return;
    }
    rpc_abandon(c);
    if (counted) {
        /* Piece by piece: bytes that are written at once wait in the connection, which has a
         * limit. */
        c->rest = *body;
        http_start(c->req, 200, content_type(c), (int64_t)body->len);
        rpc_answer_pump(c);
        return;
    }
    http_reply(c->req, 200, content_type(c), body->buf, body->len);
    strbuf_done(body);
}

void rpc_reply(struct rpc_call *c, json_t *value)
{
    struct strbuf out;

    if (c->over) {
        json_decref(value);
        return;
    }
    if (c->streaming) { /* a client stream: one message, and the end */
        rpc_send(c, value);
        rpc_finish(c);
        return;
    }
    strbuf_init(&out, RPC_REPLY_MAX);
    rpc_encode(c->method->out, c->codec, value, &out);
    json_decref(value);
    rpc_reply_encoded(c, &out);
}
