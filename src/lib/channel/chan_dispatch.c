/* Judges incoming frames and gives them to their streams. Every frame is hostile input: this file
 * checks it against the state of its stream before a handler hears of it. It touches no stream
 * after a handler was called, because the handler may have ended the stream. */
#include "lib/channel/chan_impl.h"
#include "lib/channel/wire.h"

static void call_open(struct chan *c, struct chan_stream *s, const void *req, size_t len)
{
    s->assembling = false;
    c->handlers.on_open(c, s, s->op, req, len);
}

/* Moves the request's bytes out of the stream first: on_open may end the stream while it reads
 * them. */
static void finish_assembly(struct chan *c, struct chan_stream *s)
{
    size_t len;
    AUTO(free_p) char *request = strbuf_detach(&s->request, &len);

    c->assembly_size -= s->request_len;
    call_open(c, s, request, len);
}

static void begin_assembly(struct chan *c, struct chan_stream *s, const void *p, size_t len,
                           size_t total)
{
    if (total > OPS_OPEN_MAX) {
        chan_end(c, s, E2BIG, "request too long: shorten the arguments or the environment", NULL,
                 0);
        return;
    }
    if (total > CHAN_ASSEMBLY_MAX - c->assembly_size) {
        chan_end(c, s, E2BIG, "too many long requests at once: wait for one to be answered", NULL,
                 0);
        return;
    }
    s->assembling = true;
    s->request_len = total;
    c->assembly_size += total;
    strbuf_init(&s->request, total);
    strbuf_add(&s->request, p, len);
}

static int dispatch_open(struct chan *c, const struct frame *f)
{
    struct wire_reader r = wire_reader_of(f->payload, f->len);

    size_t total = wire_get_u32(&r), len = (size_t)(r.end - r.p);
    if (f->stream <= c->last_id || len > total)
        return -EPROTO;
    if (c->n_streams >= CHAN_STREAMS_MAX) {
        c->last_id = f->stream;
        chan_put_end(c, f->stream, EAGAIN, "too many operations at once: wait for one to end", NULL,
                     0);
        return 0;
    }

    struct chan_stream *s = chan_stream_add(c, f->stream);
    s->op = f->sub;
    if (len == total)
        call_open(c, s, r.p, len);
    else
        begin_assembly(c, s, r.p, len, total);
    return 0;
}

static int dispatch_continue(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    if (!s->assembling || f->len > s->request_len - s->request.len)
        return -EPROTO;
    strbuf_add(&s->request, f->payload, f->len);
    if (s->request.truncated)
        chan_end(c, s, ENOMEM, "no memory for the request: raise the memory limit", NULL, 0);
    else if (s->request.len == s->request_len)
        finish_assembly(c, s);
    return 0;
}

static int dispatch_control(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    if (f->sub == CONTROL_CONTINUE)
        return dispatch_continue(c, s, f);
    if (s->assembling)
        return -EPROTO;
    c->handlers.on_control(c, s, f->sub, f->payload, f->len);
    return 0;
}

static int dispatch_cancel(struct chan *c, struct chan_stream *s)
{
    if (s->cancelled)
        return -EPROTO;
    s->cancelled = true;
    if (s->assembling)
        chan_end(c, s, ECANCELED, "cancelled before the request was whole", NULL, 0);
    else
        c->handlers.on_cancel(c, s);
    return 0;
}

static int dispatch_eof(struct chan *c, struct chan_stream *s)
{
    if (s->assembling || s->eof)
        return -EPROTO;
    s->eof = true;
    c->handlers.on_eof(c, s);
    return 0;
}

static int dispatch_data(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    if (s->assembling || (c->side == CHAN_AGENT && s->eof) || f->len > s->recv_credit)
        return -EPROTO;
    s->recv_credit -= f->len;
    c->handlers.on_data(c, s, f->sub, f->payload, f->len);
    return 0;
}

static int dispatch_credit(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    struct wire_reader r = wire_reader_of(f->payload, f->len);
    bool had_none = chan_credit(s) < s->mark;

    uint32_t grant = wire_get_u32(&r);
    if (grant == 0 || grant > CHAN_CREDIT_MAX - s->send_credit)
        return -EPROTO;
    s->send_credit += grant;
    if (had_none && chan_credit(s) >= s->mark && !s->assembling)
        c->handlers.on_credit(c, s);
    return 0;
}

static int dispatch_end(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    struct wire_reader r = wire_reader_of(f->payload, f->len);

    uint32_t status = wire_get_u32(&r);
    const char *message = wire_get_str(&r, FRAME_PAYLOAD_MAX);
    if (r.bad || status > CHAN_STATUS_MAX || (status == 0 && message[0] != '\0'))
        return -EPROTO;
    chan_stream_remove(c, s);
    c->handlers.on_end(c, s, (int)status, message, r.p, (size_t)(r.end - r.p));
    chan_stream_free(s);
    return 0;
}

/* Whether the other side may send frames of this type at all, whether the stream is still there or
 * not. */
static bool type_expected(enum chan_side side, uint8_t type)
{
    static const unsigned to_agent = 1u << FRAME_OPEN | 1u << FRAME_DATA | 1u << FRAME_EOF |
                                     1u << FRAME_CONTROL | 1u << FRAME_CANCEL | 1u << FRAME_CREDIT;
    static const unsigned to_host =
        1u << FRAME_DATA | 1u << FRAME_EVENT | 1u << FRAME_END | 1u << FRAME_CREDIT;

    return ((side == CHAN_AGENT ? to_agent : to_host) >> type & 1) != 0;
}

static int dispatch_to_stream(struct chan *c, struct chan_stream *s, const struct frame *f)
{
    switch ((enum frame_type)f->type) {
    case FRAME_DATA:
        return dispatch_data(c, s, f);
    case FRAME_EOF:
        return dispatch_eof(c, s);
    case FRAME_CONTROL:
        return dispatch_control(c, s, f);
    case FRAME_EVENT:
        c->handlers.on_event(c, s, f->sub, f->payload, f->len);
        return 0;
    case FRAME_END:
        return dispatch_end(c, s, f);
    case FRAME_CANCEL:
        return dispatch_cancel(c, s);
    case FRAME_CREDIT:
        return dispatch_credit(c, s, f);
    case FRAME_OPEN:
    case FRAME_TYPE_MAX_:
        break;
    }
    return -EPROTO;
}

int chan_dispatch(struct chan *c, const struct frame *f)
{
    if (!type_expected(c->side, f->type))
        return -EPROTO;
    if (f->type == FRAME_OPEN)
        return dispatch_open(c, f);

    struct chan_stream *s = chan_stream_find(c, f->stream);
    if (!s)
        return f->stream <= c->last_id ? 0 : -EPROTO; /* ignored if the stream is gone; an error if
                                                       * it never was */
    return dispatch_to_stream(c, s, f);
}

void chan_dispatch_credit(struct chan *c)
{
    for (size_t left = c->n_streams; left > 0 && !c->error && !c->choked; left--) {
        struct chan_stream *s = chan_stream_after(c, c->credit_turn);

        if (!s)
            s = chan_stream_after(c, 0);
        if (!s)
            return;
        c->credit_turn = s->id;
        if (chan_credit(s) > 0 && !s->assembling)
            c->handlers.on_credit(c, s);
    }
}
