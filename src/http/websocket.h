/* WebSocket (RFC 6455) on a request that was taken over: the server's side, without extensions.
 *
 *   ws_codec     bytes to frames to messages, no I/O: what the fuzzer runs
 *   ws           a connection: handshake, messages in both directions, pings, close
 *
 * What comes is hostile: frames must be masked, reserved bits 0, control frames short and whole,
 * texts UTF-8, a message not longer than its limit; the length of a frame is judged before a byte
 * of it is kept. A breach ends the connection with the code that the standard has for it: 1002,
 * 1003, 1007, 1009.
 *
 *   OPEN --ws_close--> CLOSING (our close frame is out; its answer awaited for WS_CLOSE_MS) -->
 * over |                                                                                     ^
 *     +-- the client closes, vanishes, breaks the protocol, answers no ping ---------------+
 *
 * A ping goes out after WS_PING_MS without a word from the client; none comes back in WS_PONG_MS:
 * it has vanished. */
#pragma once

#include "http/http.h"

#define WS_PING_MS  20000
#define WS_PONG_MS  20000
#define WS_CLOSE_MS 3000

enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL = 1002,
    WS_UNSUPPORTED = 1003,
    WS_NO_CODE = 1005,
    WS_LOST = 1006, /* never sent */
    WS_NOT_UTF8 = 1007,
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011,
    WS_TRY_AGAIN = 1013,
};

struct ws;

struct ws_handlers {
    /* A whole message; valid during the call. */
    void (*on_message)(struct ws *w, bool text, const char *data, size_t len);
    void (*on_writable)(struct ws *w); /* ws_send said false, now it may go on */
    /* Exactly once, as the last call: w is freed after it. code: the client's, or ours. */
    void (*on_close)(struct ws *w, unsigned code, const char *reason);
};

/* Whether a request asks for it. */
bool ws_wanted(const struct http_req *req);
/* Answers 101 and takes the request over; its owner and on_close are the websocket's from then on.
 * subprotocol: one of those that were offered, or NULL. NULL: it was refused (400, 426), and
 * answered. message_max bounds one message. Headers added before are sent along. */
struct ws *ws_accept(struct http_req *req, const char *subprotocol, size_t message_max,
                     const struct ws_handlers *handlers, void *owner);
void *ws_owner(const struct ws *w);
/* Whether the client offers that subprotocol. */
bool ws_offers(const struct http_req *req, const char *subprotocol);
/* False: more than HTTP_WRITE_HIGH wait: stop until on_writable. Taken all the same. */
bool ws_send(struct ws *w, bool text, const void *data, size_t len);
/* The same for several messages at once, in one write: each of iov is one. */
bool ws_send_many(struct ws *w, bool text, const struct iovec *iov, size_t n);
/* No more is read until ws_resume: who is slow downstream. Pongs and close wait with it. */
void ws_pause(struct ws *w);
void ws_resume(struct ws *w);
/* on_close follows, from the loop. */
void ws_close(struct ws *w, unsigned code, const char *reason);
