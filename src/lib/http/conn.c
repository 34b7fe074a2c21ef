/* The states of a connection.
 *
 *   FIRST --> HANDSHAKE --> HEAD    a listener for both TLS and plain HTTP; or straight to HEAD
 *
 *   HANDSHAKE --> HEAD --> REQUEST ---------> IDLE --> HEAD ...
 *                  |         |   |             ^
 *                  |         |   `--> SKIP ----'        the rest of a body nobody wanted
 *                  |         `------> PIPE              taken over
 *                  v                    |
 *                LINGER <---------------'               from every state; CLOSED after it
 *
 * The connection works in two steps, which `use` repeats until neither does anything:
 *   advance  does what is due without new bytes: sends, tells the owner, ends the request;
 *   feed     gives bytes to the state, which takes some of them, or none.
 * Only these two call the owner, never a function of http.h: those change the request and wake the
 * connection. So no callback is ever called from inside a call, and on_close comes when all of the
 * owner's code has returned.
 *
 * Reading. One request at a time: until its answer is complete nothing is read, and the next
 * request waits in the socket (or, if it came in one piece with the first, in c->in). A body that
 * nobody wants yet waits in the same way. The poll stays armed for READABLE until unwanted bytes
 * come (read_off): most clients send none, and changing a poll costs two system calls.
 *
 * How the server notices that a client went away while nothing is read: the poll is always armed
 * for DISCONNECT (EPOLLRDHUP). So a client that only shuts down its sending direction before it has
 * its answer counts as gone, too. Two exceptions: an answer that is complete is still sent, and in
 * a connection that was taken over each direction ends by itself.
 *
 * Who reads when. The event that announces a head reads it. Bodies are read as work in slices
 * (work.h), one read for each event, so that clients with long bodies take turns and heads do not
 * wait for them.
 *
 * Clocks, all checked every HTTP_TICK_MS:
 *   FIRST, HANDSHAKE, HEAD   head_ms; the first head counts from the accept on
 *   IDLE              idle_ms
 *   REQUEST           body_rate, while the body is wanted, not paused, and has room (make.c)
 *   SKIP              head_ms
 *   LINGER            HTTP_LINGER_MS, once our direction is closed
 *   any               stall_ms, while something waits that the client does not take */
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/http/impl.h"

#define READS_MAX     4    /* in a row, when no event would announce the rest */
#define TLS_HANDSHAKE 0x16 /* the type of the first record of TLS; no method begins with it */

static uint64_t now_ms(const struct http_conn *c)
{
    return uv_now(c->server->loop);
}

static void enter(struct http_conn *c, enum conn_state state)
{
    c->state = state;
    c->since = now_ms(c);
}

void conn_wake(struct http_conn *c)
{
    struct http_server *s = c->server;

    if (c->dirty || c->entered || c->state == CONN_CLOSED)
        return;
    c->dirty = true;
    list_append(&s->dirty, &c->in_dirty);
    if (s->n_dirty++ == 0)
        server_wake(s);
}

void conn_lose(struct http_conn *c)
{
    c->gone = true;
    conn_wake(c);
}

/* Refuses bytes that are no request. The answer has an id like any other. */
static void refuse_bytes(struct http_conn *c, int status, const char *message)
{
    struct http_req none = {.method = HTTP_M_OTHER,
                            .method_name = "",
                            .target = "",
                            .path = "",
                            .query = "",
                            .host = "",
                            .status = status,
                            .fault = status,
                            .fault_text = message,
                            .server = c->server};

    id_random(none.id);
    memcpy(none.peer, c->peer, sizeof(none.peer));
    answer_refusal(&c->out, &none);
    if (c->server->on_over)
        c->server->on_over(&none);
}

void conn_refuse(struct http_conn *c, int status, const char *message)
{
    struct req *r = c->req;

    if (c->gone)
        return;
    if (c->state == CONN_SKIP || c->state == CONN_LINGER || (r && r->started)) {
        conn_lose(c);
        return;
    }
    c->out_since = now_ms(c);
    if (r) {
        r->pub.status = status;
        http_failed(&r->pub, status, message);
        r->pub.answered_ns = clock_ns();
        answer_refusal(&c->out, &r->pub);
        r->started = true;
        r->keep_alive = false;
        r->answer = ANSWER_DONE;
    } else {
        refuse_bytes(c, status, message);
        enter(c, CONN_LINGER);
    }
    conn_wake(c);
}

/* ---- advance --------------------------------------------------------------------------------- */

static void tell_close(struct req *r)
{
    void (*on_close)(struct http_req *) = r->pub.on_close;

    r->pub.on_close = NULL;
    if (r->pub.server->on_over)
        r->pub.server->on_over(&r->pub);
    if (on_close)
        on_close(&r->pub);
}

static void drop_request(struct http_conn *c)
{
    io_keep(c, 0);
    req_free(steal_ptr(&c->req));
}

/* The answer is complete, and the kernel has all of it. */
static void end_request(struct http_conn *c)
{
    struct req *r = c->req;

    tell_close(r);
    if (!r->keep_alive || c->server->draining || !body_skippable(r)) {
        drop_request(c);
        enter(c, CONN_LINGER);
    } else if (r->body_over) {
        drop_request(c);
        enter(c, CONN_IDLE);
    } else {
        enter(c, CONN_SKIP);
    }
}

static bool advance_request(struct http_conn *c)
{
    struct req *r = c->req;

    if (r->answer == ANSWER_DONE) {
        if (io_waiting(c) > 0)
            return false;
        end_request(c);
        return true;
    }
    if (r->choked && io_waiting(c) <= HTTP_WRITE_HIGH / 2) {
        r->choked = false;
        if (r->pub.on_writable)
            r->pub.on_writable(&r->pub);
        return true;
    }
    return body_tell_end(r);
}

static bool advance(struct http_conn *c)
{
    if (!c->gone && !c->blocked)
        io_flush(c);
    if (c->gone)
        return false;
    switch (c->state) {
    case CONN_REQUEST:
    case CONN_PIPE:
        return advance_request(c);
    case CONN_SKIP:
        if (!c->req->body_over)
            return false;
        drop_request(c);
        enter(c, CONN_IDLE);
        return true;
    case CONN_LINGER:
        if (c->shut || io_waiting(c) > 0)
            return false;
        io_shutdown(c);
        c->shut = true;
        enter(c, CONN_LINGER);
        return true;
    case CONN_FIRST:
    case CONN_HANDSHAKE:
    case CONN_HEAD:
    case CONN_IDLE:
    case CONN_CLOSED:
        return false;
    }
    return false;
}

/* ---- feed ------------------------------------------------------------------------------------ */

static size_t feed_head(struct http_conn *c, const char *p, size_t n)
{
    const char *why = "";
    int len = head_scan(&c->scan, &c->server->limits, p, n, &why), status = -len;

    if (len == 0)
        return 0;
    struct req *r = len > 0 ? req_new(p, (size_t)len, &c->scan, &status, &why) : NULL;
    c->scan = (struct head_scan){0};
    if (!r) {
        conn_refuse(c, status, why);
        return n;
    }
    r->conn = c;
    r->pub.server = c->server;
    r->pub.tls = c->ssl != NULL;
    r->pub.scarce = c->scarce;
    memcpy(r->pub.peer, c->peer, sizeof(c->peer));
    r->pub.party = work_party_of(c->peer);
    r->commits = c->server->commits->made;
    c->req = r;
    enter(c, CONN_REQUEST);
    c->server->on_request(&r->pub);
    return (size_t)len;
}

static size_t feed(struct http_conn *c, const char *p, size_t n)
{
    ssize_t skipped;

    if (n == 0)
        return 0;
    switch (c->state) {
    case CONN_IDLE:
        enter(c, CONN_HEAD);
        return feed_head(c, p, n);
    case CONN_HEAD:
        return feed_head(c, p, n);
    case CONN_REQUEST:
    case CONN_PIPE:
        return body_feed(c->req, p, n);
    case CONN_SKIP:
        skipped = body_skip(c->req, p, n);
        if (skipped >= 0)
            return (size_t)skipped;
        drop_request(c);
        enter(c, CONN_LINGER);
        return n;
    case CONN_LINGER:
        return n;
    case CONN_FIRST:
    case CONN_HANDSHAKE:
    case CONN_CLOSED:
        return 0;
    }
    return 0;
}

/* Returns how many of the bytes were used. */
static size_t use(struct http_conn *c, const char *p, size_t n)
{
    size_t used = 0;

    for (;;) {
        bool moved = advance(c);
        if (c->gone)
            return n;
        size_t k = feed(c, p + used, n - used);
        used += k;
        if (!moved && k == 0)
            return used;
    }
}

static void use_rest(struct http_conn *c)
{
    c->in_off += use(c, c->in.buf + c->in_off, c->in.len - c->in_off);
    if (c->in_off == c->in.len) {
        strbuf_done(&c->in);
    } else if (c->in_off > 0) {
        strbuf_consume(&c->in, c->in_off);
    }
    c->in_off = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool reads_body(const struct http_conn *c)
{
    return c->state == CONN_REQUEST || c->state == CONN_PIPE;
}

static bool wants_read(const struct http_conn *c)
{
    return reads_body(c) ? body_flows(c->req) : c->state != CONN_CLOSED;
}

/* Bytes that may have to be kept are read in small pieces only. */
static size_t read_size(const struct http_conn *c)
{
    size_t most = HTTP_READ_SIZE;

    if (c->state == CONN_LINGER)
        return most;
    if (!c->req)
        return HTTP_READ_HEAD;
    if (c->req->pub.body_piece > 0 && c->req->pub.body_piece < most)
        most = c->req->pub.body_piece;
    if (c->state == CONN_PIPE)
        return most;
    if (c->req->pub.content_length < 0)
        return most < HTTP_READ_CHUNKS ? most : HTTP_READ_CHUNKS;
    return c->req->body_left < most ? (size_t)c->req->body_left : most;
}

static void read_end(struct http_conn *c)
{
    if (c->state == CONN_PIPE) {
        c->req->body_over = true;
        c->hangup_off = true;
    } else {
        conn_lose(c);
    }
}

static void read_some(struct http_conn *c)
{
    char *buf = c->server->buf;
    ssize_t n;

    /* A body that was paused goes on. The bytes that it left in c->in come before any new ones, for
     * which there might be no room. */
    if (c->req && c->in.len > 0) {
        use_rest(c);
        if (c->gone || c->in.len > 0 || !wants_read(c))
            return;
    }
    n = io_read(c, buf, read_size(c));
    if (n == -EAGAIN)
        return;
    if (n < 0) {
        conn_lose(c);
    } else if (n == 0) {
        read_end(c);
    } else if (c->in.len > 0) {
        strbuf_add(&c->in, buf, (size_t)n);
        explicit_bzero(buf, (size_t)n); /* it may hold a body_secret: one copy is enough */
        if (c->in.truncated)
            conn_lose(c);
        use_rest(c);
    } else {
        size_t used = use(c, buf, (size_t)n);
        strbuf_add(&c->in, buf + used, (size_t)n - used);
    }
}

static void handshake(struct http_conn *c)
{
    bool want_write = false;
    int r = tls_handshake(c->ssl, &want_write);

    if (r == 0) {
        c->state = CONN_HEAD; /* the clock of the first head runs since the accept */
        c->again = true;
    } else if (r == -EAGAIN) {
        c->blocked = want_write;
    } else {
        conn_lose(c);
    }
}

/* Looks at the first byte and leaves it where it is. The clock of the first head runs since the
 * accept, whatever follows. */
static void tell_apart(struct http_conn *c)
{
    char first;
    ssize_t n = recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == 1 && first == TLS_HANDSHAKE && (c->ssl = tls_open(c->server->tls, c->fd))) {
        c->state = CONN_HANDSHAKE;
        handshake(c);
    } else if (n == 1 && first != TLS_HANDSHAKE) {
        c->state = CONN_HEAD;
        read_some(c);
    } else {
        conn_lose(c);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void close_now(struct http_conn *c)
{
    struct req *r = steal_ptr(&c->req);
    struct linger reset = {.l_onoff = 1};

    c->gone = true;
    c->state = CONN_CLOSED;
    server_conn_closed(c->server, c);
    /* An answer without a length ends with the stream, so an aborted one must end with a reset: the
     * client would take it for whole. */
    if (r && r->aborted && r->answer == ANSWER_TO_CLOSE)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (r) {
        tell_close(r);
        req_free(r);
    }
    SSL_free(c->ssl);
    close(c->fd);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    c->server->waiting -= c->counted;
}

static void on_event(uv_poll_t *poll, int status, int events);

static void arm(struct http_conn *c)
{
    if (wants_read(c))
        c->read_off = false;
    int events = (c->read_off ? 0 : UV_READABLE) | (c->hangup_off ? 0 : UV_DISCONNECT) |
                 (c->blocked ? UV_WRITABLE : 0);

    if (events == c->armed)
        return;
    c->armed = events;
    if ((events ? uv_poll_start(&c->poll, events, on_event) : uv_poll_stop(&c->poll)) < 0)
        conn_lose(c);
}

static void read_body(struct work *w)
{
    struct http_conn *c = CONTAINER_OF(w, struct http_conn, reading);

    c->entered = true;
    if (!c->gone && wants_read(c))
        read_some(c);
    conn_settle(c);
}

static void post_reading(struct http_conn *c)
{
    c->reading.run = read_body;
    work_post(c->server->works, &c->reading, c->req->pub.party);
}

void conn_settle(struct http_conn *c)
{
    c->entered = true;
    if (!c->gone)
        use_rest(c);
    for (unsigned i = 0; c->again && !c->gone && !reads_body(c) && wants_read(c) && i < READS_MAX;
         i++)
        read_some(c);
    c->entered = false;
    if (c->gone) {
        close_now(c);
        return;
    }
    arm(c);
    if (c->again && wants_read(c) && reads_body(c))
        post_reading(c);
    else if (c->again && wants_read(c))
        conn_wake(c);
}

static void hangup(struct http_conn *c)
{
    if (c->state == CONN_PIPE || (c->req && c->req->answer == ANSWER_DONE))
        c->hangup_off = true;
    else
        conn_lose(c);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct http_conn *c = CONTAINER_OF(poll, struct http_conn, poll);

    if (c->state == CONN_CLOSED)
        return;
    c->entered = true;
    if (events & UV_WRITABLE)
        c->blocked = false;
    if (status < 0) {
        conn_lose(c);
    } else if (c->state == CONN_FIRST) {
        tell_apart(c);
    } else if (c->state == CONN_HANDSHAKE) {
        handshake(c);
    } else if (wants_read(c)) {
        if ((events & (UV_READABLE | UV_DISCONNECT)) && reads_body(c))
            post_reading(c);
        else if (events & (UV_READABLE | UV_DISCONNECT))
            read_some(c);
    } else {
        if (events & UV_READABLE)
            c->read_off = true;
        if (events & UV_DISCONNECT)
            hangup(c);
    }
    conn_settle(c);
}

void conn_start(struct http_conn *c, enum http_security security)
{
    static const enum conn_state first[] = {
        [HTTP_PLAIN] = CONN_HEAD, [HTTP_TLS] = CONN_HANDSHAKE, [HTTP_EITHER] = CONN_FIRST};
    const struct http_limits *l = &c->server->limits;

    strbuf_init(&c->in, l->head_max + HTTP_READ_CHUNKS);
    strbuf_init(&c->out, HTTP_REPLY_MAX);
    enter(c, first[security]);
    arm(c);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void tick_request(struct http_conn *c)
{
    struct req *r = c->req;

    if (!body_flows(r) || r->pub.body_may_rest)
        return;
    make_room_tick(r);
    r->body_credit -= (int64_t)c->server->limits.body_rate * HTTP_TICK_MS / 1000;
    if (r->body_credit < 0)
        conn_refuse(c, 408, "the request's body comes too slowly");
}

void conn_tick(struct http_conn *c, uint64_t now)
{
    const struct http_limits *l = &c->server->limits;
    uint64_t age = now - c->since;

    if (c->blocked && io_waiting(c) > 0 && now - c->out_since > l->stall_ms)
        conn_lose(c);
    switch (c->state) {
    case CONN_HEAD:
        if (age <= l->head_ms)
            break;
        if (c->in.len > 0)
            conn_refuse(c, 408, "the request's head took too long");
        else
            conn_lose(c);
        break;
    case CONN_FIRST:
    case CONN_HANDSHAKE:
    case CONN_SKIP:
        if (age > l->head_ms)
            conn_lose(c);
        break;
    case CONN_IDLE:
        if (age > l->idle_ms)
            conn_lose(c);
        break;
    case CONN_REQUEST:
        tick_request(c);
        break;
    case CONN_LINGER:
        if (c->shut && age > HTTP_LINGER_MS)
            conn_lose(c);
        break;
    case CONN_PIPE:
    case CONN_CLOSED:
        break;
    }
}

/* Whether it has a request, or the last bytes of an answer are unsent. */
bool conn_is_busy(const struct http_conn *c)
{
    return c->state == CONN_REQUEST ? !c->req->pub.unawaited
                                    : c->state == CONN_SKIP || c->state == CONN_LINGER;
}
