/* Hands the bytes of a request's body to whoever reads it. */
#include "lib/http/impl.h"

/* The most bytes that may be missing at the client's pace: no burst buys more silence than the
 * grace. */
static int64_t full_credit(const struct req *r)
{
    const struct http_limits *l = &r->conn->server->limits;

    return (int64_t)l->body_rate * l->body_grace_ms / 1000;
}

bool body_flows(const struct req *r)
{
    return !r->body_over && r->body_mode != BODY_LEFT && !r->body_paused &&
           r->room != ROOM_AWAITED && r->answer != ANSWER_DONE;
}

bool body_skippable(const struct req *r)
{
    if (r->body_over)
        return true;
    /* A client that waits for 100 Continue may send the body or not: the server cannot tell, so it
     * cannot skip the body. */
    return !r->expect && (r->pub.content_length < 0 || r->body_left <= HTTP_DROP_MAX);
}

static void deliver(struct req *r, const char *p, size_t n)
{
    int64_t most = full_credit(r);

    r->body_credit = r->body_credit + (int64_t)n < most ? r->body_credit + (int64_t)n : most;
    if (r->body_mode == BODY_STREAM) {
        r->pub.on_body(&r->pub, p, n);
        return;
    }
    strbuf_add(&r->collected, p, n);
    if (r->collected.truncated)
        conn_refuse(r->conn, 413, "the request's body is too large");
    http_keep(&r->pub, r->collected.len);
    if (r->make && !r->body_over && r->collected.len > WORK_PIECE)
        make_room_ask(r, r->collected.max);
}

/* Takes the next piece of the body off the bytes. Returns how many were used, or -EINVAL. */
static ssize_t next_piece(struct req *r, const char *p, size_t n, const char **ret, size_t *ret_len)
{
    ssize_t used;

    if (r->pub.content_length < 0) {
        used = chunked_feed(&r->chunks, p, n, ret, ret_len);
        r->body_over = used >= 0 && chunked_done(&r->chunks);
        return used;
    }
    *ret = p;
    *ret_len = n < r->body_left ? n : (size_t)r->body_left;
    r->body_left -= *ret_len;
    r->body_over = r->body_left == 0;
    return (ssize_t)*ret_len;
}

size_t body_feed(struct req *r, const char *p, size_t n)
{
    const char *piece;
    size_t len;

    if (!body_flows(r) || n == 0)
        return 0;
    ssize_t used = next_piece(r, p, n, &piece, &len);
    if (used < 0) {
        conn_refuse(r->conn, 400, "the request's body is not valid chunked encoding");
        return n;
    }
    r->expect = false;
    if (len > 0)
        deliver(r, piece, len);
    /* The secret was read into a buffer of the connection or of the server, so it is wiped
     * there. */
    if (r->pub.body_secret)
        explicit_bzero((void *)(uintptr_t)p, (size_t)used);
    return (size_t)used;
}

ssize_t body_skip(struct req *r, const char *p, size_t n)
{
    const char *piece;
    size_t len;
    ssize_t used = next_piece(r, p, n, &piece, &len);

    if (used >= 0)
        r->body_dropped += (size_t)used;
    return used < 0 || r->body_dropped > HTTP_DROP_MAX ? -1 : used;
}

static void around(struct req *r, bool in)
{
    if (r->pub.server->around)
        r->pub.server->around(&r->pub, in);
}

bool body_tell_end(struct req *r)
{
    if (!r->body_over || r->body_told || r->body_mode == BODY_LEFT || r->body_paused ||
        http_req_over(&r->pub))
        return false;
    r->body_told = true;
    around(r, true);
    if (r->body_mode == BODY_STREAM) {
        r->pub.on_body_end(&r->pub);
        around(r, false);
        return true;
    }
    /* The answer may take long, and the body should not occupy memory until then. */
    AUTO(strbuf_done) struct strbuf body = r->collected;
    strbuf_init(&r->collected, 0);
    if (r->make && body.len > WORK_PIECE) {
        make_begin(r, &body); /* it counts as waiting until the job is done */
        around(r, false);
        return true;
    }
    http_keep(&r->pub, 0);
    bool secret = r->pub.body_secret;
    if (r->make)
        r->make_done(&r->pub, r->make->make(r->make_schema, body.buf, body.len));
    else
        r->collect_done(&r->pub, body.buf, body.len);
    around(r, false);
    if (secret)
        strbuf_wipe(&body);
    return true;
}

void body_tell_made(struct req *r, void *made)
{
    around(r, true);
    r->make_done(&r->pub, made);
    around(r, false);
}

/* The owner wants the body: a client that waits for 100 Continue gets it. */
static void want(struct req *r, enum body_mode mode)
{
    r->body_mode = mode;
    r->body_credit = full_credit(r);
    if (r->expect && !r->started)
        io_write(r->conn, &(struct iovec){(void *)(uintptr_t) "HTTP/1.1 100 Continue\r\n\r\n", 25},
                 1);
    r->expect = false;
    conn_wake(r->conn);
}

static void collect(struct http_req *req, size_t max)
{
    struct req *r = req_of(req);

    if (req->content_length > 0 && (uint64_t)req->content_length > max) {
        conn_refuse(r->conn, 413, "the request's body is too large");
        return;
    }
    strbuf_init(&r->collected, max);
    if (req->body_secret)
        strbuf_reserve(&r->collected);
    want(r, BODY_COLLECT);
}

void http_body_collect(struct http_req *req, size_t max,
                       void (*done)(struct http_req *req, const char *body, size_t len))
{
    struct req *r = req_of(req);

    if (http_req_over(req) || r->body_mode != BODY_LEFT)
        return;
    r->collect_done = done;
    collect(req, max);
}

static void set_make(struct req *r, const struct http_make *how, const void *schema,
                     void (*done)(struct http_req *req, void *made))
{
    r->make = how;
    r->make_schema = schema;
    r->make_done = done;
}

void http_body_make(struct http_req *req, size_t max, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made))
{
    struct req *r = req_of(req);

    if (http_req_over(req) || r->body_mode != BODY_LEFT)
        return;
    set_make(r, how, schema, done);
    if (req->content_length > WORK_PIECE && (uint64_t)req->content_length <= max)
        make_room_ask(r, (size_t)req->content_length);
    collect(req, max);
}

void http_part_make(struct http_req *req, struct strbuf *part, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made))
{
    struct req *r = req_of(req);

    set_make(r, how, schema, done);
    make_begin(r, part);
}

void http_body_stream(struct http_req *req)
{
    struct req *r = req_of(req);

    if (!http_req_over(req) && r->body_mode == BODY_LEFT)
        want(r, BODY_STREAM);
}

void http_body_pause(struct http_req *req)
{
    req_of(req)->body_paused = true;
}

void http_body_resume(struct http_req *req)
{
    struct req *r = req_of(req);

    if (!r->body_paused || http_req_over(req))
        return;
    r->body_paused = false;
    conn_wake(r->conn);
}
