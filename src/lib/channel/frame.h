/* The channel between the owner of a sandbox (the host side: warden, library or front) and the
 * agent.
 *
 * A byte stream (a unix socketpair here; vsock or a serial line for other providers) that carries
 * frames of many streams at once.
 *
 *   offset  size  field            all integers little-endian
 *   0       4     payload length   0..FRAME_PAYLOAD_MAX
 *   4       4     stream id        chosen by the host, never 0, never used twice on one channel
 *   8       1     type             enum frame_type
 *   9       1     sub              meaning depends on the type, else 0
 *   10      2     reserved         0
 *   12      n     payload
 *
 * OPEN's payload starts with the u32 total length of the request; the bytes that do not fit into
 * OPEN follow in CONTROL_CONTINUE frames of the same stream. The operation starts when the request
 * is whole; until then only CONTINUE, CANCEL and CREDIT may come for it. Ids only increase.
 *
 * Life of a stream. Only the host opens one; each side ends its own direction.
 *
 *   host                                   agent
 *   OPEN(sub = enum chan_op, request) ---> runs the operation
 *   DATA(sub = channel) -----------------> e.g. stdin, bytes of a file being written
 *   EOF ---------------------------------> no more DATA from the host
 *   CONTROL(sub = enum chan_control) ----> signal, resize, discard...
 *          <----- EVENT(sub, payload)      e.g. the process started with this pid; a watch event
 *          <----- DATA(sub = channel)      e.g. stdout, stderr, bytes of a file being read
 *          <----- END(status, result)      the stream is over; the agent forgets it
 *   CANCEL ------------------------------> the host no longer cares; the agent answers END
 *
 *   states on the host:  open --EOF sent--> half --END received--> gone     (END may come from any)
 *   states on the agent: open --END sent--> gone
 *   Frames for a stream that is gone are ignored on both sides: they crossed on the way.
 *
 * Back-pressure. Only DATA is counted. For each stream and each direction a sender may have at most
 * the granted number of payload bytes under way; both sides start with
 * CHAN_WINDOW and the receiver grants more with CREDIT(u32) as it consumes. Going beyond the credit
 * is a protocol error.
 *
 * Any protocol error (unknown type, reserved not 0, too long, empty DATA, a frame that the other
 * side never sends, a stream that was never opened, credit exceeded) ends the channel: the host
 * then kills the sandbox. Nothing the agent sends can name another sandbox: identity is the
 * channel. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/base.h"

#define FRAME_HEADER      12
#define FRAME_PAYLOAD_MAX (128u * 1024)
#define CHAN_WINDOW       (512u * 1024)
#define CHAN_STREAMS_MAX  1024

enum frame_type {
    FRAME_OPEN = 1,
    FRAME_DATA,
    FRAME_EOF,
    FRAME_CONTROL,
    FRAME_EVENT,
    FRAME_END,
    FRAME_CANCEL,
    FRAME_CREDIT,
    FRAME_TYPE_MAX_
};

struct frame {
    uint32_t stream;
    uint8_t type;
    uint8_t sub;
    uint32_t len;
    const uint8_t *payload; /* points into the caller's buffer */
};

void frame_put_u32(uint8_t *p, uint32_t v); /* little-endian */
void frame_encode_header(uint8_t out[FRAME_HEADER], const struct frame *f);

/* Looks at the front of buf. Returns the number of bytes the frame takes (header and payload), 0 if
 * more bytes are needed, -EPROTO if this can never become a valid frame. */
int frame_decode(const uint8_t *buf, size_t len, struct frame *ret);
