#include "lib/http/websocket.h"

#include <openssl/sha.h>
#include <strings.h>

#include "lib/text/base64.h"
#include "lib/http/impl.h"

#define TICK_MS  1000
#define GUID     "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_MAX  64
#define HEAD_MAX (HTTP_HEADERS_OUT_MAX + 1024)
#define PING_MAX 100
#define KEPT_MIN (64u * 1024) /* bytes of an unfinished message below which nothing is counted */

enum state { OPEN, CLOSING, OVER };

struct ws {
    struct http_req *req;
    const struct ws_handlers *handlers;
    void *owner;
    void *former_owner;
    void (*former_on_close)(struct http_req *req);
    struct ws_codec codec;
    uv_timer_t *timer; /* freed when libuv has closed it */
    enum state state;
    unsigned code; /* code for on_close */
    char reason[WS_REASON_MAX + 1];
    bool paused;
    bool mid_frame;    /* the owner's frame is half written */
    bool idle_ping;    /* a ping is out, because the client was silent */
    uint64_t heard_ms; /* when something came last */
    uint64_t since_ms; /* CLOSING */
    struct note {      /* control frames that wait for the end of a frame */
        bool set;
        size_t len;
        char data[WS_CONTROL_MAX];
    } ping, pong;
};

static uint64_t now_ms(const struct ws *w)
{
    return uv_now(w->req->server->loop);
}

void *ws_owner(const struct ws *w)
{
    return w->owner;
}

/* ---- what goes out --------------------------------------------------------------------------- */

static bool write_frame(struct ws *w, enum ws_opcode opcode, const void *data, size_t len)
{
    uint8_t head[WS_HEAD_OWN];

    http_write(w->req, head, ws_frame_head(head, opcode, len));
    return http_write(w->req, data, len);
}

static void control(struct ws *w, enum ws_opcode opcode, struct note *n, const void *data,
                    size_t len)
{
    if (!w->mid_frame) {
        write_frame(w, opcode, data, len);
        return;
    }
    n->set = true;
    n->len = len;
    memcpy(n->data, data, len);
}

static void control_waiting(struct ws *w)
{
    if (w->ping.set)
        write_frame(w, WS_OP_PING, w->ping.data, w->ping.len);
    if (w->pong.set)
        write_frame(w, WS_OP_PONG, w->pong.data, w->pong.len);
    w->ping.set = w->pong.set = false;
}

bool ws_send(struct ws *w, bool text, const void *data, size_t len)
{
    if (w->state != OPEN)
        return false;
    return write_frame(w, text ? WS_OP_TEXT : WS_OP_BINARY, data, len);
}

bool ws_send_frames(struct ws *w, const void *data, size_t len, bool whole)
{
    if (w->state != OPEN)
        return false;
    bool go_on = http_write(w->req, data, len);
    w->mid_frame = !whole;
    if (whole && (w->ping.set || w->pong.set))
        control_waiting(w);
    return go_on;
}

void ws_ping(struct ws *w, const void *data, size_t len)
{
    if (w->state == OPEN && len <= PING_MAX)
        control(w, WS_OP_PING, &w->ping, data, len);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void note_end(struct ws *w, unsigned code, const char *reason, size_t len)
{
    w->code = code;
    len = len < WS_REASON_MAX ? len : WS_REASON_MAX;
    memcpy(w->reason, reason, len);
    w->reason[len] = '\0';
}

/* False: a frame is half written, so no close frame can be sent any more. */
static bool write_close(struct ws *w, unsigned code, const char *reason)
{
    size_t len = strlen(reason);
    char body[WS_CONTROL_MAX] = {(char)(code >> 8), (char)code};

    if (w->mid_frame)
        return false;
    len = len < WS_REASON_MAX ? len : WS_REASON_MAX;
    while (len > 0 && !utf8_valid(reason, len))
        len--;
    memcpy(body + 2, reason, len);
    write_frame(w, WS_OP_CLOSE, body, code == WS_NO_CODE ? 0 : len + 2);
    return true;
}

static void finish(struct ws *w, bool said)
{
    w->state = OVER;
    if (said)
        http_finish(w->req);
    else
        http_abort(w->req);
}

/* The client broke the rules: tells it why, and reads nothing more from it. */
static void refuse(struct ws *w, unsigned code, const char *why)
{
    if (w->state == OPEN)
        note_end(w, code, why, strlen(why));
    finish(w, write_close(w, code, why));
}

void ws_close(struct ws *w, unsigned code, const char *reason)
{
    if (w->state != OPEN)
        return;
    note_end(w, code, reason, strlen(reason));
    if (!write_close(w, code, reason)) {
        finish(w, false);
        return;
    }
    w->state = CLOSING;
    w->since_ms = now_ms(w);
    http_body_resume(w->req);
}

static void on_client_close(struct ws *w, const struct ws_seen *seen)
{
    if (w->state == CLOSING) {
        finish(w, true);
        return;
    }
    note_end(w, seen->code, seen->data, seen->len);
    finish(w, write_close(w, seen->code, ""));
}

/* ---- what comes in --------------------------------------------------------------------------- */

static void on_seen(struct ws *w, const struct ws_seen *seen)
{
    switch (seen->what) {
    case WS_MESSAGE:
        if (w->state == OPEN)
            w->handlers->on_message(w, seen->text, seen->data, seen->len);
        break;
    case WS_PING:
        if (w->state == OPEN)
            control(w, WS_OP_PONG, &w->pong, seen->data, seen->len);
        break;
    case WS_PONG:
        if (seen->len > 0 && w->handlers->on_pong)
            w->handlers->on_pong(w, seen->data, seen->len);
        break;
    case WS_CLOSE:
        on_client_close(w, seen);
        break;
    case WS_BROKEN:
        refuse(w, seen->code, seen->why);
        break;
    case WS_MORE:
        break;
    }
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct ws *w = req->owner;
    struct ws_seen seen;
    bool any = false;

    w->heard_ms = now_ms(w);
    w->idle_ping = false;
    for (size_t used = 0; used < len && w->state != OVER;) {
        used += ws_codec_feed(&w->codec, data + used, len - used, &seen);
        any = any || seen.what == WS_MESSAGE;
        on_seen(w, &seen);
    }
    /* Called even if a close came right behind the messages: they were taken. */
    if (any && w->handlers->on_messages_end)
        w->handlers->on_messages_end(w);
    http_keep(req, w->codec.in_message && w->codec.len > KEPT_MIN ? w->codec.len : 0);
}

static void on_body_end(struct http_req *req)
{
    struct ws *w = req->owner;

    if (w->state == OVER)
        return;
    if (w->state == OPEN)
        note_end(w, WS_LOST, "", 0);
    finish(w, false);
}

static void on_writable(struct http_req *req)
{
    struct ws *w = req->owner;

    if (w->state == OPEN && w->handlers->on_writable)
        w->handlers->on_writable(w);
}

static void on_timer_closed(uv_handle_t *h)
{
    free(h);
}

static void on_close(struct http_req *req)
{
    struct ws *w = req->owner;

    if (w->state == OPEN)
        note_end(w, WS_LOST, "", 0);
    w->state = OVER;
    w->handlers->on_close(w, w->code, w->reason);
    uv_close((uv_handle_t *)w->timer, on_timer_closed);
    req->owner = w->former_owner;
    if (w->former_on_close)
        w->former_on_close(req);
    ws_codec_done(&w->codec);
    free(w);
}

void ws_pause(struct ws *w)
{
    if (w->state != OPEN || w->paused)
        return;
    w->paused = true;
    http_body_pause(w->req);
}

void ws_resume(struct ws *w)
{
    if (!w->paused)
        return;
    w->paused = false;
    w->heard_ms = now_ms(w);
    if (w->state == OPEN)
        http_body_resume(w->req);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *t)
{
    struct ws *w = t->data;
    uint64_t now = now_ms(w);

    if (w->state == CLOSING && now - w->since_ms > WS_CLOSE_MS) {
        finish(w, false);
    } else if (w->state == OPEN && w->mid_frame) {
        /* No ping can be sent now, and one of the owner's may wait. http notices clients that take
         * nothing. */
        w->heard_ms = now;
    } else if (w->state == OPEN && now - w->heard_ms > WS_PING_MS && !w->idle_ping) {
        w->idle_ping = true;
        control(w, WS_OP_PING, &w->ping, "", 0);
    } else if (w->state == OPEN && !w->paused && w->idle_ping &&
               now - w->heard_ms > WS_PING_MS + WS_PONG_MS) {
        note_end(w, WS_LOST, "the client has not answered a ping",
                 strlen("the client has not answered a ping"));
        finish(w, false);
    }
}

static uv_timer_t *timer_new(struct ws *w)
{
    uv_timer_t *t = xcalloc(1, sizeof(*t));

    uv_timer_init(w->req->server->loop, t);
    t->data = w;
    uv_timer_start(t, on_tick, TICK_MS, TICK_MS);
    return t;
}

/* ---- handshake ------------------------------------------------------------------------------- */

bool ws_wanted(const struct http_req *req)
{
    const char *upgrade = http_header_get(req, "upgrade");

    return req->upgrade && upgrade && http_list_has(upgrade, "websocket", true);
}

bool ws_offers(const struct http_req *req, const char *subprotocol)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (strcmp(req->headers[i].name, "sec-websocket-protocol") == 0 &&
            http_list_has(req->headers[i].value, subprotocol, false))
            return true;
    return false;
}

/* Whether the key is 16 bytes in base64, as the standard demands. */
static bool key_valid(const char *key)
{
    AUTO(strbuf_done) struct strbuf bytes = strbuf_upto(KEY_MAX);

    return key && strlen(key) == 24 && base64_decode(&bytes, key, 24) == 0 && bytes.len == 16;
}

static void refuse_request(struct http_req *req, int status, const char *message)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(1024);

    answer_error_body(&body, req, status, message);
    if (status == 426) {
        http_add_header(req, "Upgrade", "websocket");
        http_add_header(req, "Sec-WebSocket-Version", "13");
    }
    http_failed(req, status, message);
    http_reply(req, status, "application/json", body.buf, body.len);
}

static bool acceptable(struct http_req *req)
{
    const char *version = http_header_get(req, "sec-websocket-version");

    if (req->method != HTTP_M_GET || !ws_wanted(req)) {
        refuse_request(req, 426, "this is a WebSocket: ask for an upgrade to it");
    } else if (!version || strcmp(version, "13") != 0) {
        refuse_request(req, 426, "Sec-WebSocket-Version must be 13");
    } else if (!key_valid(http_header_get(req, "sec-websocket-key"))) {
        refuse_request(req, 400, "Sec-WebSocket-Key must be 16 bytes in base64");
    } else {
        return true;
    }
    return false;
}

static void write_head(struct ws *w, const char *subprotocol)
{
    struct req *r = req_of(w->req);
    AUTO(strbuf_done) struct strbuf head = strbuf_upto(HEAD_MAX), accept = strbuf_upto(128);
    unsigned char digest[SHA_DIGEST_LENGTH];

    strbuf_addstr(&accept, http_header_get(w->req, "sec-websocket-key"));
    strbuf_addstr(&accept, GUID);
    SHA1((const unsigned char *)accept.buf, accept.len, digest);
    strbuf_reset(&accept);
    base64_encode(&accept, digest, sizeof(digest));
    strbuf_addf(&head,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Accept: %s\r\nX-Request-Id: %s\r\n",
                accept.buf, w->req->id);
    if (subprotocol)
        strbuf_addf(&head, "Sec-WebSocket-Protocol: %s\r\n", subprotocol);
    strbuf_add(&head, r->headers.buf, r->headers.len);
    strbuf_addstr(&head, "\r\n");
    http_take_over(w->req);
    http_write(w->req, head.buf, head.len);
}

struct ws *ws_accept(struct http_req *req, const char *subprotocol, size_t message_max,
                     const struct ws_handlers *handlers, void *owner)
{
    if (http_req_over(req) || !acceptable(req))
        return NULL;
    if (!req_of(req)->body_over) {
        refuse_request(req, 400, "a request for a WebSocket has no body");
        return NULL;
    }
    struct ws *w = NEW(struct ws, .req = req, .handlers = handlers, .owner = owner,
                       .former_owner = req->owner, .former_on_close = req->on_close);
    ws_codec_init(&w->codec, message_max);
    w->heard_ms = now_ms(w);
    w->timer = timer_new(w);
    req->owner = w;
    req->on_close = on_close;
    req->on_writable = on_writable;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    write_head(w, subprotocol);
    return w;
}
