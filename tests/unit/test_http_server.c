/* Requests, bodies and answers over real sockets. */
#include <sys/resource.h>

#include "http_client.h"

/* What the test's handlers have seen; the last request that asked to be left pending. */
static struct {
    unsigned requests, closed, writable;
    struct http_req *pending;
    struct strbuf body;
    bool body_ended;
    size_t pieces;
    size_t left; /* of what /pour writes */
    bool pause;  /* /stream pauses after each piece */
} seen;

static char block[64 * 1024];

static void on_close(struct http_req *req)
{
    seen.closed++;
    if (seen.pending == req)
        seen.pending = NULL;
}

static void echo(struct http_req *req, const char *body, size_t len)
{
    http_reply(req, 200, "text/plain", body, len);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    seen.pieces++;
    strbuf_add(&seen.body, data, len);
    if (seen.pause)
        http_body_pause(req);
}

static void on_body_end(struct http_req *req)
{
    (void)req;
    seen.body_ended = true;
}

static void pour(struct http_req *req)
{
    seen.writable++;
    while (seen.left > 0) {
        size_t n = seen.left < sizeof(block) ? seen.left : sizeof(block);

        seen.left -= n;
        if (!http_write(req, block, n) && seen.left > 0)
            return;
    }
    http_finish(req);
}

static void handle_chunks(struct http_req *req)
{
    http_add_header(req, "X-Mine", "yes");
    http_start(req, 200, "text/plain", -1);
    http_write(req, "hel", 3);
    http_write(req, "", 0);
    http_write(req, "lo", 2);
    http_finish(req);
}

static void handle_headers(struct http_req *req)
{
    static char huge[70000];

    memset(huge, 'x', sizeof(huge) - 1);
    http_add_header(req, "X-Good", "1");
    http_add_header(req, "X-Huge", huge);
    http_add_header(req, "X-Split", "a\r\nX-Evil: 1");
    http_add_header(req, "X-Split2: a\nX-Evil", "1");
    http_add_header(req, "Content-Length", "99");
    http_add_header(req, "transfer-encoding", "gzip");
    http_add_header(req, "Connection", "upgrade");
    http_add_header(req, "Date", "yesterday");
    http_reply(req, 201, "text/plain\r\nX-Evil: 1", "ok", 2);
    /* All of this is too late. */
    http_add_header(req, "X-Late", "1");
    http_reply(req, 500, NULL, "no", 2);
    http_start(req, 500, NULL, 5);
    http_write(req, "late", 4);
    http_finish(req);
    http_abort(req);
    EXPECT(http_req_over(req));
}

static void handle_short(struct http_req *req)
{
    http_start(req, 200, NULL, 10);
    http_write(req, "12345", 5);
    http_finish(req);
}

static void handle_long(struct http_req *req)
{
    http_start(req, 200, NULL, 5);
    http_write(req, "1234567890", 10);
    http_finish(req);
}

static void on_query(struct http_req *req)
{
    const char *a = http_query_get(req, "a"), *b = http_query_get(req, "b c");
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 4096);
    strbuf_addf(&out, "a=%s;b=%s;path=%s;query=%s;host=%s;x=%s;peer=%s", a ? a : "(none)",
                b ? b : "(none)", req->path, req->query, req->host,
                http_header_get(req, "x-y") ? http_header_get(req, "x-y") : "(none)", req->peer);
    http_reply(req, 200, "text/plain", out.buf, out.len);
}

static void handle_pour(struct http_req *req)
{
    req->on_writable = pour;
    http_start(req, 200, NULL, strstr(req->query, "chunked") ? -1 : (int64_t)seen.left);
    pour(req);
}

static void handle_early(struct http_req *req)
{
    http_body_stream(req);
    http_start(req, 200, NULL, -1);
}

static void handle_flood(struct http_req *req)
{
    http_start(req, 200, NULL, -1);
    for (unsigned i = 0; i < 1000; i++)
        http_write(req, block, sizeof(block));
    EXPECT(http_req_over(req));
    http_finish(req);
}

static const struct {
    const char *path;
    void (*handler)(struct http_req *req);
} handlers[] = {
    {"/chunks", handle_chunks}, {"/headers", handle_headers},  {"/short", handle_short},
    {"/long", handle_long},     {"/query", on_query},          {"/pour", handle_pour},
    {"/flood", handle_flood},   {"/stream", http_body_stream}, {"/pipe", http_take_over},
    {"/early", handle_early},
};

static void on_request(struct http_req *req)
{
    seen.requests++;
    req->on_close = on_close;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    seen.pending = req;
    for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
        if (strcmp(req->path, handlers[i].path) == 0) {
            handlers[i].handler(req);
            return;
        }
    }
    if (strcmp(req->path, "/echo") == 0)
        http_body_collect(req, 100000, echo);
    else if (strcmp(req->path, "/empty") == 0)
        http_reply(req, 204, NULL, "x", 1);
    else if (strcmp(req->path, "/hang") != 0)
        http_reply(req, 200, "text/plain", "hello", 5);
}

static struct host h;
static struct client cl;

static void start_with(const struct http_limits *limits)
{
    strbuf_done(&seen.body);
    memset(&seen, 0, sizeof(seen));
    strbuf_init(&seen.body, 64u << 20);
    host_open(&h, limits, on_request, NULL);
    client_open(&cl, &h);
}

static void start(void)
{
    start_with(NULL);
}

static void stop(void)
{
    client_close(&cl);
    host_close(&h);
    EXPECT(seen.closed == seen.requests);
}

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n"

TEST(a_whole_answer)
{
    start();
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\nhello"));
    EXPECT(client_status(&cl) == 200);
    EXPECT(client_count(&cl, "HTTP/1.1 200 OK\r\nDate: ") == 1);
    EXPECT(client_count(&cl, " GMT\r\n") == 1);
    EXPECT(client_count(&cl, "\r\nContent-Type: text/plain\r\n") == 1);
    EXPECT(client_count(&cl, "\r\nContent-Length: 5\r\n") == 1);
    EXPECT(client_count(&cl, "Connection:") == 0);
    EXPECT(seen.closed == 1);
    stop();
}

TEST(the_connection_is_kept)
{
    start();
    for (unsigned i = 1; i <= 3; i++) {
        client_send(&cl, HEAD("GET", "/") "\r\n");
        WAIT_UNTIL(&h, seen.closed == i);
    }
    client_send(&cl, HEAD("GET", "/") "Connection: close\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "\r\n\r\nhello") == 4);
    EXPECT(client_count(&cl, "\r\nConnection: close\r\n") == 1);
    stop();
}

TEST(http_1_0)
{
    start();
    client_send(&cl, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\nhello"));
    EXPECT(client_count(&cl, "\r\nConnection: keep-alive\r\n") == 1);
    client_send(&cl, "GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "\r\nConnection: close\r\n") == 1);
    EXPECT(client_count(&cl, "Transfer-Encoding") == 0);
    EXPECT(memcmp(cl.got.buf + cl.got.len - 9, "\r\n\r\nhello", 9) == 0);
    stop();
}

TEST(an_answer_in_chunks)
{
    start();
    client_send(&cl, HEAD("GET", "/chunks") "\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"));
    EXPECT(client_count(&cl, "\r\nTransfer-Encoding: chunked\r\n") == 1);
    EXPECT(client_count(&cl, "\r\nX-Mine: yes\r\n") == 1);
    EXPECT(client_count(&cl, "Content-Length") == 0);
    stop();
}

TEST(no_body_where_none_belongs)
{
    start();
    client_send(&cl, HEAD("HEAD", "/") "\r\n");
    WAIT_UNTIL(&h, seen.closed == 1);
    client_send(&cl, HEAD("HEAD", "/chunks") "\r\n");
    WAIT_UNTIL(&h, seen.closed == 2);
    client_send(&cl, HEAD("GET", "/empty") "\r\n");
    EXPECT(client_wait(&cl, "HTTP/1.1 204 No Content"));
    WAIT_UNTIL(&h, seen.closed == 3);
    client_read(&cl, SIZE_MAX);
    EXPECT(client_count(&cl, "\r\nContent-Length: 5\r\n") == 1);
    EXPECT(client_count(&cl, "Content-Length") == 1);
    EXPECT(client_count(&cl, "hello") == 0 && client_count(&cl, "hel") == 0);
    EXPECT(memcmp(cl.got.buf + cl.got.len - 4, "\r\n\r\n", 4) == 0);
    stop();
}

TEST(headers_cannot_be_split)
{
    start();
    client_send(&cl, HEAD("GET", "/headers") "\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\nok"));
    EXPECT(client_count(&cl, "HTTP/1.1 201 Created") == 1);
    EXPECT(client_count(&cl, "X-Good: 1\r\n") == 1);
    EXPECT(client_count(&cl, "X-Evil") == 0 && client_count(&cl, "X-Huge") == 0);
    EXPECT(client_count(&cl, "X-Late") == 0);
    EXPECT(client_count(&cl, ": 99") == 0 && client_count(&cl, "gzip") == 0);
    EXPECT(client_count(&cl, "yesterday") == 0);
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(client_count(&cl, "late") == 0);
    stop();
}

TEST(a_wrong_length_ends_the_connection)
{
    start();
    client_send(&cl, HEAD("GET", "/long") "\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\n12345"));
    client_send(&cl, HEAD("GET", "/short") "\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "123456") == 0);
    EXPECT(seen.closed == 2);
    stop();
}

TEST(an_answer_waits_until_changes_are_kept)
{
    struct commits commits = {.made = 4, .kept = 4};
    struct client other;

    start();
    http_server_commits(h.server, &commits);
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    WAIT_UNTIL(&h, seen.pending);
    commits.made = 5; /* while the request is being answered */
    http_reply(seen.pending, 200, NULL, block, sizeof(block));
    /* A request that came later is not about the change. */
    client_open(&other, &h);
    client_send(&other, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&other, "hello"));
    http_server_kept(h.server);
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    EXPECT(cl.got.len == 0 && seen.closed == 1);
    commits.kept = 5;
    http_server_kept(h.server);
    EXPECT(client_wait(&cl, "HTTP/1.1 200"));
    WAIT_UNTIL(&h, seen.closed == 2);
    client_close(&other);
    stop();
}

TEST(pipelined_requests_are_answered_in_order)
{
    start();
    client_send(
        &cl, HEAD("POST", "/echo") "Content-Length: 3\r\n\r\none" /* no gap */
        HEAD("POST", "/echo") "Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n" HEAD(
            "GET", "/hang") "\r\n" HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "two"));
    WAIT_UNTIL(&h, seen.requests == 3);
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    EXPECT(seen.requests == 3);
    http_reply(seen.pending, 200, NULL, "three", 5);
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(strstr(cl.got.buf, "one") < strstr(cl.got.buf, "two"));
    EXPECT(strstr(cl.got.buf, "two") < strstr(cl.got.buf, "three"));
    EXPECT(strstr(cl.got.buf, "three") < strstr(cl.got.buf, "hello"));
    stop();
}

TEST(much_pipelined_waits_in_the_socket)
{
    AUTO(strbuf_done) struct strbuf all = {0};

    start();
    strbuf_init(&all, 1 << 20);
    strbuf_addstr(&all, HEAD("GET", "/hang") "\r\n");
    for (unsigned i = 0; i < 2000; i++)
        strbuf_addstr(&all, HEAD("GET", "/") "\r\n");
    client_send_bytes(&cl, all.buf, all.len);
    WAIT_UNTIL(&h, seen.requests == 1);
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    http_reply(seen.pending, 200, NULL, "first", 5);
    WAIT_UNTIL(&h, seen.closed == 2001);
    client_read(&cl, SIZE_MAX);
    EXPECT(client_count(&cl, "hello") == 2000);
    stop();
}

TEST(query_and_headers)
{
    start();
    client_send(&cl,
                "GET /query?z&a=1%202+3&a=no&b%20c=%C3%A9%zz%4&n=%00 HTTP/1.1\r\nHost: A.B:80\r\n"
                "X-y:  first \r\nX-Y: second\r\n\r\n");
    EXPECT(client_wait(&cl, "a=1 2 3;b=\xc3\xa9%zz%4;path=/query;"));
    EXPECT(client_count(&cl, ";host=a.b:80;x=first;peer=127.0.0.1") == 1);
    client_send(&cl, "GET /query?a=x%00y&b+c HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(client_wait(&cl, "a=(none);b=;path=/query;query=a=x%00y&b+c;host=a;x=(none)"));
    client_send(&cl, "GET http://a/query HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(client_wait(&cl, "a=(none);b=(none);path=/query;query=;host=a;"));
    stop();
}

TEST(a_collected_body_has_a_limit)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    start();
    strbuf_init(&body, 1 << 20);
    for (unsigned i = 0; i < 100000; i++)
        strbuf_addch(&body, 'x');
    client_send(&cl, HEAD("POST", "/echo") "Content-Length: 100000\r\n\r\n");
    client_send_bytes(&cl, body.buf, body.len);
    EXPECT(client_wait(&cl, body.buf));
    client_send(&cl, HEAD("POST", "/echo") "Content-Length: 100001\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "HTTP/1.1 413 ") == 1);
    EXPECT(client_count(&cl, "{\"code\":413,\"message\":\"") == 1);
    client_close(&cl);

    client_open(&cl, &h);
    client_send(&cl, HEAD("POST", "/echo") "Transfer-Encoding: chunked\r\n\r\n186a1\r\n");
    client_send_bytes(&cl, body.buf, body.len);
    client_send(&cl, "x\r\n0\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_status(&cl) == 413);
    stop();
}

TEST(a_huge_body_is_refused_and_the_answer_seen)
{
    start();
    client_send(&cl, HEAD("POST", "/echo") "Content-Length: 2147483648\r\n\r\n");
    /* The client goes on sending, as most do, and still gets the answer. */
    for (unsigned i = 0; i < 200; i++)
        client_send_bytes(&cl, block, sizeof(block));
    EXPECT(client_wait(&cl, "\"code\":413"));
    stop();
}

TEST(expect_100_continue)
{
    start();
    client_send(&cl, HEAD("POST", "/echo") "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    EXPECT(client_wait(&cl, "HTTP/1.1 100 Continue\r\n\r\n"));
    client_send(&cl, "abc");
    EXPECT(client_wait(&cl, "\r\n\r\nabc"));
    EXPECT(client_count(&cl, "100 Continue") == 1);
    /* Nobody wants this one: the answer comes at once, and then nobody can tell what follows. */
    client_send(&cl, HEAD("POST", "/") "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "100 Continue") == 1);
    EXPECT(client_count(&cl, "hello") == 1);
    EXPECT(client_count(&cl, "Connection: close") == 1);
    stop();
}

TEST(a_body_that_nobody_wants)
{
    static char large[70000];

    start();
    /* A small one is read and dropped, before or after the answer. */
    client_send(&cl, HEAD("POST", "/") "Content-Length: 60000\r\n\r\n");
    EXPECT(client_wait(&cl, "hello"));
    client_send_bytes(&cl, large, 60000);
    client_send(&cl, HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    client_send(&cl, HEAD("GET", "/echo") "\r\n");
    WAIT_UNTIL(&h, seen.closed == 3);
    client_read(&cl, SIZE_MAX);
    EXPECT(client_count(&cl, "HTTP/1.1 200") == 3 && client_count(&cl, "Connection: close") == 0);
    /* A large one is not worth it. */
    client_send(&cl, HEAD("POST", "/") "Content-Length: 70000\r\n\r\n");
    client_send_bytes(&cl, large, sizeof(large));
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "Connection: close") == 1);
    EXPECT(seen.requests == 4);
    client_close(&cl);

    client_open(&cl, &h);
    client_send(&cl, HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\n11170\r\n");
    client_send_bytes(&cl, large, sizeof(large));
    client_send(&cl, "\r\n0\r\n\r\n" HEAD("GET", "/") "\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(seen.requests == 5);
    client_close(&cl);

    /* Broken framing in a body that is dropped. */
    client_open(&cl, &h);
    client_send(
        &cl, HEAD("POST", "/") "Transfer-Encoding: chunked\r\n\r\nxyz\r\n" HEAD("GET", "/") "\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(seen.requests == 6);
    stop();
}

static void check_stream(const char *head, const char *body, size_t len, size_t expect)
{
    strbuf_reset(&seen.body);
    seen.body_ended = false;
    seen.pieces = 0;
    client_send(&cl, head);
    client_send_bytes(&cl, body, len);
    for (uint64_t deadline = clock_ns() + WAIT_NS; !seen.body_ended && clock_ns() < deadline;) {
        host_turn(&h);
        if (seen.pending && seen.pause)
            http_body_resume(seen.pending);
    }
    EXPECT(seen.body_ended);
    EXPECT(seen.body.len == expect);
    http_reply(seen.pending, 200, NULL, "got", 3);
    EXPECT(client_wait(&cl, "got"));
    strbuf_reset(&cl.got);
    WAIT_UNTIL(&h, seen.pending == NULL);
}

TEST(a_streamed_body)
{
    AUTO(strbuf_done) struct strbuf chunked = {0};

    start();
    strbuf_init(&chunked, 1 << 20);
    for (unsigned i = 0; i < 1000; i++)
        strbuf_addf(&chunked, "64\r\n%0100u\r\n", i);
    strbuf_addstr(&chunked, "0\r\n\r\n");
    for (int i = 0; i < 2; i++) {
        seen.pause = i == 1;
        check_stream(HEAD("POST", "/stream") "Content-Length: 65536\r\n\r\n", block, sizeof(block),
                     65536);
        EXPECT(memcmp(seen.body.buf, block, sizeof(block)) == 0);
        check_stream(HEAD("POST", "/stream") "Transfer-Encoding: chunked\r\n\r\n", chunked.buf,
                     chunked.len, 100000);
        EXPECT(memcmp(seen.body.buf + 99990, "0000000999", 10) == 0);
        check_stream(HEAD("GET", "/stream") "\r\n", "", 0, 0);
        check_stream(HEAD("POST", "/stream") "Transfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n", 5,
                     0);
    }
    stop();
}

static void resume_body(uv_prepare_t *prepare)
{
    (void)prepare;
    if (seen.pending)
        http_body_resume(seen.pending);
}

/* Right before the loop looks at sockets: new bytes come while old ones are still kept. */
TEST(a_body_that_is_paused_and_resumed_all_the_time)
{
    AUTO(strbuf_done) struct strbuf chunked = {0};
    uv_prepare_t prepare;
    size_t total = 0;

    start();
    seen.pause = true;
    uv_prepare_init(&h.loop, &prepare);
    uv_prepare_start(&prepare, resume_body);
    strbuf_init(&chunked, 8 << 20);
    for (unsigned i = 0; i < 300; i++, total += 20000)
        strbuf_addf(&chunked, "4e20\r\n%020000u\r\n", i);
    strbuf_addstr(&chunked, "0\r\n\r\n");
    client_send(&cl, HEAD("POST", "/stream") "Transfer-Encoding: chunked\r\n\r\n");
    client_send_bytes(&cl, chunked.buf, chunked.len);
    WAIT_UNTIL(&h, seen.body_ended || seen.closed);
    EXPECT(seen.body_ended && seen.body.len == total);
    uv_close((uv_handle_t *)&prepare, NULL);
    stop();
}

TEST(a_paused_body_is_not_read)
{
    size_t sent = 0;

    start();
    seen.pause = true;
    client_send(&cl, HEAD("POST", "/stream") "Content-Length: 1073741824\r\n\r\n");
    for (unsigned i = 0; i < 200; i++) {
        ssize_t n = send(cl.fd, block, sizeof(block), MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        host_turn(&h);
    }
    EXPECT(seen.pieces == 1);
    size_t before = seen.body.len;
    EXPECT(before <= 256 * 1024 && before < sent);
    http_body_resume(seen.pending);
    WAIT_UNTIL(&h, seen.pieces == 2);
    EXPECT(seen.body.len > before);
    stop();
}

TEST(answering_in_the_middle_of_a_body)
{
    start();
    client_send(&cl, HEAD("POST", "/stream") "Content-Length: 1000\r\n\r\nabc");
    WAIT_UNTIL(&h, seen.pieces == 1);
    http_reply(seen.pending, 507, NULL, "full", 4);
    client_send_bytes(&cl, block, 997);
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(seen.pieces == 1 && !seen.body_ended);
    stop();
}

TEST(an_answer_that_begins_before_the_body_ends)
{
    start();
    client_send(&cl, HEAD("POST", "/early") "Content-Length: 131072\r\n\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\n"));
    client_send_bytes(&cl, block, sizeof(block));
    client_send_bytes(&cl, block, sizeof(block));
    WAIT_UNTIL(&h, seen.body_ended);
    http_finish(seen.pending);
    EXPECT(client_wait(&cl, "0\r\n\r\n"));
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(client_count(&cl, "Connection: close") == 0);
    stop();
}

/* The ways a client goes away. */
static void check_gone(const char *request, bool wait_body)
{
    unsigned closed = seen.closed;

    client_send(&cl, request);
    WAIT_UNTIL(&h, seen.pending != NULL);
    if (wait_body)
        WAIT_UNTIL(&h, seen.pieces > 0);
    close(steal_fd(&cl.fd));
    WAIT_UNTIL(&h, seen.closed == closed + 1);
    EXPECT(!seen.body_ended);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    client_close(&cl);
    client_open(&cl, &h);
}

TEST(a_client_that_goes_away_is_noticed)
{
    start();
    check_gone(HEAD("GET", "/hang") "\r\n", false);
    check_gone(HEAD("GET", "/hang") "\r\n" HEAD("GET", "/") "\r\n", false);
    check_gone(HEAD("POST", "/hang") "Content-Length: 5\r\n\r\nhe", false);
    check_gone(HEAD("POST", "/echo") "Content-Length: 5\r\n\r\nhe", false);
    check_gone(HEAD("POST", "/stream") "Content-Length: 50\r\n\r\nhe", true);
    seen.pause = true;
    check_gone(HEAD("POST", "/stream") "Content-Length: 50\r\n\r\nhe", true);
    /* In the middle of a head, or before one: nobody needs to know. */
    client_send(&cl, "GET / HT");
    WAIT_UNTIL(&h, http_server_connections(h.server) == 1);
    close(steal_fd(&cl.fd));
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    stop();
}

TEST(a_client_that_resets)
{
    struct linger reset = {.l_onoff = 1};

    start();
    client_send(&cl, HEAD("POST", "/hang") "Content-Length: 5\r\n\r\n");
    WAIT_UNTIL(&h, seen.pending != NULL);
    setsockopt(cl.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(steal_fd(&cl.fd));
    WAIT_UNTIL(&h, seen.closed == 1);
    stop();
}

TEST(a_large_answer_waits_for_its_reader)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        const char *request =
            chunked ? HEAD("GET", "/pour?chunked") "\r\n" : HEAD("GET", "/pour") "\r\n";
        const size_t size = 32u << 20;

        start();
        seen.left = size;
        client_send(&cl, request);
        for (unsigned i = 0; i < 50; i++)
            host_turn(&h);
        size_t stuck = seen.left;
        EXPECT(stuck > 0 && seen.closed == 0);
        for (unsigned i = 0; i < 50; i++)
            host_turn(&h);
        EXPECT(seen.left == stuck);
        uint64_t deadline = clock_ns() + WAIT_NS;
        while (seen.closed == 0 && clock_ns() < deadline) {
            client_read(&cl, SIZE_MAX);
            host_turn(&h);
        }
        EXPECT(seen.closed == 1 && seen.left == 0 && seen.writable > 1);
        EXPECT(client_wait(&cl, chunked ? "\r\n0\r\n\r\n" : "HTTP/1.1 200 OK"));
        client_read(&cl, SIZE_MAX);
        EXPECT(cl.got.len > size && cl.got.len < size + size / 100);
        stop();
    }
}

TEST(a_writer_that_does_not_wait_is_cut_off)
{
    start();
    client_send(&cl, HEAD("GET", "/flood") "\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(cl.got.len < 40u << 20);
    EXPECT(client_count(&cl, "\r\n0\r\n\r\n") == 0);
    EXPECT(seen.closed == 1);
    stop();
}

TEST(an_answer_given_later_and_broken_off)
{
    start();
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    WAIT_UNTIL(&h, seen.pending != NULL);
    EXPECT(!http_started(seen.pending) && !http_req_over(seen.pending));
    http_start(seen.pending, 200, NULL, -1);
    EXPECT(http_started(seen.pending));
    EXPECT(client_wait(&cl, "\r\n\r\n"));
    EXPECT(http_write(seen.pending, "part", 4));
    EXPECT(client_wait(&cl, "4\r\npart\r\n"));
    http_abort(seen.pending);
    EXPECT(http_req_over(seen.pending));
    EXPECT(!http_write(seen.pending, "more", 4));
    http_finish(seen.pending);
    EXPECT(seen.closed == 0);
    EXPECT(client_wait_end(&cl));
    EXPECT(seen.closed == 1);
    EXPECT(client_count(&cl, "more") == 0 && client_count(&cl, "0\r\n\r\n") == 0);
    stop();
}

TEST(a_taken_over_connection)
{
    start();
    client_send(
        &cl,
        HEAD("GET", "/pipe") "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly");
    WAIT_UNTIL(&h, seen.body.len == 5);
    EXPECT(seen.pending->upgrade);
    http_write(seen.pending, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 36);
    EXPECT(client_wait(&cl, "101 Switching Protocols\r\n\r\n"));
    http_body_pause(seen.pending);
    client_send(&cl, "later");
    shutdown(cl.fd, SHUT_WR);
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    /* The client has closed its direction, and what it sent before still waits. */
    EXPECT(seen.body.len == 5 && !seen.body_ended && seen.closed == 0);
    http_body_resume(seen.pending);
    WAIT_UNTIL(&h, seen.body_ended);
    EXPECT_STR(seen.body.buf, "earlylater");
    http_write(seen.pending, "bye", 3);
    http_finish(seen.pending);
    EXPECT(client_wait_end(&cl));
    EXPECT(memcmp(cl.got.buf + cl.got.len - 3, "bye", 3) == 0);
    EXPECT(seen.closed == 1);
    stop();
}

static bool drained;

static void on_drained(void *arg)
{
    (void)arg;
    drained = true;
}

/* What is under way is waited for; what comes is answered, and asked to go elsewhere. */
TEST(drain)
{
    struct client idle, fresh, late;

    start();
    drained = false;
    client_open(&fresh, &h);
    client_open(&idle, &h);
    client_send(&idle, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&idle, "hello"));
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    WAIT_UNTIL(&h, seen.requests == 2 && http_server_connections(h.server) == 3);
    struct http_req *hanging = seen.pending;
    http_server_drain(h.server, on_drained, NULL);
    client_open(&late, &h);
    strbuf_reset(&idle.got);
    client_send(&idle, HEAD("GET", "/") "\r\n");
    client_send(&fresh, HEAD("GET", "/") "\r\n");
    client_send(&late, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait_end(&idle) && client_wait_end(&fresh) && client_wait_end(&late));
    EXPECT(client_count(&idle, "hello") == 1 && client_count(&fresh, "hello") == 1 &&
           client_count(&late, "hello") == 1 && client_count(&late, "Connection: close") == 1);
    EXPECT(!drained);
    http_reply(hanging, 200, NULL, "last", 4);
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "Connection: close") == 1 && client_count(&cl, "last") == 1);
    close(steal_fd(&cl.fd));
    WAIT_UNTIL(&h, drained);
    client_close(&idle);
    client_close(&fresh);
    client_close(&late);
    stop();
}

TEST(a_drain_does_not_wait_for_what_never_ends)
{
    start();
    drained = false;
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    WAIT_UNTIL(&h, seen.requests == 1);
    http_server_drain(h.server, on_drained, NULL);
    for (int i = 0; i < 5; i++)
        host_turn(&h);
    EXPECT(!drained);
    seen.pending->unawaited = true;
    WAIT_UNTIL(&h, drained);
    stop();
}

TEST(the_server_ends_with_requests_open)
{
    struct client other;

    start();
    client_open(&other, &h);
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    client_send(&other, HEAD("POST", "/stream") "Content-Length: 100\r\n\r\nx");
    WAIT_UNTIL(&h, seen.requests == 2);
    host_close(&h);
    EXPECT(seen.closed == 2);
    EXPECT(client_wait_end(&cl));
    client_close(&other);
    client_close(&cl);
}

static struct http_server *to_free;

static void free_server(struct http_req *req)
{
    http_server_free(to_free);
    EXPECT(http_req_over(req));
    http_reply(req, 200, NULL, "x", 1);
    req->on_close = on_close;
    seen.requests++;
}

TEST(the_server_is_freed_by_its_own_callback)
{
    start();
    struct host own;

    host_open(&own, NULL, free_server, NULL);
    to_free = own.server;
    client_close(&cl);
    client_open(&cl, &own);
    client_send(&cl, HEAD("GET", "/") "\r\n");
    uv_run(&own.loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&own.loop) == 0);
    EXPECT(seen.closed == 1);
    client_close(&cl);
    client_open(&cl, &h);
    stop();
}

TEST(connections_have_a_limit)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct client second, third;

    limits.conns_max = 2;
    start_with(&limits);
    client_open(&second, &h);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 2);
    client_open(&third, &h);
    EXPECT(client_wait_end(&third));
    client_send(&second, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&second, "hello"));
    client_close(&second);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 1);
    client_close(&third);
    stop();
}

TEST(a_client_that_asks_and_shuts_down)
{
    start();
    client_send(&cl, HEAD("GET", "/") "\r\n" HEAD("GET", "/pour") "\r\n");
    shutdown(cl.fd, SHUT_WR);
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "hello") == 1 && client_count(&cl, "HTTP/1.1 200") == 2);
    stop();
}

/* The server has no descriptor left for a new client. */
TEST(out_of_descriptors)
{
    struct rlimit old, tight;
    struct client waiting;

    start();
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    client_open(&waiting, &h);
    must(getrlimit(RLIMIT_NOFILE, &old) == 0, "getrlimit");
    tight = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
    must(setrlimit(RLIMIT_NOFILE, &tight) == 0, "setrlimit");
    client_send(&waiting, HEAD("GET", "/") "\r\n");
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    EXPECT(http_server_connections(h.server) == 1);
    /* It does not turn round and round, and serves whom it has. */
    EXPECT(uv_backend_timeout(&h.loop) > 0);
    strbuf_reset(&cl.got);
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    close(steal_fd(&cl.fd));
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    must(setrlimit(RLIMIT_NOFILE, &old) == 0, "setrlimit");
    EXPECT(client_wait(&waiting, "hello"));
    client_close(&waiting);
    stop();
}

TAP_MAIN
