/* Shared by the files of the channel: chan.c moves bytes, chan_stream.c keeps streams and sends
 * frames for them, chan_dispatch.c judges the frames that come in. */
#pragma once

#include <sys/uio.h>

#include "lib/channel/chan.h"

#define CHAN_STATUS_MAX 4095 /* the highest errno the kernel can return */

/* recv_credit + owed + what the owner has not consumed yet == CHAN_WINDOW, always. */
struct chan_stream {
    struct chan *chan;
    void *owner;
    uint32_t id;
    uint32_t send_credit; /* bytes of DATA the peer still lets us send */
    uint32_t recv_credit; /* bytes of DATA we still let the peer send */
    uint32_t owed;        /* consumed by the owner, not granted to the peer again yet */
    uint32_t mark;        /* on_credit takes a send_credit below this for none */
    uint8_t op;
    bool eof;              /* the host has ended its direction */
    bool cancelled;        /* CANCEL was sent, or received */
    bool over;             /* host: END has come; the object lives until on_end returns */
    bool assembling;       /* agent: the request is not whole, no handler knows the stream */
    size_t request_len;    /* of the whole request, while assembling */
    struct strbuf request; /* the part of the request that has come */
};

struct chan {
    int fd;
    enum chan_side side;
    int error;       /* why the channel is dead, or 0 */
    bool write_dead; /* the peer no longer reads: output is dropped, input goes on to its end */
    bool choked;     /* CHAN_BACKLOG_HIGH was reached and half of it has not gone since */
    bool pumping;
    unsigned corked;
    struct chan_handlers handlers;
    void *arg;

    uint8_t *in; /* NULL between pumps unless a frame is unfinished or waits */
    size_t in_len, in_cap;
    struct strbuf out;
    size_t out_off; /* bytes at the front of `out` that were sent */

    /* Sorted by id: ids only grow, so a new stream goes to the end. */
    struct chan_stream **streams;
    size_t n_streams, cap_streams;
    uint32_t credit_turn; /* id of the stream whose on_credit was called last after a drain */
    uint32_t last_id;     /* the highest id that was ever opened */
    size_t assembly_size; /* sum of request_len over the streams under assembly */
};

/* chan.c. Sends or queues one frame; its payload is the concatenation of the parts (at most 3). */
void chan_put(struct chan *c, uint32_t id, enum frame_type type, uint8_t sub,
              const struct iovec *parts, size_t n_parts);

/* chan_stream.c */
struct chan_stream *chan_stream_add(struct chan *c, uint32_t id);
struct chan_stream *chan_stream_find(struct chan *c, uint32_t id);
/* The stream with the lowest id above `id`, or NULL. A walk by ids stays valid when callbacks open
 * and end streams. */
struct chan_stream *chan_stream_after(struct chan *c, uint32_t id);
/* Takes the stream out of the table; chan_stream_free releases it. */
void chan_stream_remove(struct chan *c, struct chan_stream *s);
void chan_stream_free(struct chan_stream *s);
/* Sends END for a stream, which need not exist as an object. */
void chan_put_end(struct chan *c, uint32_t id, int status, const char *message, const void *result,
                  size_t len);

/* chan_dispatch.c. Judges one frame and calls the handlers. 0 or -EPROTO. */
int chan_dispatch(struct chan *c, const struct frame *f);
/* Calls on_credit for every stream that may send, until the queue is full again; the next call goes
 * on where this one stopped. */
void chan_dispatch_credit(struct chan *c);
