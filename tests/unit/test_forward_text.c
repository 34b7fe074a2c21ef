/* Heads to servers inside, and answers from them: no sockets. */
#include "front/forward/request_head.h"
#include "front/forward/response.h"
#include "tap.h"

/* ---- requests -------------------------------------------------------------------------------- */

static struct http_req request(const struct http_header *headers, size_t n)
{
    return (struct http_req){.method = HTTP_M_GET,
                             .method_name = "GET",
                             .target = "/a?b=1",
                             .path = "/a",
                             .query = "b=1",
                             .host = "3000-x.example.com",
                             .headers = headers,
                             .n_headers = n,
                             .peer = "192.0.2.7"};
}

TEST(what_a_server_is_told)
{
    static const struct http_header headers[] = {
        {"host", "evil"},
        {"cookie", "a=b"},
        {"connection", "close, X-Private"},
        {"x-private", "1"},
        {"keep-alive", "5"},
        {"te", "trailers"},
        {"transfer-encoding", "chunked"},
        {"content-length", "7"},
        {"expect", "100-continue"},
        {"proxy-authorization", "secret"},
        {"upgrade", "h2c"},
        {"x-forwarded-for", "10.0.0.1"},
        {"x-forwarded-proto", "https"},
        {"forwarded", "for=10.0.0.1"},
        {"x-real-ip", "10.0.0.1"},
        {"e2b-sandbox-id", "x"},
        {"e2b-sandbox-port", "3000"},
        {"e2b-traffic-access-token", "secret"},
        {"x-api-key", "secret"},
        {"x-access-token", "passes"},
    };
    struct http_req req = request(headers, ARRAY_SIZE(headers));
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, HEAD_MAX);
    request_head_write(&s, &req, "localhost:3000", NULL);
    EXPECT_STR(s.buf, "GET /a?b=1 HTTP/1.1\r\n"
                      "Host: localhost:3000\r\n"
                      "cookie: a=b\r\n"
                      "x-access-token: passes\r\n"
                      "X-Forwarded-For: 192.0.2.7\r\n"
                      "X-Forwarded-Host: 3000-x.example.com\r\n"
                      "X-Forwarded-Proto: http\r\n"
                      "Connection: close\r\n\r\n");
}

TEST(framing_of_a_request)
{
    static const struct {
        enum http_method method;
        int64_t length;
        const char *has, *has_not;
    } cases[] = {
        {HTTP_M_POST, -1, "Transfer-Encoding: chunked\r\n", "Content-Length"},
        {HTTP_M_POST, 0, "Content-Length: 0\r\n", "Transfer-Encoding"},
        {HTTP_M_PUT, 12, "Content-Length: 12\r\n", "Transfer-Encoding"},
        {HTTP_M_GET, 0, "Connection: close\r\n", "Content-Length"},
        {HTTP_M_DELETE, 3, "Content-Length: 3\r\n", "Transfer-Encoding"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_req req = request(NULL, 0);
        AUTO(strbuf_done) struct strbuf s = {0};

        req.method = cases[i].method;
        req.content_length = cases[i].length;
        strbuf_init(&s, HEAD_MAX);
        request_head_write(&s, &req, "h", NULL);
        EXPECT(strstr(s.buf, cases[i].has) && !strstr(s.buf, cases[i].has_not));
    }
}

TEST(upgrades)
{
    static const struct http_header one[] = {{"connection", "keep-alive, Upgrade"},
                                             {"upgrade", "websocket"}},
                                    two[] = {{"upgrade", "a"}, {"upgrade", "b"}};
    struct http_req req = request(one, 2);
    AUTO(strbuf_done) struct strbuf s = {0};

    EXPECT(!request_upgrade(&req)); /* the server did not see one */
    req.upgrade = true;
    EXPECT_STR(request_upgrade(&req), "websocket");
    strbuf_init(&s, HEAD_MAX);
    request_head_write(&s, &req, "h", request_upgrade(&req));
    EXPECT(strstr(s.buf, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    req.content_length = 5;
    EXPECT(!request_upgrade(&req));
    req = request(two, 2);
    req.upgrade = true;
    EXPECT(!request_upgrade(&req));
}

TEST(masked_hosts)
{
    static const struct {
        const char *mask, *host;
    } cases[] = {
        {"localhost:${PORT}", "localhost:8080"},
        {"example.com", "example.com"},
        {"${PORT}.${PORT}", "8080.8080"},
        {"[::1]:${PORT}", "[::1]:8080"},
        {"a\r\nX: y", NULL},
        {"a b", NULL},
        {"$PORT", NULL},
        {"", NULL},
        {"a-very-long-name-that-does-not-fit", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char host[24];
        EXPECT(mask_host(cases[i].mask, 8080, host, sizeof(host)) == (cases[i].host != NULL));
        if (cases[i].host)
            EXPECT_STR(host, cases[i].host);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

struct seen {
    struct response response;
    struct strbuf head, body;
    unsigned heads;
};

static void on_head(struct response *r)
{
    struct seen *s = r->owner;

    s->heads++;
    strbuf_addf(&s->head, "%d %lld", r->status, (long long)r->length);
    for (size_t i = 0; i < r->n_headers; i++)
        strbuf_addf(&s->head, "|%s=%s", r->headers[i].name, r->headers[i].value);
}

static void on_body(struct response *r, const char *p, size_t len)
{
    strbuf_add(&((struct seen *)r->owner)->body, p, len);
}

static void seen_init(struct seen *s, bool to_head, bool may_upgrade)
{
    *s = (struct seen){.response = {.owner = s,
                                    .to_head = to_head,
                                    .may_upgrade = may_upgrade,
                                    .on_head = on_head,
                                    .on_body = on_body}};
    strbuf_init(&s->head, 1u << 20);
    strbuf_init(&s->body, 1u << 20);
    response_init(&s->response);
}

static void seen_done(struct seen *s)
{
    response_done(&s->response);
    strbuf_done(&s->head);
    strbuf_done(&s->body);
}

/* Gives the text in pieces of `step` bytes. Returns the first error; *ret_used counts. */
static int feed(struct seen *s, const char *text, size_t step, size_t *ret_used)
{
    size_t len = strlen(text), off = 0;
    int r = 0;

    while (r == 0 && off < len && s->response.state < RESPONSE_DONE) {
        size_t n = len - off < step ? len - off : step, used = 0;
        r = response_feed(&s->response, text + off, n, &used, NULL);
        off += used;
    }
    *ret_used = off;
    return r;
}

TEST(good_answers)
{
    static const struct {
        const char *text;
        bool to_head, eof;
        const char *head, *body;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello", false, false,
         "200 5|content-length=5|x-a=b", "hello"},
        {"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", false, false, "404 0|content-length=0", ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
         "T: x\r\n\r\n",
         false, false, "200 -1|transfer-encoding=Chunked", "abcde"},
        {"HTTP/1.0 200 OK\r\nEmpty:\r\n\r\nuntil the end", false, true,
         "200 -1|empty=", "until the end"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
         false, false, "201 2|content-length=2", "ok"},
        {"HTTP/1.1 204 No Content\r\n\r\n", false, false, "204 -1", ""},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", false, false,
         "304 9|content-length=9", ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, false, "200 7|content-length=7", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t step = 1; step < 200; step = step * 3 + 1) {
            struct seen s;
            size_t used;

            seen_init(&s, cases[i].to_head, false);
            EXPECT(feed(&s, cases[i].text, step, &used) == 0 && used == strlen(cases[i].text));
            EXPECT((s.response.state == RESPONSE_DONE) == !cases[i].eof);
            EXPECT(response_eof(&s.response, NULL) == 0);
            EXPECT(s.heads == 1);
            EXPECT_STR(s.head.buf, cases[i].head);
            EXPECT_STR(s.body.buf, cases[i].body);
            seen_done(&s);
        }
}

TEST(answers_that_are_not_passed_on)
{
    static const char *const cases[] = {
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 OK\n\nbody",
        "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA\x01: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t step = 1; step < 200; step = step * 7) {
            struct seen s;
            size_t used;

            seen_init(&s, false, false);
            int r = feed(&s, cases[i], step, &used);
            if (r != -EPROTO)
                printf("# case %zu in steps of %zu: %d\n", i, step, r);
            EXPECT(r == -EPROTO);
            seen_done(&s);
        }
}

TEST(answers_that_end_too_early)
{
    static const char *const cases[] = {
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct seen s;
        size_t used;

        seen_init(&s, false, false);
        EXPECT(feed(&s, cases[i], 1000, &used) == 0);
        EXPECT(response_eof(&s.response, NULL) == -EPROTO);
        seen_done(&s);
    }
}

TEST(another_protocol)
{
    static const char text[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";
    struct seen s;
    size_t used;

    seen_init(&s, false, true);
    EXPECT(response_feed(&s.response, "HTTP/1.1 101 S\r\nUpgrade: a\r\n\r\n\x81\x05hello", 37,
                         &used, NULL) == 0);
    EXPECT(s.response.state == RESPONSE_UPGRADED && used == 30 && s.heads == 1);
    seen_done(&s);
    seen_init(&s, false, true);
    EXPECT(feed(&s, text, 1, &used) == 0 && used == strlen(text));
    EXPECT(s.response.state == RESPONSE_UPGRADED && s.heads == 1);
    EXPECT(strstr(s.head.buf, "sec-websocket-accept=x"));
    seen_done(&s);
}

/* A server that never comes to the point is cut off. */
TEST(endless_heads)
{
    struct seen s;
    size_t used;
    int r = 0;

    seen_init(&s, false, false);
    feed(&s, "HTTP/1.1 200 OK\r\n", 100, &used);
    for (int i = 0; i < 10000 && r == 0; i++)
        r = feed(&s, "A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", 100, &used);
    EXPECT(r == -EPROTO && s.response.head.len <= RESPONSE_HEAD_MAX);
    seen_done(&s);

    seen_init(&s, false, false);
    for (int i = 0; i < 100 && (r = feed(&s, "HTTP/1.1 102 P\r\n\r\n", 100, &used)) == 0; i++)
        ;
    EXPECT(r == -EPROTO && s.heads == 0);
    seen_done(&s);

    seen_init(&s, false, false);
    feed(&s, "HTTP/1.1 200 OK\r\n", 100, &used);
    for (int i = 0; i < RESPONSE_HEADERS_MAX + 1; i++)
        feed(&s, "A: b\r\n", 100, &used);
    EXPECT(feed(&s, "\r\n", 100, &used) == -EPROTO);
    seen_done(&s);
}

/* What comes after the end is nobody's. */
TEST(surplus)
{
    struct seen s;
    size_t used;

    seen_init(&s, false, false);
    EXPECT(response_feed(&s.response, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 ", 51,
                         &used, NULL) == 0);
    EXPECT(s.response.state == RESPONSE_DONE);
    EXPECT_STR(s.body.buf, "ok");
    seen_done(&s);
}

TAP_MAIN
