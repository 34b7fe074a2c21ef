/* The host's end of a channel, with bytes as a hostile agent could send them. The first byte
 * chooses what the host does, the second how the bytes are cut. */
#include "chan_feed.h"

struct host {
    uint8_t mode;
    unsigned opens;
    size_t unconsumed[8];
};

enum { LAZY = 1, CANCEL_EARLY = 2, SEND = 4, REOPEN = 8, DEAF_AGENT = 16, CORKED = 32 };

/* All that the agent granted, as a fast source of stdin would. */
static void send_all(struct chan *c, struct chan_stream *s)
{
    static const uint8_t bytes[CHAN_WINDOW];

    chan_send(c, s, CHAN_STDIN, bytes, chan_credit(s));
}

static void open_one(struct chan *c)
{
    struct host *h = chan_arg(c);

    if (h->opens == ARRAY_SIZE(h->unconsumed))
        return;
    struct chan_stream *s =
        chan_open(c, OP_PROCESS_START, "request", 7, &h->unconsumed[h->opens++]);
    if (s && (h->mode & SEND))
        send_all(c, s);
}

static void on_event(struct chan *c, struct chan_stream *s, uint8_t what, const void *p, size_t len)
{
    const struct host *h = chan_arg(c);

    assert(what > 0 && what < EVENT_MAX_);
    feed_touch(p, len);
    if (h->mode & CANCEL_EARLY)
        chan_cancel(c, s);
    else
        chan_control(c, s, CONTROL_SIGNAL, "\17\0\0\0", 4);
    if (what == EVENT_WATCHING)
        chan_eof(c, s);
}

static void on_end(struct chan *c, struct chan_stream *s, int status, const char *message,
                   const void *result, size_t len)
{
    const struct host *h = chan_arg(c);

    assert(status >= 0 && (status > 0 || message[0] == '\0') && chan_credit(s) == 0);
    feed_touch(message, strlen(message));
    feed_touch(result, len);
    chan_cancel(c, s);
    if (h->mode & REOPEN)
        open_one(c);
}

static void on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    const struct host *h = chan_arg(c);
    size_t *unconsumed = chan_stream_owner(s);

    assert(sub <= CHAN_KERNEL && len > 0);
    feed_touch(p, len);
    *unconsumed += len;
    assert(*unconsumed <= CHAN_WINDOW);
    if ((h->mode & LAZY) && *unconsumed < CHAN_WINDOW / 2)
        return;
    chan_consumed(c, s, *unconsumed);
    *unconsumed = 0;
}

static void on_credit(struct chan *c, struct chan_stream *s)
{
    const struct host *h = chan_arg(c);

    assert(chan_credit(s) > 0);
    if (h->mode & SEND)
        send_all(c, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct chan_handlers handlers = {
        .on_event = on_event, .on_end = on_end, .on_data = on_data, .on_credit = on_credit};
    struct host h = {0};
    int peer;

    if (len < 2)
        return 0;
    h.mode = data[0];
    struct chan *c = feed_new(CHAN_HOST, &handlers, &h, &peer);
    if (h.mode & CORKED)
        chan_cork(c);
    for (unsigned i = 0; i < 3; i++)
        open_one(c);
    if (h.mode & CORKED)
        chan_uncork(c);
    feed_run(c, peer, data + 2, len - 2, data[1] ? data[1] * 16u : len, !(h.mode & DEAF_AGENT));
    return 0;
}
