/* Handlers that write down what they were called with, for the tests of the channel. */
#pragma once

#include <sys/socket.h>

#include "lib/channel/chan.h"

struct chan_log {
    unsigned opens, eofs, controls, cancels, events, ends, credits;
    struct chan_stream *stream; /* the last that a handler was called for; NULL after its end */
    uint8_t op, what, sub;
    int status;
    char message[128];
    struct strbuf payload; /* of the last open, control, event or end */
    struct strbuf data;    /* all that came */
    bool auto_end;         /* agent: answers at once, with the request as the result */
    bool auto_consume;
};

static void log_payload(struct chan_log *l, struct chan_stream *s, const void *p, size_t len)
{
    l->stream = s;
    strbuf_reset(&l->payload);
    strbuf_add(&l->payload, p, len);
}

static void log_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *p, size_t len)
{
    struct chan_log *l = chan_arg(c);

    l->opens++;
    l->op = op;
    if (l->auto_end)
        chan_end(c, s, 0, NULL, p, len < 1000 ? len : 1000);
    /* after the end: the request must still be readable */
    log_payload(l, l->auto_end ? NULL : s, p, len);
}

static void log_eof(struct chan *c, struct chan_stream *s)
{
    struct chan_log *l = chan_arg(c);

    l->eofs++;
    l->stream = s;
}

static void log_control(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                        size_t len)
{
    struct chan_log *l = chan_arg(c);

    l->controls++;
    l->what = what;
    log_payload(l, s, p, len);
}

static void log_cancel(struct chan *c, struct chan_stream *s)
{
    struct chan_log *l = chan_arg(c);

    l->cancels++;
    l->stream = s;
}

static void log_event(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                      size_t len)
{
    struct chan_log *l = chan_arg(c);

    l->events++;
    l->what = what;
    log_payload(l, s, p, len);
}

static void log_end(struct chan *c, struct chan_stream *s, int status, const char *message,
                    const void *result, size_t len)
{
    struct chan_log *l = chan_arg(c);

    /* The object still lives and does nothing any more. */
    chan_cancel(c, s);
    chan_eof(c, s);
    l->ends++;
    l->status = status;
    snprintf(l->message, sizeof(l->message), "%s", message);
    log_payload(l, NULL, result, len);
}

static void log_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    struct chan_log *l = chan_arg(c);

    l->sub = sub;
    l->stream = s;
    strbuf_add(&l->data, p, len);
    if (l->auto_consume)
        chan_consumed(c, s, len);
}

static void log_credit(struct chan *c, struct chan_stream *s)
{
    struct chan_log *l = chan_arg(c);

    l->credits++;
    l->stream = s;
}

static const struct chan_handlers log_handlers = {
    .on_open = log_open,
    .on_eof = log_eof,
    .on_control = log_control,
    .on_cancel = log_cancel,
    .on_event = log_event,
    .on_end = log_end,
    .on_data = log_data,
    .on_credit = log_credit,
};

static void chan_log_init(struct chan_log *l)
{
    memset(l, 0, sizeof(*l));
    strbuf_init(&l->payload, 4u << 20);
    strbuf_init(&l->data, 16u << 20);
}

static void chan_log_done(struct chan_log *l)
{
    strbuf_done(&l->payload);
    strbuf_done(&l->data);
}
