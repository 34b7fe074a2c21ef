#include "engine/session.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/channel/wire.h"

#define OTHERS_MAX 4

static void on_data(struct chan *chan, struct chan_stream *s, uint8_t sub, const void *p,
                    size_t len)
{
    struct call *c = chan_stream_owner(s);

    if (c && c->on_data)
        c->on_data(c, sub, p, len);
    if (!c || !c->owes)
        chan_consumed(chan, s, len);
}

/* Of programs, the library looks at no event. */
static void on_event(struct chan *chan UNUSED, struct chan_stream *s UNUSED, uint8_t what UNUSED,
                     const void *p UNUSED, size_t len UNUSED)
{
}

static void on_credit(struct chan *chan UNUSED, struct chan_stream *s)
{
    struct call *c = chan_stream_owner(s);

    if (c && c->on_credit)
        c->on_credit(c);
}

/* The message comes from inside: only printable characters are kept, to be safe wherever it is
 * shown. */
static void copy_message(char *to, size_t cap, const char *from)
{
    size_t i = 0;

    for (; from[i] && i + 1 < cap; i++)
        to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
    to[i] = '\0';
}

static void on_end(struct chan *chan UNUSED, struct chan_stream *s, int status, const char *message,
                   const void *result, size_t len)
{
    struct call *c = chan_stream_owner(s);

    if (!c)
        return;
    c->ended = true;
    c->stream = NULL;
    c->status = status;
    copy_message(c->message, sizeof(c->message), message);
    strbuf_add(&c->result, result, len);
}

static const struct chan_handlers handlers = {
    .on_event = on_event, .on_end = on_end, .on_data = on_data, .on_credit = on_credit};

struct chan *session_open(int channel_fd)
{
    return chan_new(channel_fd, CHAN_HOST, &handlers, NULL);
}

int session_call_begin(struct chan *chan, struct call *c, enum chan_op op,
                       const struct strbuf *request, struct sg_error *e)
{
    strbuf_init(&c->result, FRAME_PAYLOAD_MAX);
    if (request->truncated)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "arguments and environment are over %u KiB: pass data in files",
                       OPS_OPEN_MAX / 1024);
    c->stream = chan_open(chan, op, request->buf, request->len, c);
    if (!c->stream)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "too many operations at once in this sandbox");
    return 0;
}

void session_call_done(struct call *c)
{
    if (c->stream)
        chan_stream_set_owner(c->stream, NULL);
    strbuf_done(&c->result);
}

int session_call_error(const struct call *c, struct sg_error *e)
{
    if (c->status == 0)
        return 0;
    /* EUSERS is the agent's code for an unknown user */
    return err_set(e, c->status == EUSERS ? SG_ERR_NOT_FOUND : err_kind_of(c->status), -c->status,
                   "%s", c->message);
}

bool session_call_send(struct chan *chan, struct call *c, const char *data, size_t len,
                       size_t *sent)
{
    while (c->stream && *sent < len) {
        size_t n = len - *sent, credit = chan_credit(c->stream);

        if (n > credit)
            n = credit;
        if (n == 0)
            return false;
        chan_send(chan, c->stream, CHAN_STDIN, data + *sent, n);
        *sent += n;
    }
    return true;
}

int session_step(struct chan *chan, struct pollfd *others, size_t n, uint64_t deadline_ns,
                 struct sg_error *e)
{
    struct pollfd p[1 + OTHERS_MAX];
    int r;

    p[0] = (struct pollfd){.fd = chan_fd(chan), .events = POLLIN};
    if (chan_wants_write(chan))
        p[0].events |= POLLOUT;
    for (size_t i = 0; i < n; i++)
        p[1 + i] = others[i];
    r = poll(p, 1 + n, deadline_ns ? clock_poll_ms(deadline_ns) : -1);
    for (size_t i = 0; i < n; i++)
        others[i].revents = r > 0 ? p[1 + i].revents : 0;
    if (r <= 0)
        return r == 0 || errno == EINTR ? 0 : err_errno(e, "wait for the sandbox");
    if (p[0].revents == 0)
        return 0;
    r = chan_pump(chan);
    if (r == -EPROTO)
        return err_set(e, SG_ERR_GONE, r, "the sandbox broke the protocol and was ended");
    if (r < 0)
        return err_set(e, SG_ERR_GONE, r, "the sandbox has ended");
    return 0;
}

int session_wait(struct chan *chan, struct call *c, uint64_t deadline_ns, struct sg_error *e)
{
    while (!c->ended) {
        int r = session_step(chan, NULL, 0, deadline_ns, e);
        if (r < 0)
            return r;
        if (deadline_ns && !c->ended && clock_ns() >= deadline_ns)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox does not answer");
    }
    return 0;
}
