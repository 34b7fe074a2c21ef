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
    strbuf_addstr(&r->headers, name);
    strbuf_addstr(&r->headers, ": ");
    strbuf_addstr(&r->headers, value);
    strbuf_addstr(&r->headers, "\r\n");
}

static void add_status_line(struct strbuf *out, struct http_server *s, int status)
{
    char code[] = "HTTP/1.1 000 ";

    code[9] = (char)('0' + status / 100 % 10);
    code[10] = (char)('0' + status / 10 % 10);
    code[11] = (char)('0' + status % 10);
    strbuf_addstr(out, code);
    strbuf_addstr(out, http_status_text(status));
    strbuf_addstr(out, "\r\nDate: ");
    strbuf_addstr(out, server_date(s));
    strbuf_addstr(out, "\r\n");
}

static void add_id(struct strbuf *out, const char *id)
{
    strbuf_addstr(out, "X-Request-Id: ");
    strbuf_addstr(out, id);
    strbuf_addstr(out, "\r\n");
}

static void add_length(struct strbuf *out, uint64_t length)
{
    char digits[24], *p = digits + sizeof(digits);

    do
        *--p = (char)('0' + length % 10);
    while ((length /= 10) > 0);
    strbuf_addstr(out, "Content-Length: ");
    strbuf_add(out, p, (size_t)(digits + sizeof(digits) - p));
    strbuf_addstr(out, "\r\n");
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
    r->pub.status = status;
    r->pub.answered_ns = clock_ns();
    add_status_line(out, r->pub.server, status);
    add_id(out, r->pub.id);
    if (content_type && text_clean(content_type)) {
        strbuf_addstr(out, "Content-Type: ");
        strbuf_addstr(out, content_type);
        strbuf_addstr(out, "\r\n");
    }
    strbuf_add(out, r->headers.buf, r->headers.len);
    strbuf_done(&r->headers);
    r->no_body = r->pub.method == HTTP_M_HEAD || !status_has_body(status);
    if (length < 0 && r->http10)
        r->keep_alive = false;
    r->keep_alive = may_keep_alive(r, whole);
    if (!status_has_body(status))
        length = 0;
    else if (length >= 0)
        add_length(out, (uint64_t)length);
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
    char size[24], *p = size + sizeof(size);
    size_t left = len;

    *--p = '\n';
    *--p = '\r';
    do
        *--p = "0123456789abcdef"[left & 15];
    while ((left >>= 4) > 0);
    struct iovec parts[] = {{p, (size_t)(size + sizeof(size) - p)},
                            {(void *)(uintptr_t)data, len},
                            {(void *)(uintptr_t) "\r\n", 2}};
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

void answer_refusal(struct strbuf *out, const struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(ERROR_BODY_MAX);
    struct json j = {.out = &body};

    jw_object_begin(&j);
    jw_u64(jw_key(&j, "code"), (uint64_t)req->status);
    jw_string(jw_key(&j, "message"), req->fault_text);
    jw_string(jw_key(&j, "requestId"), req->id);
    jw_object_end(&j);
    add_status_line(out, req->server, req->status);
    add_id(out, req->id);
    strbuf_addstr(out, "Content-Type: application/json\r\n");
    add_length(out, body.len);
    strbuf_addstr(out, "Connection: close\r\n\r\n");
    if (req->method != HTTP_M_HEAD)
        strbuf_add(out, body.buf, body.len);
}
