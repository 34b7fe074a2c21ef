/* The functions of http.h that write an answer. */
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/http/impl.h"

#define ERROR_BODY_MAX 1024

static const char *const servers_own[] = {"content-length", "transfer-encoding", "connection",
                                          "date", "keep-alive"};

static bool text_clean(const char *s)
{
    return s[strcspn(s, "\r\n")] == '\0';
}

void http_add_header(struct http_req *req, const char *name, const char *value)
{
    struct req *r = req_of(req);

    if (r->started || http_req_over(req) || !text_clean(name) || !text_clean(value))
        return;
    /* Dropped, because a header that was cut would run into the next. */
    if (strlen(name) + strlen(value) + 4 > HTTP_HEADERS_OUT_MAX - r->headers.len)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(servers_own); i++)
        if (strcasecmp(name, servers_own[i]) == 0)
            return;
    strbuf_addf(&r->headers, "%s: %s\r\n", name, value);
}

void http_await_changes(struct http_req *req)
{
    req_of(req)->commits = 0;
}

static void add_first_lines(struct strbuf *out, struct http_server *s, int status, const char *id)
{
    strbuf_addf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Request-Id: %s\r\n", status,
                http_status_text(status), server_date(s), id);
}

/* Whether the connection may serve another request after this answer. That depends on what the
 * client asked for, and on what is left of the request's body, unless the answer has only begun and
 * the body is still wanted. */
static bool may_keep_alive(const struct req *r, bool whole)
{
    return r->keep_alive && !r->conn->server->draining && !r->conn->scarce &&
           (body_skippable(r) || (!whole && r->body_mode != BODY_LEFT));
}

static bool status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

/* length -1: not known. whole: the body follows at once, and the rest of the request's body is not
 * wanted. */
static void add_head(struct req *r, int status, const char *content_type, int64_t length,
                     bool whole)
{
    struct strbuf *out = &r->conn->out;

    if (io_waiting(r->conn) == 0)
        r->conn->out_since = uv_now(r->conn->server->loop);
    r->conn->awaits = commits_awaited(r->conn->server->commits, r->commits);
    r->pub.status = status;
    r->pub.answered_ns = clock_ns();
    add_first_lines(out, r->pub.server, status, r->pub.id);
    if (content_type && text_clean(content_type))
        strbuf_addf(out, "Content-Type: %s\r\n", content_type);
    strbuf_add(out, r->headers.buf, r->headers.len);
    strbuf_done(&r->headers);
    r->no_body = r->pub.method == HTTP_M_HEAD || !status_has_body(status);
    if (length < 0 && r->http10)
        r->keep_alive = false;
    r->keep_alive = may_keep_alive(r, whole);
    if (!status_has_body(status))
        length = 0;
    else if (length >= 0)
        strbuf_addf(out, "Content-Length: %lld\r\n", (long long)length);
    else if (!r->http10)
        strbuf_addstr(out, "Transfer-Encoding: chunked\r\n");
    if (!r->keep_alive)
        strbuf_addstr(out, "Connection: close\r\n");
    else if (r->http10)
        strbuf_addstr(out, "Connection: keep-alive\r\n");
    strbuf_addstr(out, "\r\n");
    r->started = true;
    r->answer = length >= 0 ? ANSWER_FIXED : r->http10 ? ANSWER_TO_CLOSE : ANSWER_CHUNKED;
    r->answer_left = length >= 0 ? (uint64_t)length : 0;
}

void http_start(struct http_req *req, int status, const char *content_type, int64_t length)
{
    struct req *r = req_of(req);

    if (r->started || http_req_over(req))
        return;
    add_head(r, status, content_type, length, false);
    conn_wake(r->conn);
}

void http_reply(struct http_req *req, int status, const char *content_type, const void *body,
                size_t len)
{
    struct req *r = req_of(req);

    if (r->started || http_req_over(req))
        return;
    add_head(r, status, content_type, (int64_t)len, true);
    if (!r->no_body)
        io_write(r->conn, &(struct iovec){(void *)(uintptr_t)body, len}, 1);
    r->answer = ANSWER_DONE;
    conn_wake(r->conn);
}

static void write_chunk(struct http_conn *c, const void *data, size_t len)
{
    char size[24];
    int n = snprintf(size, sizeof(size), "%zx\r\n", len);
    struct iovec parts[] = {
        {size, (size_t)n}, {(void *)(uintptr_t)data, len}, {(void *)(uintptr_t) "\r\n", 2}};
    io_write(c, parts, ARRAY_SIZE(parts));
}

bool http_write(struct http_req *req, const void *data, size_t len)
{
    struct req *r = req_of(req);
    struct http_conn *c = r->conn;

    if (http_req_over(req))
        return false;
    if (r->answer == ANSWER_FIXED && len > r->answer_left)
        len = (size_t)r->answer_left;
    if (len > 0 && r->answer != ANSWER_NONE && !r->no_body) {
        if (r->answer == ANSWER_CHUNKED)
            write_chunk(c, data, len);
        else
            io_write(c, &(struct iovec){(void *)(uintptr_t)data, len}, 1);
    }
    if (r->answer == ANSWER_FIXED)
        r->answer_left -= len;
    if (io_waiting(c) > HTTP_WRITE_MAX)
        conn_lose(c);
    if (io_waiting(c) > HTTP_WRITE_HIGH)
        r->choked = true;
    return !r->choked && !c->gone;
}

void http_finish(struct http_req *req)
{
    struct req *r = req_of(req);

    if (http_req_over(req))
        return;
    if (r->answer == ANSWER_NONE ||
        (r->answer == ANSWER_FIXED && r->answer_left > 0 && !r->no_body)) {
        http_abort(req);
        return;
    }
    if (r->answer == ANSWER_CHUNKED && !r->no_body)
        io_write(r->conn, &(struct iovec){(void *)(uintptr_t) "0\r\n\r\n", 5}, 1);
    r->answer = ANSWER_DONE;
    conn_wake(r->conn);
}

void http_keep(struct http_req *req, size_t bytes)
{
    if (!http_req_over(req))
        io_keep(req_of(req)->conn, bytes);
}

void http_abort(struct http_req *req)
{
    if (http_req_over(req))
        return;
    req_of(req)->aborted = true;
    conn_lose(req_of(req)->conn);
}

void http_take_over(struct http_req *req)
{
    struct req *r = req_of(req);

    if (r->started || http_req_over(req))
        return;
    if (!r->body_over) {
        http_abort(req);
        return;
    }
    r->pub.status = 101;
    r->pub.answered_ns = clock_ns();
    r->started = true;
    r->keep_alive = false;
    r->answer = ANSWER_RAW;
    /* From now on the connection's bytes are a body without end. */
    r->body_mode = BODY_STREAM;
    r->body_over = r->body_paused = false;
    r->body_left = UINT64_MAX;
    r->conn->state = CONN_PIPE;
    conn_wake(r->conn);
}

void answer_error_body(struct strbuf *out, const struct http_req *req, int status,
                       const char *message)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_i64(jw_key(&j, "code"), status);
    jw_string(jw_key(&j, "message"), message);
    jw_string(jw_key(&j, "requestId"), req->id);
    jw_object_end(&j);
}

void answer_refusal(struct strbuf *out, const struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(ERROR_BODY_MAX);

    answer_error_body(&body, req, req->status, req->fault_text);
    add_first_lines(out, req->server, req->status, req->id);
    strbuf_addf(out,
                "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n",
                body.len);
    if (req->method != HTTP_M_HEAD)
        strbuf_add(out, body.buf, body.len);
}
