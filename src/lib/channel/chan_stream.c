/* The streams of a channel, and the frames sent for them. */
#include <assert.h>

#include "lib/channel/chan_impl.h"

#define CREDIT_BATCH (CHAN_WINDOW / 4)

/* Index of the first stream with an id of at least `id`. */
static size_t lower_bound(const struct chan *c, uint32_t id)
{
    size_t lo = 0, hi = c->n_streams;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->streams[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct chan_stream *chan_stream_add(struct chan *c, uint32_t id)
{
    assert(id > c->last_id && c->n_streams < CHAN_STREAMS_MAX);
    c->streams = xgrow(c->streams, c->n_streams, &c->cap_streams, sizeof(c->streams[0]));
    struct chan_stream *s = NEW(struct chan_stream, .chan = c, .id = id, .mark = 1,
                                .send_credit = CHAN_WINDOW, .recv_credit = CHAN_WINDOW);
    c->streams[c->n_streams++] = s;
    c->last_id = id;
    return s;
}

struct chan_stream *chan_stream_find(struct chan *c, uint32_t id)
{
    size_t i = lower_bound(c, id);

    return i < c->n_streams && c->streams[i]->id == id ? c->streams[i] : NULL;
}

struct chan_stream *chan_stream_after(struct chan *c, uint32_t id)
{
    size_t i = id == UINT32_MAX ? c->n_streams : lower_bound(c, id + 1);

    return i < c->n_streams ? c->streams[i] : NULL;
}

void chan_stream_remove(struct chan *c, struct chan_stream *s)
{
    size_t i = lower_bound(c, s->id);

    assert(i < c->n_streams && c->streams[i] == s);
    c->n_streams--;
    memmove(c->streams + i, c->streams + i + 1, (c->n_streams - i) * sizeof(struct chan_stream *));
    if (s->assembling)
        c->assembly_size -= s->request_len;
    s->over = true;
}

void chan_stream_free(struct chan_stream *s)
{
    strbuf_done(&s->request);
    free(s);
}

void *chan_stream_owner(const struct chan_stream *s)
{
    return s->owner;
}

void chan_stream_set_owner(struct chan_stream *s, void *owner)
{
    s->owner = owner;
}

/* Casts const away: sendmsg(2) only reads, but its iovec has no const. */
static struct iovec part(const void *p, size_t len)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = len};
}

struct chan_stream *chan_open(struct chan *c, enum chan_op op, const void *req, size_t len,
                              void *owner)
{
    assert(c->side == CHAN_HOST);
    if (c->n_streams >= CHAN_STREAMS_MAX || c->last_id == UINT32_MAX || len > OPS_OPEN_MAX ||
        chan_backlog(c) + len > CHAN_BACKLOG_MAX / 2)
        return NULL;

    struct chan_stream *s = chan_stream_add(c, c->last_id + 1);
    s->op = (uint8_t)op;
    s->owner = owner;

    uint8_t total[4];
    size_t n = len <= FRAME_PAYLOAD_MAX - sizeof(total) ? len : FRAME_PAYLOAD_MAX - sizeof(total);
    frame_put_u32(total, (uint32_t)len);
    struct iovec parts[] = {part(total, sizeof(total)), part(req, n)};
    if (n == len) {
        chan_put(c, s->id, FRAME_OPEN, s->op, parts, ARRAY_SIZE(parts));
        return s;
    }

    chan_cork(c);
    chan_put(c, s->id, FRAME_OPEN, s->op, parts, ARRAY_SIZE(parts));
    for (size_t off = n; off < len; off += n) {
        n = len - off <= FRAME_PAYLOAD_MAX ? len - off : FRAME_PAYLOAD_MAX;
        struct iovec more = part((const uint8_t *)req + off, n);
        chan_put(c, s->id, FRAME_CONTROL, CONTROL_CONTINUE, &more, 1);
    }
    chan_uncork(c);
    return s;
}

void chan_eof(struct chan *c, struct chan_stream *s)
{
    assert(c->side == CHAN_HOST);
    if (s->eof || s->over)
        return;
    s->eof = true;
    chan_put(c, s->id, FRAME_EOF, 0, NULL, 0);
}

void chan_control(struct chan *c, struct chan_stream *s, enum chan_control what, const void *p,
                  size_t len)
{
    assert(c->side == CHAN_HOST && what != CONTROL_CONTINUE);
    struct iovec payload = part(p, len);
    if (!s->over)
        chan_put(c, s->id, FRAME_CONTROL, (uint8_t)what, &payload, 1);
}

void chan_cancel(struct chan *c, struct chan_stream *s)
{
    assert(c->side == CHAN_HOST);
    if (s->cancelled || s->over)
        return;
    s->cancelled = true;
    chan_put(c, s->id, FRAME_CANCEL, 0, NULL, 0);
}

void chan_event(struct chan *c, struct chan_stream *s, enum chan_event what, const void *p,
                size_t len)
{
    assert(c->side == CHAN_AGENT && len <= FRAME_PAYLOAD_MAX - 64);
    struct iovec payload = part(p, len);
    chan_put(c, s->id, FRAME_EVENT, (uint8_t)what, &payload, 1);
}

void chan_put_end(struct chan *c, uint32_t id, int status, const char *message, const void *result,
                  size_t len)
{
    if (!message || status == 0)
        message = "";
    size_t message_len = strlen(message);
    uint8_t head[8];

    assert(c->side == CHAN_AGENT && message_len + len <= FRAME_PAYLOAD_MAX - 64);
    assert(status >= 0 && status <= CHAN_STATUS_MAX);
    frame_put_u32(head, (uint32_t)status);
    frame_put_u32(head + 4, (uint32_t)message_len);
    struct iovec parts[] = {part(head, sizeof(head)), part(message, message_len + 1),
                            part(result, len)};
    chan_put(c, id, FRAME_END, 0, parts, ARRAY_SIZE(parts));
}

void chan_end(struct chan *c, struct chan_stream *s, int status, const char *message,
              const void *result, size_t len)
{
    uint32_t id = s->id;

    chan_stream_remove(c, s);
    chan_stream_free(s);
    chan_put_end(c, id, status, message, result, len);
}

/* Never more than a window, however much the peer grants, because the channel may have to queue
 * what is sent. */
size_t chan_credit(const struct chan_stream *s)
{
    const struct chan *c = s->chan;

    if (s->over || c->choked || c->write_dead || (c->side == CHAN_HOST && s->eof))
        return 0;
    return s->send_credit < CHAN_WINDOW ? s->send_credit : CHAN_WINDOW;
}

void chan_set_mark(struct chan_stream *s, size_t mark)
{
    assert(mark > 0 && mark <= CHAN_WINDOW / 2);
    s->mark = (uint32_t)mark;
}

void chan_send(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    assert(len <= s->send_credit && !(c->side == CHAN_HOST && s->eof));
    if (s->over)
        return;
    s->send_credit -= (uint32_t)len;
    for (size_t off = 0, n; off < len; off += n) {
        n = len - off <= FRAME_PAYLOAD_MAX ? len - off : FRAME_PAYLOAD_MAX;
        struct iovec payload = part((const uint8_t *)p + off, n);
        chan_put(c, s->id, FRAME_DATA, sub, &payload, 1);
    }
}

void chan_consumed(struct chan *c, struct chan_stream *s, size_t len)
{
    assert(len <= CHAN_WINDOW - s->recv_credit - s->owed);
    s->owed += (uint32_t)len;
    if (s->owed < CREDIT_BATCH || s->over)
        return;

    uint8_t grant[4];
    frame_put_u32(grant, s->owed);
    s->recv_credit += s->owed;
    s->owed = 0;
    struct iovec payload = part(grant, sizeof(grant));
    chan_put(c, s->id, FRAME_CREDIT, 0, &payload, 1);
}
