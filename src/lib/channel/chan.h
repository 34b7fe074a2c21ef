/* One end of a channel: frames in and out of a descriptor, streams with credit. See frame.h for the
 * protocol and wire/agent.h for the operations.
 *
 * The channel does no waiting. Its owner polls chan_fd() for reading while chan_wants_read(), for
 * writing while chan_wants_write(), and calls chan_pump(); callbacks run inside it. A callback may
 * call every function here but chan_pump and chan_free. A stream object is valid from
 * chan_open/on_open until its on_end has returned (host) or chan_end was called (agent), so an
 * owner drops its pointer there.
 *
 * Memory is bounded. Input: one frame, and CHAN_ASSEMBLY_MAX bytes of unfinished requests; nothing
 * is held while idle. Output: once CHAN_BACKLOG_HIGH is queued, and until half of it has gone,
 * chan_credit() is 0 and the agent takes no more input. chan_open() refuses later, when half of
 * CHAN_BACKLOG_MAX is queued: uploads must not keep other operations out. The host always takes
 * input, so the two ends cannot wait for each other. Events are not counted by credit: the agent
 * must stop producing them while chan_backlog() is over CHAN_BACKLOG_HIGH. Whoever passes
 * CHAN_BACKLOG_MAX loses the channel (-ENOBUFS). */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "lib/channel/frame.h"
#include "wire/agent.h"

#define CHAN_BACKLOG_HIGH (1u * 1024 * 1024)
#define CHAN_BACKLOG_MAX  (8u * 1024 * 1024)
#define CHAN_ASSEMBLY_MAX (4u * 1024 * 1024) /* of all streams of the agent together */
#define CHAN_CREDIT_MAX   (1u << 30)         /* a peer that grants more breaks the protocol */

struct chan;
struct chan_stream;

struct chan_handlers {
    /* agent side only: a request is whole. The payload is valid during the call. The agent answers
     * with chan_end now or later. */
    void (*on_open)(struct chan *c, struct chan_stream *s, uint8_t op, const void *req, size_t len);
    void (*on_eof)(struct chan *c, struct chan_stream *s);
    void (*on_control)(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                       size_t len);
    void (*on_cancel)(struct chan *c, struct chan_stream *s);
    /* host side only */
    void (*on_event)(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                     size_t len);
    /* status 0 or a positive errno. message is "" when 0; result is what follows it in the payload.
     */
    void (*on_end)(struct chan *c, struct chan_stream *s, int status, const char *message,
                   const void *result, size_t len);
    /* both: bytes arrived. The receiver owes chan_consumed() for them, now or later. */
    void (*on_data)(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len);
    /* both: chan_credit() was 0, or below the stream's mark, and is not any more. It is also called
     * once per stream when a full output queue has drained. */
    void (*on_credit)(struct chan *c, struct chan_stream *s);
};

enum chan_side { CHAN_HOST, CHAN_AGENT };

/* Takes ownership of fd and makes it non-blocking. Handlers a side never gets may be NULL,
 * all others must be there; asserted. */
struct chan *chan_new(int fd, enum chan_side side, const struct chan_handlers *h, void *arg);
/* Closes the descriptor and forgets all streams without callbacks. NULL is allowed. Not from inside
 * a callback; asserted. */
void chan_free(struct chan *c);
int chan_fd(const struct chan *c);
void *chan_arg(const struct chan *c);
/* Bytes queued for sending. */
size_t chan_backlog(const struct chan *c);
bool chan_wants_write(const struct chan *c);
/* False on an agent whose output queue is full: polling for input would then spin. */
bool chan_wants_read(const struct chan *c);

/* Reads and dispatches what is there, writes what can be written. Returns 0, -EPIPE when the peer
 * has closed, or another -errno (-EPROTO: the peer broke the protocol). After an error the channel
 * is dead: only chan_free makes sense. */
int chan_pump(struct chan *c);
/* Writes what can be written now. Returns the same as chan_pump, but never -EPIPE: only chan_pump
 * tells that the peer has closed, after all that the peer had sent before. */
int chan_flush(struct chan *c);
/* Between chan_cork and chan_uncork frames are only queued; the last chan_uncork sends them in one
 * write. For frames that belong together, such as a file and the program that uses it. Pairs may
 * nest. */
void chan_cork(struct chan *c);
void chan_uncork(struct chan *c);

/* Host: opens a stream. NULL if CHAN_STREAMS_MAX streams are open, the request is over
 * OPS_OPEN_MAX or the output queue is full. `owner` is chan_stream_owner(s). */
struct chan_stream *chan_open(struct chan *c, enum chan_op op, const void *req, size_t len,
                              void *owner);
/* chan_eof and chan_cancel do nothing the second time. After chan_cancel everything the agent still
 * sends arrives as before, until its END. */
void chan_eof(struct chan *c, struct chan_stream *s);
void chan_control(struct chan *c, struct chan_stream *s, enum chan_control what, const void *p,
                  size_t len);
void chan_cancel(struct chan *c, struct chan_stream *s);

/* Agent. The length of an event, and of a result plus its message, is at most FRAME_PAYLOAD_MAX -
 * 64; asserted. message may be NULL. */
void chan_event(struct chan *c, struct chan_stream *s, enum chan_event what, const void *p,
                size_t len);
void chan_end(struct chan *c, struct chan_stream *s, int status, const char *message,
              const void *result, size_t len);

/* Both. A side may send at most chan_credit() bytes, and none after chan_eof; it may not consume
 * more than arrived. All asserted. */
size_t chan_credit(const struct chan_stream *s);
/* For a sender that must not cut a piece to the credit there is: on_credit is called only when the
 * credit is at least `mark`. */
void chan_set_mark(struct chan_stream *s, size_t mark);
void chan_send(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len);
void chan_consumed(struct chan *c, struct chan_stream *s, size_t len);

void *chan_stream_owner(const struct chan_stream *s);
void chan_stream_set_owner(struct chan_stream *s, void *owner);
