/* WebSocket (RFC 6455) on a request that was taken over: the server's side, without extensions.
 *
 *   ws_codec.h   bytes to frames to messages, no I/O: what the fuzzer runs
 *   websocket.c  a connection: handshake, messages in both directions, pings, close
 *
 * Bytes of clients are hostile. Frames must be masked, reserved bits 0, control frames short and
 * whole, texts UTF-8, a message not longer than its limit; the length of a frame is judged before a
 * byte of it is kept. A breach ends the connection with the code that the standard has for it:
 * 1002, 1003, 1007, 1009.
 *
 *   OPEN --ws_close--> CLOSING (our close frame is out; its answer awaited for WS_CLOSE_MS)
 *     |                   |
 *     |                   v
 *     +---------------> over      the client closes, vanishes, breaks the protocol, answers no ping
 *
 * A client that says nothing for WS_PING_MS gets a ping. If no pong comes within WS_PONG_MS, the
 * client has vanished. While nothing is read (ws_pause) these clocks stand still. */
#pragma once

#include "lib/http/http.h"
#include "lib/http/ws_codec.h"

#define WS_PING_MS  20000
#define WS_PONG_MS  20000
#define WS_CLOSE_MS 3000

#define WS_REASON_MAX 123

struct ws;

struct ws_handlers {
    /* A whole message; valid during the call. */
    void (*on_message)(struct ws *w, bool text, const char *data, size_t len);
    void (*on_messages_end)(struct ws *w); /* after the last of the messages that came together; or
                                            * NULL */
    void (*on_pong)(struct ws *w, const char *data, size_t len); /* of a ws_ping; or NULL */
    void (*on_writable)(struct ws *w); /* ws_send or ws_send_frames said false; now it may go on */
    /* Called exactly once, as the last call: w is freed after it. code: the client's, or ours. */
    void (*on_close)(struct ws *w, unsigned code, const char *reason);
};

/* Whether a request asks for a WebSocket. */
bool ws_wanted(const struct http_req *req);
/* Whether the client offers that subprotocol. */
bool ws_offers(const struct http_req *req, const char *subprotocol);
/* Answers 101 and takes the request over; its former owner's on_close is called too, after ours.
 * subprotocol: one of those that were offered, or NULL. Returns NULL if the request was refused
 * (400, 426), and answered. message_max bounds one message. Headers added before are sent along. */
struct ws *ws_accept(struct http_req *req, const char *subprotocol, size_t message_max,
                     const struct ws_handlers *handlers, void *owner);
void *ws_owner(const struct ws *w);

/* Sends a short message. False: more than HTTP_WRITE_HIGH bytes wait: stop until on_writable. The
 * message was taken all the same. */
bool ws_send(struct ws *w, bool text, const void *data, size_t len);
/* Sends bytes of frames that the caller has made (ws_frame_head): several frames, or a piece of
 * one. whole: the bytes end where a frame does. Our own control frames wait for that. False: as
 * above. */
bool ws_send_frames(struct ws *w, const void *data, size_t len, bool whole);
/* Sends a ping: when its on_pong comes, all that was sent before has arrived. At most 100 bytes. If
 * several pings wait for the end of a frame, only the last one is sent. */
void ws_ping(struct ws *w, const void *data, size_t len);
/* Reads no more until ws_resume: for an owner that cannot pass messages on fast enough. Messages
 * that were read already (256 KiB) still come. Pongs and close wait with the rest. */
void ws_pause(struct ws *w);
void ws_resume(struct ws *w);
/* Closes the connection. on_close follows, from the loop; no message comes before it. In the middle
 * of a frame the connection is dropped instead. */
void ws_close(struct ws *w, unsigned code, const char *reason);
