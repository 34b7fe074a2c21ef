/* A link: the channel to one sandbox's agent, polled on the loop, with the calls on it. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "lib/uv/handle.h"
#include "front/core/call.h"
#include "front/core/lifecycle.h"

struct link {
    struct sandbox *sandbox;
    struct chan *chan;
    uv_poll_t *poll;
    bool broken;
    bool pumping; /* callbacks run: the channel must not be freed */
    bool closing; /* free the link when they are done */
    struct list calls;
};

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct link *l)
{
    int events = l->broken ? 0
                           : (chan_wants_read(l->chan) ? UV_READABLE : 0) |
                                 (chan_wants_write(l->chan) ? UV_WRITABLE : 0);

    watch_for(l->poll, events, on_ready);
}

/* The channel broke. If it was closed, the sandbox has ended or was paused without memory. The
 * warden will tell which, and only then do the calls end: a client that is cut off looks at once
 * whether the sandbox still exists. A breach of the protocol can only come from inside, and is the
 * end of the sandbox. */
static void broke(struct link *l, int r)
{
    struct sandbox *b = l->sandbox;

    l->broken = true;
    watch(l);
    if (r == -EPIPE || r == -ECONNRESET)
        return;
    sandbox_log_add(&b->log, LOG_ERROR, FAULT_AGENT, 0,
                    "the agent inside broke the protocol (%s): the sandbox is ended", strerror(-r));
    sandbox_kill(b, NULL, NULL);
}

static void on_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
    struct link *l = poll->data;

    struct sandbox *b = sandbox_ref(l->sandbox); /* a callback may drop the last other reference */

    l->pumping = true;
    int r = chan_pump(l->chan);
    l->pumping = false;
    if (l->closing)
        link_free(l);
    else if (r < 0)
        broke(l, r);
    else
        watch(l);
    sandbox_unref(b);
}

static void on_event(struct chan *c UNUSED, struct chan_stream *s, uint8_t what, const void *p,
                     size_t len)
{
    struct call *call = chan_stream_owner(s);

    if (call && call->on_event)
        call->on_event(call, what, p, len);
}

static void on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    struct call *call = chan_stream_owner(s);

    if (call && !call->uncounted)
        call->sandbox->usage.total.bytes_out += len;
    if (call && call->on_data)
        call->on_data(call, sub, p, len);
    else
        chan_consumed(c, s, len);
}

static void pour_on(struct call *c)
{
    size_t n = call_credit(c);

    n = n < c->pouring_len ? n : c->pouring_len;
    if (n > 0)
        call_send(c, CHAN_STDIN, c->pouring, n);
    c->pouring += n;
    c->pouring_len -= n;
    if (c->pouring_len > 0)
        return;
    c->pouring = NULL;
    call_eof(c);
    if (c->on_credit)
        c->on_credit(c);
}

static void on_credit(struct chan *c UNUSED, struct chan_stream *s)
{
    struct call *call = chan_stream_owner(s);

    if (call && call->pouring)
        pour_on(call);
    else if (call && call->on_credit)
        call->on_credit(call);
}

static void on_end(struct chan *c UNUSED, struct chan_stream *s, int status, const char *message,
                   const void *result, size_t len)
{
    struct call *call = chan_stream_owner(s);

    if (!call)
        return;
    list_remove(&call->in_link);
    call->stream = NULL;
    call->on_end(call, status, message, result, len);
}

struct link *link_new(struct sandbox *b, int channel_fd)
{
    static const struct chan_handlers handlers = {
        .on_event = on_event, .on_data = on_data, .on_credit = on_credit, .on_end = on_end};
    struct link *l = NEW(struct link, .sandbox = b);

    l->chan = chan_new(channel_fd, CHAN_HOST, &handlers, l);
    l->poll = watch_new(b->front->loop, channel_fd, l);
    watch(l);
    return l;
}

/* A callback may end the sandbox, and the link with it. The link is freed only when all calls have
 * been told. */
void link_drop_calls(struct link *l)
{
    bool nested = l->pumping;

    l->pumping = true;
    while (!list_empty(&l->calls)) {
        struct call *c = LIST_FIRST(struct call, &l->calls, in_link);
        struct sg_error e;

        sandbox_gone_error(l->sandbox, &e);
        call_cancel(c);
        c->on_end(c, CALL_GONE, e.message, NULL, 0);
    }
    l->pumping = nested;
    if (nested || !l->closing)
        return;
    watch_drop(&l->poll);
    chan_free(l->chan);
    free(l);
}

void link_free(struct link *l)
{
    if (!l)
        return;
    l->closing = true;
    link_drop_calls(l);
}

int call_begin(struct call *c, struct sandbox *b, enum chan_op op, const struct strbuf *request,
               struct sg_error *e)
{
    struct link *l = b->link;

    c->sandbox = b;
    c->via = l;
    c->stream = NULL;
    c->in_link = (struct list){0};
    if (!l || l->broken || l->closing)
        return err_set(e, SG_ERR_GONE, -EPIPE, "the sandbox is not running any more");
    if (request && request->truncated)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "the request is larger than %u bytes",
                       OPS_OPEN_MAX);
    c->stream =
        chan_open(l->chan, op, request ? request->buf : NULL, request ? request->len : 0, c);
    if (!c->stream)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                       "the sandbox has too many operations under way: try again later");
    list_push(&l->calls, &c->in_link);
    if (!c->uncounted)
        b->used_ns = clock_ns();
    if (!c->uncounted && (op == OP_PROCESS_START || op == OP_KERNEL_EXECUTE))
        b->usage.total.executions++;
    watch(l);
    return 0;
}

bool sandbox_in_use(const struct sandbox *b)
{
    return b->holds > 0 || (b->link && LIST_FIND(const struct call, c, &b->link->calls, in_link,
                                                 !c->uncounted && !c->lasting));
}

bool sandbox_is_breaking(const struct sandbox *b)
{
    return b->link && b->link->broken;
}

void call_cancel(struct call *c)
{
    struct link *l = c->via;

    if (!c->stream)
        return;
    list_remove(&c->in_link);
    chan_stream_set_owner(c->stream, NULL);
    if (!l->broken)
        chan_cancel(l->chan, c->stream);
    c->stream = NULL;
    watch(l);
}

size_t call_credit(const struct call *c)
{
    return c->stream && !c->via->broken ? chan_credit(c->stream) : 0;
}

void call_send(struct call *c, uint8_t sub, const void *p, size_t len)
{
    if (!c->stream)
        return;
    if (!c->uncounted)
        c->sandbox->usage.total.bytes_in += len;
    chan_send(c->via->chan, c->stream, sub, p, len);
    watch(c->via);
}

void call_eof(struct call *c)
{
    if (!c->stream)
        return;
    chan_eof(c->via->chan, c->stream);
    watch(c->via);
}

void call_pour(struct call *c, const void *p, size_t len)
{
    c->pouring = p ? p : "";
    c->pouring_len = len;
    pour_on(c);
}

int call_write_file(struct call *c, struct sandbox *b, const char *user, const char *path,
                    uint32_t mode, const void *p, size_t len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&request, user);
    wire_put_str(&request, path);
    wire_put_u32(&request, mode);
    wire_put_u32(&request, FILE_PARENTS);
    wire_put_u32(&request, 0); /* no metadata */
    int r = call_begin(c, b, OP_FILE_WRITE, &request, e);
    if (r == 0)
        call_pour(c, p, len);
    return r;
}

void call_control(struct call *c, enum chan_control what, const void *p, size_t len)
{
    if (!c->stream)
        return;
    chan_control(c->via->chan, c->stream, what, p, len);
    watch(c->via);
}

void call_consumed(struct call *c, size_t len)
{
    if (!c->stream)
        return;
    chan_consumed(c->via->chan, c->stream, len);
    watch(c->via);
}

void sandbox_cork(struct sandbox *b)
{
    if (b->link)
        chan_cork(b->link->chan);
}

void sandbox_uncork(struct sandbox *b)
{
    if (!b->link)
        return;
    chan_uncork(b->link->chan);
    watch(b->link);
}
