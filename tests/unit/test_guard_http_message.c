/* Heads of requests and answers: what is read, what is refused, what passes. */
#include "guard/http_message.h"
#include "tap.h"

static struct http_message m;
static const char *why;

/* Scans and reads a whole head. Returns what the reader does, or the scanner's error. */
static int request(const char *text)
{
    struct http_scan s = {0};
    ssize_t n = http_scan(&s, text, strlen(text));

    if (n <= 0)
        return n == 0 ? 1 : (int)n;
    return http_read_request(text, (size_t)n, &m, &why);
}

static int answer(const char *text, bool to_head)
{
    struct http_scan s = {0};
    ssize_t n = http_scan(&s, text, strlen(text));

    if (n <= 0)
        return n == 0 ? 1 : (int)n;
    return http_read_response(text, (size_t)n, to_head, &m, &why);
}

#define H "Host: a.test\r\n"

TEST(a_request_is_read)
{
    EXPECT(request("POST /x?y HTTP/1.1\r\n" H "A:  b c \t\r\nEmpty:\r\nContent-Length: 12\r\n\r\n"
                   "more") == 0);
    EXPECT(http_text_is(m.method, "post") && http_text_is(m.target, "/x?y"));
    EXPECT(m.n_fields == 4 && http_text_is(http_find(&m, "a")->value, "b c"));
    EXPECT(http_find(&m, "empty")->value.len == 0 && !http_find(&m, "none"));
    EXPECT(m.framing == FRAMING_LENGTH && m.length == 12 && !m.close && !m.http10);
    EXPECT(request("GET / HTTP/1.1\r\n" H "\r\n") == 0 && m.framing == FRAMING_NONE);
    EXPECT(request("GET / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n") == 0);
    EXPECT(m.framing == FRAMING_CHUNKED);
    EXPECT(request("GET / HTTP/1.1\r\n" H "Connection: x, Close\r\n\r\n") == 0 && m.close);
    EXPECT(request("GET / HTTP/1.0\r\n" H "\r\n") == 0 && m.close && m.http10);
    EXPECT(request("PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n") == 0 && m.expect);
}

TEST(the_end_of_a_head_is_found_byte_by_byte)
{
    const char *text = "GET / HTTP/1.1\r\n" H "\r\nbody";
    struct http_scan s = {0};
    size_t head = strlen(text) - 4;

    for (size_t n = 0; n < head; n++)
        EXPECT(http_scan(&s, text, n) == 0);
    EXPECT(http_scan(&s, text, head) == (ssize_t)head);
}

TEST(heads_that_could_be_read_in_two_ways_are_refused)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\nHost: a.test\n\n",
        "GET / HTTP/1.1\r\nHost: a.test\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nA: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\nA: \x7f\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\n" H "\r\n",
        "\nGET / HTTP/1.1\r\n" H "\r\n",
        "GET / HTTP/1.1\r\n" H " folded\r\n\r\n",
        "GET / HTTP/1.1\r\n" H "\tfolded: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: empty\r\n\r\n",
        "GET / HTTP/1.1\r\nA(b): x\r\n\r\n",
        "GET  / HTTP/1.1\r\n" H "\r\n",
        "GET / HTTP/1.1 \r\n" H "\r\n",
        "GET /a b HTTP/1.1\r\n" H "\r\n",
        "GET /\r\n" H "\r\n",
        "G(T / HTTP/1.1\r\n" H "\r\n",
        "GET /#f HTTP/1.1\r\n" H "\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n",
        "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int r = request(bad[i]);
        if (r != 400 && r != 505 && r != -EINVAL)
            printf("# %d for: %s\n", r, bad[i]);
        EXPECT(r == 400 || r == 505 || r == -EINVAL);
    }
    EXPECT(request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == 505);
    EXPECT(request("CONNECT a.test:443 HTTP/1.1\r\n" H "\r\n") == 405);
    EXPECT(request("TRACE / HTTP/1.1\r\n" H "\r\n") == 405);
    EXPECT(request("PUT / HTTP/1.1\r\n" H "Expect: magic\r\n\r\n") == 417);
}

TEST(heads_have_limits)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    struct http_scan s = {0};

    strbuf_init(&text, 1u << 20);
    strbuf_addstr(&text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < HTTP_MESSAGE_FIELDS; i++)
        strbuf_addstr(&text, "A: b\r\n");
    size_t most = text.len;
    strbuf_addstr(&text, "\r\n");
    EXPECT(request(text.buf) == 0 && m.n_fields == HTTP_MESSAGE_FIELDS);
    text.len = most;
    strbuf_addstr(&text, "A: b\r\n\r\n");
    EXPECT(request(text.buf) == -E2BIG);
    strbuf_reset(&text);
    strbuf_addstr(&text, "GET / HTTP/1.1\r\nA: ");
    while (text.len < HTTP_MESSAGE_MAX - 1)
        strbuf_addstr(&text, "x");
    EXPECT(http_scan(&s, text.buf, text.len) == 0);
    strbuf_addstr(&text, "x");
    EXPECT(http_scan(&s, text.buf, text.len) == -E2BIG);
}

static int host(const char *target, const char *value, bool tls)
{
    static char text[512]; /* m points into it */

    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, value);
    EXPECT(request(text) == 0);
    return http_check_host(&m, "a.test", tls ? 443 : 8080, tls, &why);
}

TEST(a_request_is_for_the_name_of_the_connection)
{
    EXPECT(host("/", "a.test", true) == 0 && !m.host_port);
    EXPECT(host("/", "A.Test.", true) == 0);
    EXPECT(host("/", "a.test:443", true) == 0 && m.host_port);
    EXPECT(host("/", "a.test:8080", false) == 0);
    EXPECT(host("*", "a.test", true) == 400);
    EXPECT(host("https://a.test/x?y", "a.test", true) == 0 && http_text_is(m.target, "/x?y"));
    EXPECT(host("HTTP://A.test:8080", "a.test", false) == 0 && m.target.len == 0);
    EXPECT(host("http://a.test?q", "a.test", false) == 0 && http_text_is(m.target, "?q"));
    static const char *const other[] = {
        "b.test",   "a.test.b.test", "a.test:80", "a.test:",       "a.test:x", "u@a.test",
        "a.test@b", "a.test/",       "",          "a.test b.test", "a..test",  "1.2.3.4"};
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        EXPECT(host("/", other[i], true) == 421);
    EXPECT(host("https://b.test/", "a.test", true) == 421);
    EXPECT(host("https://a.test@b.test/", "a.test", true) == 421);
    EXPECT(host("http://a.test/", "a.test", true) == 400);
    EXPECT(host("ftp://a.test/", "a.test", true) == 400);
    EXPECT(host("a.test:443", "a.test", true) == 400);
    EXPECT(request("GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n") == 0 &&
           http_check_host(&m, "a.test", 443, true, &why) == 400);
    EXPECT(request("GET / HTTP/1.1\r\n\r\n") == 0 &&
           http_check_host(&m, "a.test", 443, true, &why) == 400);
}

TEST(answers_end_where_their_kind_says)
{
    EXPECT(answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false) == 0);
    EXPECT(m.status == 200 && m.framing == FRAMING_LENGTH && m.length == 3 && !m.close);
    EXPECT(answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true) == 0);
    EXPECT(m.framing == FRAMING_NONE);
    EXPECT(answer("HTTP/1.1 204 \r\n\r\n", false) == 0 && m.framing == FRAMING_NONE && !m.close);
    EXPECT(answer("HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n", false) == 0);
    EXPECT(m.framing == FRAMING_NONE);
    EXPECT(answer("HTTP/1.1 100 Continue\r\n\r\n", false) == 0 && m.framing == FRAMING_NONE);
    EXPECT(answer("HTTP/1.1 200 OK\r\n\r\n", false) == 0 && m.framing == FRAMING_CLOSE && m.close);
    EXPECT(answer("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", false) == 0 && m.close);
    EXPECT(answer("HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\n",
                  false) == 0 &&
           !m.close);
    EXPECT(answer("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n", false) ==
               0 &&
           m.websocket);
}

TEST(answers_that_could_be_read_in_two_ways_are_refused)
{
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(answer(bad[i], false) < 0);
}

TEST(headers_of_one_connection_do_not_pass)
{
    EXPECT(request("GET / HTTP/1.1\r\n" H
                   "Connection: close, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\n"
                   "Keep-Alive: 5\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\nTrailer: a\r\n"
                   "HTTP2-Settings: x\r\nX-Passes: 1\r\nCookie: a=b\r\n\r\n") == 0);
    for (size_t i = 0; i < m.n_fields; i++)
        EXPECT(http_passes(&m, &m.fields[i]) == (http_text_is(m.fields[i].name, "x-passes") ||
                                                 http_text_is(m.fields[i].name, "cookie")));
    EXPECT(!m.websocket);
}

TEST(a_websocket_is_asked_for_in_one_way)
{
    EXPECT(request("GET / HTTP/1.1\r\n" H "Connection: keep-alive, upgrade\r\n"
                   "Upgrade: WebSocket\r\n\r\n") == 0 &&
           m.websocket);
    EXPECT(request("GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\n\r\n") == 0 && !m.websocket);
    EXPECT(request("POST / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n") ==
               0 &&
           !m.websocket);
    EXPECT(request("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n"
                   "Content-Length: 5\r\n\r\n") == 0 &&
           !m.websocket);
    EXPECT(request("GET / HTTP/1.1\r\n" H
                   "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n\r\n") == 0 &&
           !m.websocket);
}

TAP_MAIN
