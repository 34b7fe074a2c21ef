#include "guard/relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "guard/flow.h"
#include "lib/uv/handle.h"
#include "guard/pipes.h"

#define BUFFER     (64u * 1024)
#define TURN_BYTES (256u * 1024) /* then other flows have their turn */

/* One direction of a relay. */
struct way {
    int from, to;
    struct pipe_pair *pipe; /* while there is bulk; else NULL */
    size_t in_pipe;
    char *kept; /* bytes read and not written yet */
    size_t kept_len, kept_at;
    bool eof, shut; /* `from` has ended; `to` has been told */
    bool up;
};

struct relay {
    struct relay_order o;
    struct way up, down;
    uv_poll_t *sandbox, *server;
    uv_timer_t *timer;
    uint64_t used_ms;
    const char *error;
};

static char buffer[BUFFER]; /* used by the loop's thread only */

static bool has_pending(const struct way *w)
{
    return w->kept_len > 0 || w->in_pipe > 0;
}

static void keep(struct way *w, const char *p, size_t len)
{
    w->kept = xcalloc(1, len);
    memcpy(w->kept, p, len);
    w->kept_len = len;
    w->kept_at = 0;
}

static bool count(struct relay *r, const struct way *w, size_t n)
{
    return r->o.count(r->o.arg, w->up ? n : 0, w->up ? 0 : n);
}

/* Sends the bytes that are pending. 0: all are gone; -EAGAIN: the other side is full; else it is
 * broken. */
static int push(struct way *w)
{
    while (w->kept_len > 0) {
        ssize_t n = send(w->to, w->kept + w->kept_at, w->kept_len, MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        w->kept_at += (size_t)n;
        w->kept_len -= (size_t)n;
    }
    free(w->kept);
    w->kept = NULL;
    while (w->in_pipe > 0) {
        ssize_t n = splice(w->pipe->fds[0], NULL, w->to, NULL, w->in_pipe,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        w->in_pipe -= (size_t)n;
    }
    return 0;
}

static ssize_t pull_bulk(struct way *w)
{
    ssize_t n = splice(w->from, NULL, w->pipe->fds[1], NULL, w->pipe->size,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (n < 0)
        return -errno;
    w->in_pipe += (size_t)n;
    return n;
}

static ssize_t pull_small(struct way *w)
{
    ssize_t n = recv(w->from, buffer, sizeof(buffer), 0), sent;

    if (n <= 0)
        return n < 0 ? -errno : 0;
    sent = send(w->to, buffer, (size_t)n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        return -errno;
    if (sent < 0)
        sent = 0;
    if (sent < n)
        keep(w, buffer + sent, (size_t)(n - sent));
    if (n == sizeof(buffer) && !w->pipe)
        w->pipe = pipes_take();
    return n;
}

/* Reads some bytes. If splice reports the end, there may only be urgent data in the way; a plain
 * read tells. */
static ssize_t pull(struct way *w)
{
    ssize_t n = w->pipe ? pull_bulk(w) : 0;

    return n != 0 ? n : pull_small(w);
}

static void pass_end(struct way *w)
{
    if (w->eof && !w->shut && !has_pending(w)) {
        shutdown(w->to, SHUT_WR);
        w->shut = true;
    }
}

/* Moves the bytes that can be moved now. 0, or -errno: the connection is broken. */
static int move(struct relay *r, struct way *w)
{
    size_t moved = 0;
    int result = push(w);

    while (result == 0 && !w->eof && moved < TURN_BYTES) {
        ssize_t n = pull(w);
        if (n == 0)
            w->eof = true;
        if (n < 0)
            result = (int)n;
        if (n <= 0)
            break;
        moved += (size_t)n;
        if (!count(r, w, (size_t)n)) {
            r->error = "quota of bytes";
            return -EDQUOT;
        }
        result = push(w);
        if (!w->pipe)
            break; /* most pieces are small: a second one has hardly come yet */
    }
    if (w->pipe && w->in_pipe == 0 && moved < TURN_BYTES)
        pipes_give(steal_ptr(&w->pipe));
    if (result < 0 && result != -EAGAIN)
        return result;
    pass_end(w);
    return 0;
}

static void on_event(uv_poll_t *poll, int status, int events);

/* Reads a side only if there is room for its bytes, and writes one only if bytes wait for it. */
static void watch_both(struct relay *r)
{
    int sandbox = 0, server = 0;

    if (!r->up.eof && !has_pending(&r->up))
        sandbox |= UV_READABLE;
    if (has_pending(&r->up))
        server |= UV_WRITABLE;
    if (!r->down.eof && !has_pending(&r->down))
        server |= UV_READABLE;
    if (has_pending(&r->down))
        sandbox |= UV_WRITABLE;
    watch_for(r->sandbox, sandbox, on_event);
    watch_for(r->server, server, on_event);
}

static void way_done(struct way *w)
{
    free(w->kept);
    if (w->pipe && w->in_pipe > 0)
        pipes_discard(steal_ptr(&w->pipe));
    else if (w->pipe)
        pipes_give(steal_ptr(&w->pipe));
}

static void end(struct relay *r, bool reset)
{
    struct linger hard = {.l_onoff = 1};

    if (reset) {
        setsockopt(r->o.sandbox_fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        setsockopt(r->o.server_fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    }
    watch_drop(&r->sandbox);
    watch_drop(&r->server);
    alarm_drop(&r->timer);
    way_done(&r->up);
    way_done(&r->down);
    close(r->o.sandbox_fd);
    close(r->o.server_fd);
    r->o.done(r->o.arg, r->error);
    free(r);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct relay *r = poll->data;
    bool sandbox = poll == r->sandbox, broken;

    r->used_ms = uv_now(r->o.guard->loop);
    /* An error of the socket shows when it is read. */
    if (status < 0)
        events = UV_READABLE | UV_WRITABLE;
    broken = ((events & UV_READABLE) && move(r, sandbox ? &r->up : &r->down) < 0) ||
             ((events & UV_WRITABLE) && move(r, sandbox ? &r->down : &r->up) < 0);
    if (broken)
        end(r, true);
    else if (r->up.shut && r->down.shut)
        end(r, false);
    else
        watch_both(r);
}

static void on_idle(uv_timer_t *t)
{
    struct relay *r = t->data;
    uint64_t since_ms = uv_now(r->o.guard->loop) - r->used_ms;

    if (since_ms * 1000000 >= IDLE_NS)
        relay_reset(r, "idle");
    else
        alarm_set(t, IDLE_NS - since_ms * 1000000, on_idle);
}

struct relay *relay_new(const struct relay_order *o)
{
    struct relay *r = NEW(struct relay, .o = *o, .used_ms = uv_now(o->guard->loop));

    r->up = (struct way){.from = o->sandbox_fd, .to = o->server_fd, .up = true};
    r->down = (struct way){.from = o->server_fd, .to = o->sandbox_fd};
    r->sandbox = watch_new(o->guard->loop, o->sandbox_fd, r);
    r->server = watch_new(o->guard->loop, o->server_fd, r);
    r->timer = alarm_new(o->guard->loop, r);
    if (o->first_len > 0) {
        keep(&r->up, o->first, o->first_len);
        count(r, &r->up, o->first_len);
    }
    if (o->first_back_len > 0) {
        keep(&r->down, o->first_back, o->first_back_len);
        count(r, &r->down, o->first_back_len);
    }
    /* The sandbox's bytes from while the server was dialled are there already. If moving them
     * breaks the connection, the next event reports that again. */
    move(r, &r->up);
    push(&r->down);
    alarm_set(r->timer, IDLE_NS, on_idle);
    watch_both(r);
    return r;
}

void relay_reset(struct relay *r, const char *why)
{
    r->error = why;
    end(r, true);
}
