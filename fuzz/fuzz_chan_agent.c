/* The agent's end of a channel, with any bytes as if from the host. The operation in OPEN chooses
 * what the agent does with the stream; the first byte whether the host reads, the second how the
 * bytes are cut. */
#include "chan_feed.h"

static const uint8_t bytes[CHAN_WINDOW];

static void on_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *req, size_t len)
{
    assert(len <= OPS_OPEN_MAX && chan_stream_owner(s) == NULL);
    feed_touch(req, len);
    if (op == OP_PING)
        chan_end(c, s, 0, NULL, req, len < 100 ? len : 100);
    else if (op == OP_FILE_READ)
        chan_send(c, s, CHAN_STDOUT, bytes, chan_credit(s));
    else if (op == OP_PROCESS_LIST)
        chan_end(c, s, 0, NULL, bytes, FRAME_PAYLOAD_MAX - 64);
    else if (op >= OP_MAX_)
        chan_end(c, s, ENOSYS, "no such operation", NULL, 0);
    feed_touch(req, len); /* it outlives the stream */
}

static void on_eof(struct chan *c, struct chan_stream *s)
{
    chan_event(c, s, EVENT_STARTED, "\1\0\0\0", 4);
}

static void on_control(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                       size_t len)
{
    assert(what > 0 && what < CONTROL_MAX_ && what != CONTROL_CONTINUE);
    feed_touch(p, len);
    if (what == CONTROL_DISCARD)
        chan_end(c, s, EPERM, "not allowed", NULL, 0);
}

static void on_cancel(struct chan *c, struct chan_stream *s)
{
    chan_end(c, s, ECANCELED, "cancelled", NULL, 0);
}

/* Echoes what it may, and consumes it. */
static void on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    size_t n = chan_credit(s) < len ? chan_credit(s) : len;

    assert(sub <= CHAN_KERNEL && len > 0);
    chan_send(c, s, CHAN_STDOUT, p, n);
    chan_consumed(c, s, len);
}

static void on_credit(struct chan *c, struct chan_stream *s)
{
    assert(chan_credit(s) > 0);
    chan_send(c, s, CHAN_STDERR, bytes, chan_credit(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct chan_handlers handlers = {.on_open = on_open,
                                                  .on_eof = on_eof,
                                                  .on_control = on_control,
                                                  .on_cancel = on_cancel,
                                                  .on_data = on_data,
                                                  .on_credit = on_credit};
    int peer;

    if (len < 2)
        return 0;
    struct chan *c = feed_new(CHAN_AGENT, &handlers, NULL, &peer);
    feed_run(c, peer, data + 2, len - 2, data[1] ? data[1] * 16u : len, data[0] & 1);
    return 0;
}
