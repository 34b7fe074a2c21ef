/* A forwarded request.
 *
 *   connecting --STARTED--> [TLS handshake] --> sent --head--> answering --body's end--> over
 *                                                 `-- 101 --> piped --either end closes--> over
 *
 * Bytes to the server that its credit does not cover wait in `out`, and the client's body is paused
 * until they are gone. Bytes that the client does not take are not acknowledged to the agent. An
 * answer that cannot be completed is cut off by dropping the connection, so that the client knows.
 * We never shut our direction to the server before its answer is there: many servers take that for
 * the client's leaving. */
#include "front/forward/forward.h"

#include <string.h>

#include "lib/json/values.h"
#include "lib/channel/wire.h"
#include "lib/uv/handle.h"
#include "front/forward/refusal.h"
#include "front/forward/request_head.h"
#include "front/forward/response.h"
#include "front/forward/tls_client.h"
#include "front/core/request_log.h"
#include "front/core/call.h"
#include "front/core/port_link.h"
#include "front/core/reply.h"

#define SILENCE_MAX_MS (10u * 60 * 1000) /* wait for the answer's first byte */
#define OUT_MAX        (8u * 1024 * 1024)
#define TOKEN_HEADER   "e2b-traffic-access-token"

struct forward {
    struct call call;
    struct sandbox *sandbox;
    struct http_req *req;
    unsigned port;
    char host[256];
    const char *upgrade;    /* the protocol asked for, or NULL */
    uv_timer_t *silence;    /* freed by its close callback */
    struct tls_client *tls; /* NULL: plain */
    struct strbuf out;
    size_t out_off;
    struct response response;
    size_t owed; /* bytes that the client has not taken */
    bool choked; /* http_write said false */
    bool connected;
    bool piped;
    bool shut; /* the client has ended its direction; the server is told when `out` is empty */
    bool over;
};

static void on_close(struct http_req *req)
{
    struct forward *f = req->owner;

    alarm_drop(&f->silence);
    call_cancel(&f->call);
    tls_client_free(f->tls);
    response_done(&f->response);
    strbuf_done(&f->out);
    sandbox_unref(f->sandbox);
    free(f);
}

/* Ends the request without a whole answer. */
static void give_up(struct forward *f, int status, const char *message)
{
    if (f->over)
        return;
    f->over = true;
    call_cancel(&f->call);
    if (http_started(f->req))
        http_abort(f->req);
    else
        refuse_forward(f->req, f->sandbox, status, f->port, message);
}

static void finish(struct forward *f)
{
    f->over = true;
    call_cancel(&f->call);
    http_finish(f->req);
}

/* ---- to the server --------------------------------------------------------------------------- */

static size_t waiting(const struct forward *f)
{
    return f->out.len - f->out_off;
}

/* Sends bytes in the form that the connection carries: encrypted, if it has TLS. */
static void send_raw(struct forward *f, const char *p, size_t len)
{
    if (waiting(f) == 0) {
        size_t n = call_credit(&f->call);
        n = n < len ? n : len;
        call_send(&f->call, CHAN_STDIN, p, n);
        p += n;
        len -= n;
    }
    strbuf_add(&f->out, p, len);
    if (f->out.truncated)
        give_up(f, 502, "The request could not be passed on");
}

static void send_out(struct forward *f, const char *p, size_t len)
{
    if (f->tls)
        tls_client_send(f->tls, p, len);
    else
        send_raw(f, p, len);
}

/* Ends our direction to the server, once all of it is sent. */
static void send_end(struct forward *f)
{
    if (f->tls)
        tls_client_close(f->tls);
    f->shut = true;
    if (waiting(f) == 0)
        call_eof(&f->call);
}

/* Pauses the client's body while bytes wait or the credit is used up, and resumes it otherwise. */
static void hold_or_go(struct forward *f)
{
    if (waiting(f) > 0 || call_credit(&f->call) == 0)
        http_body_pause(f->req);
    else
        http_body_resume(f->req);
}

static void on_credit(struct call *c)
{
    struct forward *f = c->owner;
    size_t n = call_credit(c);

    n = n < waiting(f) ? n : waiting(f);
    call_send(c, CHAN_STDIN, f->out.buf + f->out_off, n);
    f->out_off += n;
    if (waiting(f) > 0)
        return;
    strbuf_reset(&f->out);
    f->out_off = 0;
    if (f->shut)
        call_eof(c);
    hold_or_go(f);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct forward *f = req->owner;
    bool chunked = req->content_length < 0 && !f->piped;
    char size[24];

    if (f->over)
        return;
    if (chunked)
        send_out(f, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", len));
    send_out(f, data, len);
    if (chunked)
        send_out(f, "\r\n", 2);
    hold_or_go(f);
}

static void on_body_end(struct http_req *req)
{
    struct forward *f = req->owner;

    if (f->over)
        return;
    if (f->piped) {
        send_end(f);
    } else if (req->content_length < 0) {
        send_out(f, "0\r\n\r\n", 5);
    }
}

static void send_request(struct forward *f)
{
    AUTO(strbuf_done) struct strbuf head = strbuf_upto(HEAD_MAX);

    request_head_write(&head, f->req, f->host, f->upgrade);
    if (head.truncated) {
        give_up(f, 502, "The request could not be passed on");
        return;
    }
    send_out(f, head.buf, head.len);
    if (f->req->content_length != 0)
        http_body_stream(f->req);
}

/* ---- to the client --------------------------------------------------------------------------- */

static void write_client(struct forward *f, const void *p, size_t len)
{
    if (!http_write(f->req, p, len))
        f->choked = true;
}

static void on_writable(struct http_req *req)
{
    struct forward *f = req->owner;
    size_t owed = f->owed;

    f->choked = false;
    f->owed = 0;
    call_consumed(&f->call, owed);
}

/* Answers 101. From here on both directions are plain bytes, so the head is written by hand. */
static void begin_pipe(struct forward *f)
{
    struct response *r = &f->response;
    AUTO(strbuf_done) struct strbuf head = strbuf_upto(HEAD_MAX);

    strbuf_addstr(&head, "HTTP/1.1 101 Switching Protocols\r\n");
    for (size_t i = 0; i < r->n_headers; i++)
        if (header_passes(r->headers, r->n_headers, r->headers[i].name) &&
            strcmp(r->headers[i].name, "content-length") != 0)
            strbuf_addf(&head, "%s: %s\r\n", r->headers[i].name, r->headers[i].value);
    strbuf_addf(&head, "Upgrade: %s\r\nConnection: Upgrade\r\n\r\n",
                header_single(r->headers, r->n_headers, "upgrade"));
    f->piped = true;
    http_take_over(f->req);
    write_client(f, head.buf, head.len);
}

static void on_head(struct response *r)
{
    struct forward *f = r->owner;

    if (r->state == RESPONSE_UPGRADED) {
        begin_pipe(f);
        return;
    }
    for (size_t i = 0; i < r->n_headers; i++)
        if (header_passes(r->headers, r->n_headers, r->headers[i].name))
            http_add_header(f->req, r->headers[i].name, r->headers[i].value);
    request_log_blame(f->req, FAULT_CODE); /* the sandbox's user is to blame for whatever status */
    http_start(f->req, r->status, NULL, r->length);
}

static void on_answer_body(struct response *r, const char *p, size_t len)
{
    write_client(r->owner, p, len);
}

/* Takes bytes of the server, decrypted if it speaks TLS. */
static void receive(struct forward *f, const char *p, size_t len)
{
    struct sg_error e = {0};
    size_t used = 0;

    if (f->over)
        return;
    alarm_drop(&f->silence);
    if (!f->piped && response_feed(&f->response, p, len, &used, &e) < 0)
        give_up(f, 502, e.message);
    else if (f->response.state == RESPONSE_DONE)
        finish(f);
    else if (f->piped && used < len)
        write_client(f, p + used, len - used);
}

static void on_data(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct forward *f = c->owner;
    struct sg_error e = {0};

    if (!f->tls)
        receive(f, p, len);
    else if (tls_client_feed(f->tls, p, len, &e) < 0)
        give_up(f, 502, e.message);
    if (f->over)
        return;
    if (f->choked)
        f->owed += len;
    else
        call_consumed(c, len);
}

/* ---- the connection -------------------------------------------------------------------------- */

static bool speaks_tls(const struct forward *f)
{
    const json_t *ports = json_object_get(f->sandbox->spec.network, "httpsPorts");

    for (size_t i = 0; i < json_array_size(ports); i++)
        if (json_integer_value(json_array_get(ports, i)) == f->port)
            return true;
    return false;
}

static void on_tls_ready(void *arg)
{
    send_request(arg);
}

static void on_tls_plain(void *arg, const char *p, size_t len)
{
    receive(arg, p, len);
}

static void on_tls_sealed(void *arg, const char *p, size_t len)
{
    send_raw(arg, p, len);
}

static const struct tls_client_handlers tls_handlers = {
    .on_ready = on_tls_ready, .on_plain = on_tls_plain, .on_sealed = on_tls_sealed};

static void on_event(struct call *c, uint8_t what, const void *p UNUSED, size_t len UNUSED)
{
    struct forward *f = c->owner;

    if (what != EVENT_STARTED || f->connected)
        return;
    f->connected = true;
    if (speaks_tls(f))
        f->tls = tls_client_new(f->host, &tls_handlers, f);
    else
        send_request(f);
}

static void on_end(struct call *c, int status, const char *message UNUSED,
                   const void *result UNUSED, size_t len UNUSED)
{
    struct forward *f = c->owner;
    struct sg_error e = {0};

    if (f->over)
        return;
    if (status == 0 && (f->piped || response_eof(&f->response, &e) == 0)) {
        finish(f);
    } else if (status == CALL_GONE && !http_started(f->req)) {
        f->over = true;
        reply_gone(f->req, f->sandbox);
    } else if (!f->connected) {
        give_up(f, 502, "The sandbox is running but port is not open");
    } else {
        give_up(f, 502, "The server on the port closed the connection without an answer");
    }
}

static void on_silence(uv_timer_t *timer)
{
    give_up(timer->data, 504, "The server on the port did not answer in time");
}

/* ---- start ----------------------------------------------------------------------------------- */

/* NULL: the request may pass. Otherwise the reason why it may not. */
static const char *refusal(const struct sandbox *b, unsigned port, const struct http_req *req)
{
    const char *token = http_header_get(req, TOKEN_HEADER);

    if (b->spec.traffic_token[0] == '\0' || port_link_opens(b, port, req))
        return NULL;
    if (!token || token[0] == '\0')
        return "Sandbox is secured with traffic access token. Token header '" TOKEN_HEADER
               "' is missing";
    if (!token_equal(token, b->spec.traffic_token))
        return "Sandbox is secured with traffic access token. Provided token in header "
               "'" TOKEN_HEADER "' is invalid";
    return NULL;
}

bool forward_allows(const struct sandbox *b, unsigned port, const struct http_req *req)
{
    return refusal(b, port, req) == NULL;
}

static void choose_host(struct forward *f)
{
    const char *mask = jr_text_or(f->sandbox->spec.network, "maskRequestHost", NULL);

    if (mask && mask_host(mask, f->port, f->host, sizeof(f->host)))
        return;
    if (f->req->host[0] != '\0' && strlen(f->req->host) < sizeof(f->host))
        snprintf(f->host, sizeof(f->host), "%s", f->req->host);
    else
        snprintf(f->host, sizeof(f->host), "localhost:%u", f->port);
}

static void begin(struct forward *f)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct sg_error e = {0};

    wire_put_u32(&request, f->port);
    f->call = (struct call){.owner = f,
                            .on_event = on_event,
                            .on_data = on_data,
                            .on_credit = on_credit,
                            .on_end = on_end};
    int r = call_begin(&f->call, f->sandbox, OP_NET_CONNECT, &request, &e);
    if (r == -EPIPE)
        reply_gone(f->req, f->sandbox);
    else if (r < 0)
        refuse_forward(f->req, f->sandbox, r == -EAGAIN ? 429 : 502, f->port, e.message);
    f->over = r < 0;
}

void forward_request(struct sandbox *b, unsigned port, struct http_req *req)
{
    const char *why = refusal(b, port, req);

    if (port < 1 || port > 65535) {
        reply_error(req, 400, "Invalid sandbox port");
        return;
    }
    if (why) {
        refuse_forward(req, b, 403, 0, why);
        return;
    }
    if (req->path[0] != '/') { /* the target of CONNECT, or "*" */
        reply_error(req, 400, "only a request with a path can be forwarded");
        return;
    }

    struct forward *f = NEW(struct forward, .sandbox = sandbox_ref(b), .req = req, .port = port);
    f->upgrade = request_upgrade(req);
    f->response = (struct response){.owner = f,
                                    .to_head = req->method == HTTP_M_HEAD,
                                    .may_upgrade = f->upgrade != NULL,
                                    .on_head = on_head,
                                    .on_body = on_answer_body};
    response_init(&f->response);
    strbuf_init(&f->out, OUT_MAX);
    choose_host(f);
    req->owner = f;
    req->on_close = on_close;
    req->on_writable = on_writable;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    f->silence = alarm_new(b->front->loop, f);
    uv_timer_start(f->silence, on_silence, SILENCE_MAX_MS, 0);
    begin(f);
}
