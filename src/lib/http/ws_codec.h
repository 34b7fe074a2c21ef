/* WebSocket frames (RFC 6455) without I/O: turns bytes of a client into messages, and makes the
 * heads of our own frames. See websocket.h for the connection; fuzz/fuzz_websocket.c runs this
 * alone.
 *
 * A message is kept until it is whole, in memory that grows as its bytes come. The length that a
 * head announces reserves no memory, and a length beyond message_max is refused at once. */
#pragma once

#include "lib/text/utf8.h"

#define WS_CONTROL_MAX 125
#define WS_HEAD_MAX    14 /* of a client's frame */
#define WS_HEAD_OWN    10 /* of ours, which has no mask */

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

enum ws_opcode {
    WS_OP_CONTINUE = 0,
    WS_OP_TEXT = 1,
    WS_OP_BINARY = 2,
    WS_OP_CLOSE = 8,
    WS_OP_PING = 9,
    WS_OP_PONG = 10,
};

enum ws_what {
    WS_MORE, /* no message or control frame is whole yet */
    WS_MESSAGE,
    WS_PING,
    WS_PONG,
    WS_CLOSE,
    WS_BROKEN, /* close with `code`; nothing may be fed any more */
};

/* One finding of ws_codec_feed. data is valid until the next call. */
struct ws_seen {
    enum ws_what what;
    bool text;
    const char *data; /* of WS_CLOSE: the reason */
    size_t len;
    unsigned code;   /* CLOSE: what the client says, 1005 if nothing; BROKEN: what to say */
    const char *why; /* BROKEN: a literal */
};

struct ws_codec {
    size_t message_max;
    uint8_t head[WS_HEAD_MAX];
    unsigned head_len, head_need; /* need 0: a payload is being read */
    uint8_t opcode;
    bool fin;
    uint64_t left; /* of the payload */
    uint8_t mask[4];
    unsigned mask_at;
    bool in_message, text; /* a message has begun */
    struct utf8_state utf8;
    char *buf; /* the message so far */
    size_t len, cap;
    char control[WS_CONTROL_MAX];
    size_t control_len;
};

void ws_codec_init(struct ws_codec *c, size_t message_max);
void ws_codec_done(struct ws_codec *c);
/* Takes bytes up to the end of the next whole message or control frame, and returns how many. */
size_t ws_codec_feed(struct ws_codec *c, const char *p, size_t n, struct ws_seen *ret);

/* The head of a whole, unmasked frame; returns its length. */
size_t ws_frame_head(uint8_t ret[WS_HEAD_OWN], enum ws_opcode opcode, size_t len);
/* The length of such a frame, with its head. */
size_t ws_frame_size(const void *frame);
/* Whether a close frame may carry that code. */
bool ws_code_valid(unsigned code);
/* to = from ^ mask, beginning with byte `at` of the mask. `to` and `from` may be the same. */
void ws_unmask(char *to, const char *from, size_t n, const uint8_t mask[4], unsigned at);
