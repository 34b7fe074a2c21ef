/* Moves bytes in and out of the channel's descriptor. */
#include "lib/channel/chan.h"

#include <assert.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/channel/chan_impl.h"

#define IN_SIZE       (FRAME_HEADER + FRAME_PAYLOAD_MAX)
#define IN_SMALL      4096
#define READS_MAX     16 /* per pump: a peer that never pauses must not keep others waiting */
#define FRAME_PARTS   3
#define OUT_INIT(out) strbuf_init(out, 2 * (size_t)CHAN_BACKLOG_MAX)

/* A hostile peer may send whatever its side can send, so every handler for that must be there. */
static bool handlers_complete(const struct chan_handlers *h, enum chan_side side)
{
    if (!h->on_data || !h->on_credit)
        return false;
    return side == CHAN_HOST ? h->on_event && h->on_end
                             : h->on_open && h->on_eof && h->on_control && h->on_cancel;
}

struct chan *chan_new(int fd, enum chan_side side, const struct chan_handlers *h, void *arg)
{
    struct chan *c = NEW(struct chan, .fd = fd, .side = side, .handlers = *h, .arg = arg);

    assert(handlers_complete(h, side));
    OUT_INIT(&c->out);
    c->error = fd_set_nonblock(fd, true);
    return c;
}

void chan_free(struct chan *c)
{
    if (!c)
        return;
    assert(!c->pumping);
    for (size_t i = 0; i < c->n_streams; i++)
        chan_stream_free(c->streams[i]);
    free(c->streams);
    free(c->in);
    strbuf_done(&c->out);
    close(c->fd);
    free(c);
}

int chan_fd(const struct chan *c)
{
    return c->fd;
}

void *chan_arg(const struct chan *c)
{
    return c->arg;
}

size_t chan_backlog(const struct chan *c)
{
    return c->out.len - c->out_off;
}

/* A choked channel whose queue was drained outside chan_pump needs one more pump to say so. */
bool chan_wants_write(const struct chan *c)
{
    return !c->error && !c->corked && (chan_backlog(c) > 0 || c->choked);
}

bool chan_wants_read(const struct chan *c)
{
    return !(c->side == CHAN_AGENT && c->choked);
}

static void out_drop(struct chan *c)
{
    strbuf_done(&c->out);
    OUT_INIT(&c->out);
    c->out_off = 0;
}

static void fail(struct chan *c, int error)
{
    if (!c->error)
        c->error = error;
    out_drop(c);
}

/* Returns the bytes sent, 0 if the peer is slow or gone. A peer that has closed may have sent
 * frames before, so reading goes on until it finds the end. */
static size_t try_send(struct chan *c, struct iovec *iov, size_t n_iov)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n_iov};
    ssize_t n;

    do
        n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t)n;
    if (errno == EPIPE || errno == ECONNRESET) {
        c->write_dead = true;
        c->choked = false;
        out_drop(c);
    } else if (errno != EAGAIN) {
        fail(c, -errno);
    }
    return 0;
}

static void queue(struct chan *c, const struct iovec *iov, size_t n_iov, size_t skip)
{
    for (size_t i = 0; i < n_iov; i++) {
        size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;

        skip -= gone;
        if (gone < iov[i].iov_len)
            strbuf_add(&c->out, (const char *)iov[i].iov_base + gone, iov[i].iov_len - gone);
    }
    if (c->out.truncated)
        fail(c, -ENOMEM);
    else if (chan_backlog(c) > CHAN_BACKLOG_MAX)
        fail(c, -ENOBUFS);
    else if (chan_backlog(c) >= CHAN_BACKLOG_HIGH)
        c->choked = true;
}

void chan_put(struct chan *c, uint32_t id, enum frame_type type, uint8_t sub,
              const struct iovec *parts, size_t n_parts)
{
    struct frame f = {.stream = id, .type = (uint8_t)type, .sub = sub};
    uint8_t header[FRAME_HEADER];
    struct iovec iov[1 + FRAME_PARTS] = {{.iov_base = header, .iov_len = sizeof(header)}};

    if (c->error || c->write_dead)
        return;
    assert(n_parts <= FRAME_PARTS);
    for (size_t i = 0; i < n_parts; i++) {
        iov[1 + i] = parts[i];
        f.len += (uint32_t)parts[i].iov_len;
    }
    frame_encode_header(header, &f);

    size_t sent = 0;
    if (chan_backlog(c) == 0 && !c->corked)
        sent = try_send(c, iov, 1 + n_parts);
    if (sent < sizeof(header) + f.len && !c->error && !c->write_dead)
        queue(c, iov, 1 + n_parts, sent);
}

int chan_flush(struct chan *c)
{
    while (!c->error && !c->corked && chan_backlog(c) > 0) {
        struct iovec iov = {c->out.buf + c->out_off, chan_backlog(c)};
        size_t n = try_send(c, &iov, 1);

        if (n == 0)
            break;
        c->out_off += n;
        if (chan_backlog(c) == 0) {
            out_drop(c);
        } else if (c->out_off > chan_backlog(c)) {
            /* moved only when less is left than has gone, so a slow reader costs no quadratic time
             */
            strbuf_consume(&c->out, c->out_off);
            c->out_off = 0;
        }
    }
    return c->error;
}

void chan_cork(struct chan *c)
{
    c->corked++;
}

void chan_uncork(struct chan *c)
{
    assert(c->corked > 0);
    c->corked--;
    chan_flush(c);
}

/* Dispatches the whole frames in the buffer and moves the rest to its front. */
static void dispatch_input(struct chan *c)
{
    size_t off = 0;

    while (!c->error && chan_wants_read(c)) {
        struct frame f;
        int n = frame_decode(c->in + off, c->in_len - off, &f);

        if (n == 0)
            break;
        if (n > 0) {
            off += (size_t)n;
            n = chan_dispatch(c, &f);
        }
        if (n < 0)
            fail(c, n);
    }
    c->in_len -= off;
    if (off > 0 && c->in_len > 0)
        memmove(c->in, c->in + off, c->in_len);
}

/* Reads once. There is no control buffer, so the kernel drops descriptors that a hostile peer
 * attaches. Returns whether there may be more. */
static bool read_input(struct chan *c)
{
    size_t room = c->in_cap - c->in_len;
    ssize_t n;

    do
        n = recv(c->fd, c->in + c->in_len, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        fail(c, n == 0 || errno == ECONNRESET ? -EPIPE : -errno);
        return false;
    }
    c->in_len += (size_t)n;
    return (size_t)n == room;
}

/* Moves input from the buffer on the stack to one on the heap, which has room for a frame of any
 * size. */
static void grow_input(struct chan *c)
{
    uint8_t *in = malloc(IN_SIZE);

    if (!in) {
        fail(c, -ENOMEM);
        return;
    }
    memcpy(in, c->in, c->in_len);
    c->in = in;
    c->in_cap = IN_SIZE;
}

/* Reads into a buffer on the stack first: most messages are small and whole, so they cost no
 * allocation and leave none behind. */
static void pump_input(struct chan *c)
{
    uint8_t small[IN_SMALL];
    bool more = true;

    if (!c->in) {
        c->in = small;
        c->in_cap = sizeof(small);
    }
    dispatch_input(c); /* frames that an agent could not take while its output was choked */
    for (unsigned i = 0; i < READS_MAX && more && !c->error && chan_wants_read(c); i++) {
        more = read_input(c);
        dispatch_input(c);
        if (c->in == small && (more || c->in_len > 0))
            grow_input(c);
    }
    if (c->in_len == 0 || c->error) {
        if (c->in != small)
            free(c->in);
        c->in = NULL;
        c->in_len = 0;
    }
}

int chan_pump(struct chan *c)
{
    assert(!c->pumping);
    c->pumping = true;
    chan_flush(c);
    if (!c->error && c->choked && chan_backlog(c) <= CHAN_BACKLOG_HIGH / 2) {
        c->choked = false;
        chan_dispatch_credit(c);
    }
    if (!c->error && chan_wants_read(c))
        pump_input(c);
    chan_flush(c);
    c->pumping = false;
    return c->error;
}
