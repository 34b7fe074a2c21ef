/* Requests that two programs could read differently, and other broken ones: each is refused, and
 * nothing that follows on its connection is read. */
#include "http_client.h"

#define SMUGGLED "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

static unsigned requests, smuggled;
static bool echoed;

static void on_body(struct http_req *req, const char *body, size_t len)
{
    echoed = true;
    http_reply(req, 200, "text/plain", body, len);
}

static void on_request(struct http_req *req)
{
    requests++;
    if (strcmp(req->path, "/smuggled") == 0)
        smuggled++;
    http_body_collect(req, 4096, on_body);
}

struct sample {
    const char *name;
    int status;
    const char *bytes;
    size_t len;
};

#define GET      "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST     "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED  POST "Transfer-Encoding: chunked\r\n\r\n"
#define B(s)     (s), sizeof(s) - 1
#define X16      "xxxxxxxxxxxxxxxx"
#define X64      X16 X16 X16 X16
#define X256     X64 X64 X64 X64
#define ZEROS_17 "00000000000000005"

static const struct sample heads[] = {
    /* The length of the body, said twice or oddly. */
    {"CL and TE", 400, B(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"TE and CL", 400, B(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n")},
    {"two different CL", 400, B(POST "Content-Length: 0\r\nContent-Length: 44\r\n\r\n")},
    {"two equal CL", 400, B(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello")},
    {"CL list", 400, B(POST "Content-Length: 5, 5\r\n\r\nhello")},
    {"CL with plus", 400, B(POST "Content-Length: +5\r\n\r\nhello")},
    {"CL with minus", 400, B(POST "Content-Length: -5\r\n\r\nhello")},
    {"CL minus zero", 400, B(POST "Content-Length: -0\r\n\r\n")},
    {"CL in hex", 400, B(POST "Content-Length: 0x5\r\n\r\nhello")},
    {"CL with a space inside", 400, B(POST "Content-Length: 5 5\r\n\r\nhello")},
    {"CL with underscore", 400, B(POST "Content-Length: 1_0\r\n\r\nhello")},
    {"CL with a fraction", 400, B(POST "Content-Length: 5.0\r\n\r\nhello")},
    {"CL empty", 400, B(POST "Content-Length:\r\n\r\n")},
    {"CL of 19 digits", 400, B(POST "Content-Length: 9223372036854775807\r\n\r\n")},
    {"CL beyond 64 bits", 400, B(POST "Content-Length: 18446744073709551621\r\n\r\nhello")},
    {"CL with other digits", 400, B(POST "Content-Length: \xd9\xa5\r\n\r\nhello")},
    {"TE gzip", 400, B(POST "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n")},
    {"TE identity", 400, B(POST "Transfer-Encoding: identity\r\n\r\n")},
    {"TE gzip, chunked", 400, B(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")},
    {"TE chunked, identity", 400, B(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n")},
    {"TE chunked, chunked", 400, B(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n")},
    {"TE twice", 400,
     B(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"TE xchunked", 400, B(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n")},
    {"TE in capitals", 400, B(POST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n")},
    {"TE quoted", 400, B(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n")},
    {"TE with a vertical tab", 400,
     B(POST "Transfer-Encoding: \x0b"
            "chunked\r\n\r\n0\r\n\r\n")},
    {"TE with a parameter", 400, B(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n")},
    {"TE empty", 400, B(POST "Transfer-Encoding:\r\n\r\n")},
    {"TE in HTTP/1.0", 400,
     B("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"TE with a space before the colon", 400,
     B(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n")},
    {"TE behind a folded line", 400,
     B(POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"TE after a bare LF", 400, B(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"TE after a bare CR", 400, B(POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},

    /* Lines. */
    {"folded header", 400, B(GET "X: a\r\n b\r\n\r\n")},
    {"folded with a tab", 400, B(GET "X: a\r\n\tb\r\n\r\n")},
    {"first header folded", 400, B("GET / HTTP/1.1\r\n Host: a\r\n\r\n")},
    {"LF only", 400, B("GET / HTTP/1.1\nHost: a\n\n")},
    {"LF ends the request line", 400, B("GET / HTTP/1.1\nHost: a\r\n\r\n")},
    {"LF ends a header", 400, B(GET "X: y\n\r\n")},
    {"LF ends the head", 400, B(GET "\n")},
    {"CR without LF", 400, B(GET "X: a\rb\r\n\r\n")},
    {"CR CR LF", 400, B(GET "X: a\r\r\n\r\n")},
    {"two empty lines first", 400, B("\r\n\r\n" GET "\r\n")},
    {"LF first", 400, B("\n" GET "\r\n")},

    /* Characters. */
    {"NUL in a value", 400, B(GET "X: a\0b\r\n\r\n")},
    {"NUL in a name", 400, B(GET "X\0: b\r\n\r\n")},
    {"NUL in the target", 400, B("GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"NUL first", 400, B("\0" GET "\r\n")},
    {"control character in a value", 400, B(GET "X: a\x01\r\n\r\n")},
    {"DEL in a value", 400, B(GET "X: a\x7f\r\n\r\n")},
    {"tab in the request line", 400, B("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"form feed in the request line", 400, B("GET /\x0c HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"UTF-8 in the target", 400, B("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"space before the colon", 400, B(GET "X : y\r\n\r\n")},
    {"tab before the colon", 400, B(GET "X\t: y\r\n\r\n")},
    {"space in a name", 400, B(GET "X Y: z\r\n\r\n")},
    {"bracket in a name", 400, B(GET "X[]: z\r\n\r\n")},
    {"UTF-8 in a name", 400, B(GET "X\xc3\xa9: z\r\n\r\n")},
    {"empty name", 400, B(GET ": y\r\n\r\n")},
    {"no colon", 400, B(GET "X\r\n\r\n")},
    {"TLS on the plain port", 400, B("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")},

    /* The host. */
    {"no Host", 400, B("GET / HTTP/1.1\r\n\r\n")},
    {"two Hosts", 400, B(GET "Host: b\r\n\r\n")},
    {"the same Host twice", 400, B(GET "Host: a\r\n\r\n")},
    {"empty Host", 400, B("GET / HTTP/1.1\r\nHost:\r\n\r\n")},
    {"Host with a space", 400, B("GET / HTTP/1.1\r\nHost: a b\r\n\r\n")},
    {"Host with a slash", 400, B("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n")},
    {"Host with a user", 400, B("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n")},
    {"Host with a query", 400, B("GET / HTTP/1.1\r\nHost: a?b\r\n\r\n")},
    {"Host with a backslash", 400, B("GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n")},
    {"Host with a percent", 400, B("GET / HTTP/1.1\r\nHost: a%41\r\n\r\n")},
    {"Host list", 400, B("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n")},
    {"Host with two ports", 400, B("GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n")},
    {"Host with an odd port", 400, B("GET / HTTP/1.1\r\nHost: a:8o\r\n\r\n")},
    {"Host with an empty port", 400, B("GET / HTTP/1.1\r\nHost: a:\r\n\r\n")},
    {"Host with a bracket", 400, B("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n")},
    {"Host in UTF-8", 400, B("GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n")},
    {"Host with a NUL", 400, B("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n")},
    {"Host too long", 400, B("GET / HTTP/1.1\r\nHost: " X256 "\r\n\r\n")},
    {"absolute target of another host", 400, B("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target of a longer host", 400, B("GET http://ab/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target with a user", 400, B("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target with another port", 400, B("GET http://a:1/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target without a host", 400, B("GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target of another scheme", 400, B("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"absolute target without Host", 400, B("GET http://a/ HTTP/1.1\r\n\r\n")},

    /* The request line. */
    {"asterisk", 400, B("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"authority", 400, B("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n")},
    {"relative target", 400, B("GET a HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"empty target", 400, B("GET  HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"fragment", 400, B("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"two spaces before the target", 400, B("GET  / HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"two spaces after the target", 400, B("GET /  HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"space in the target", 400, B("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"space at the end of the line", 400, B("GET / HTTP/1.1 \r\nHost: a\r\n\r\n")},
    {"space first", 400, B(" GET / HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"no method", 400, B("/ HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"unknown method", 400, B("FETCH / HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"method in small letters", 400, B("get / HTTP/1.1\r\nHost: a\r\n\r\n")},
    {"garbage", 400, B("hello there\r\n\r\n")},
    {"HTTP/0.9", 400, B("GET /\r\n")},
    {"HTTP/0.9 with a version", 505, B("GET / HTTP/0.9\r\n\r\n")},
    {"HTTP/1.2", 505, B("GET / HTTP/1.2\r\nHost: a\r\n\r\n")},
    {"HTTP/1.10", 505, B("GET / HTTP/1.10\r\nHost: a\r\n\r\n")},
    {"HTTP/2.0", 505, B("GET / HTTP/2.0\r\nHost: a\r\n\r\n")},
    {"HTTP/2 preface", 505, B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
    {"small http", 400, B("GET / http/1.1\r\nHost: a\r\n\r\n")},
    {"another protocol", 400, B("OPTIONS / RTSP/1.0\r\nHost: a\r\n\r\n")},
    {"an answer", 400, B("HTTP/1.1 200 OK\r\nHost: a\r\n\r\n")},
    {"unknown expectation", 417, B(POST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\na")},
};

static const struct sample bodies[] = {
    {"size with plus", 400, B(CHUNKED "+5\r\nhello\r\n0\r\n\r\n")},
    {"size with minus", 400, B(CHUNKED "-5\r\nhello\r\n0\r\n\r\n")},
    {"size with 0x", 400, B(CHUNKED "0x5\r\nhello\r\n0\r\n\r\n")},
    {"size with a space before", 400, B(CHUNKED " 5\r\nhello\r\n0\r\n\r\n")},
    {"size with a space after", 400, B(CHUNKED "5 \r\nhello\r\n0\r\n\r\n")},
    {"size with a space and extension", 400, B(CHUNKED "5 ;x\r\nhello\r\n0\r\n\r\n")},
    {"size empty", 400, B(CHUNKED "\r\nhello\r\n0\r\n\r\n")},
    {"size empty with extension", 400, B(CHUNKED ";x\r\nhello\r\n0\r\n\r\n")},
    {"size not hex", 400, B(CHUNKED "g\r\nhello\r\n0\r\n\r\n")},
    {"size of 17 digits", 400, B(CHUNKED ZEROS_17 "\r\nhello\r\n0\r\n\r\n")},
    {"size beyond 63 bits", 400, B(CHUNKED "8000000000000000\r\nhello\r\n0\r\n\r\n")},
    {"size that wraps", 400, B(CHUNKED "ffffffffffffffff\r\nhello\r\n0\r\n\r\n")},
    {"size that wraps to five", 400, B(CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n")},
    {"size of zero spelt long", 400, B(CHUNKED "00000000000000000\r\n\r\n")},
    {"LF after the size", 400, B(CHUNKED "5\nhello\r\n0\r\n\r\n")},
    {"LF after an extension", 400, B(CHUNKED "5;x\nhello\r\n0\r\n\r\n")},
    {"LF after the data", 400, B(CHUNKED "5\r\nhello\n0\r\n\r\n")},
    {"CR alone after the size", 400, B(CHUNKED "5\rhello\r\n0\r\n\r\n")},
    {"nothing after the data", 400, B(CHUNKED "5\r\nhello0\r\n\r\n")},
    {"data longer than its size", 400, B(CHUNKED "4\r\nhello\r\n0\r\n\r\n")},
    {"LF after the last size", 400, B(CHUNKED "0\n\r\n")},
    {"LF ends the body", 400, B(CHUNKED "0\r\n\n")},
    {"LF ends a trailer", 400, B(CHUNKED "0\r\nX: y\n\r\n")},
    {"trailer folded", 400, B(CHUNKED "0\r\nX: y\r\n z\r\n\r\n")},
    {"trailer with a NUL", 400, B(CHUNKED "0\r\nX: \0\r\n\r\n")},
    {"extension with a NUL", 400, B(CHUNKED "5;\0\r\nhello\r\n0\r\n\r\n")},
    {"extension too long", 400, B(CHUNKED "5;" X256 "x\r\nhello\r\n0\r\n\r\n")},
};

static void send_sample(struct client *c, const struct sample *s, bool slowly)
{
    if (!slowly) {
        AUTO(strbuf_done) struct strbuf all = {0};

        strbuf_init(&all, 1 << 20);
        strbuf_add(&all, s->bytes, s->len);
        strbuf_addstr(&all, SMUGGLED);
        client_send_bytes(c, all.buf, all.len);
        return;
    }
    for (size_t i = 0; i < s->len; i++) {
        client_send_bytes(c, s->bytes + i, 1);
        uv_run(&c->host->loop, UV_RUN_NOWAIT);
    }
    client_send(c, SMUGGLED);
}

static void check_sample(struct host *h, const struct sample *s, bool slowly)
{
    struct client c;
    char code[32];
    int before = tap_failures;

    requests = smuggled = 0;
    echoed = false;
    client_open(&c, h);
    send_sample(&c, s, slowly);
    EXPECT(client_wait_end(&c));
    EXPECT(client_status(&c) == s->status);
    snprintf(code, sizeof(code), "{\"code\":%d,\"message\":\"", s->status);
    EXPECT(client_count(&c, code) == 1);
    EXPECT(client_count(&c, "\r\nDate: ") == 1);
    EXPECT(client_count(&c, "\r\nConnection: close\r\n") == 1);
    EXPECT(smuggled == 0 && !echoed);
    if (tap_failures > before)
        printf("# in '%s'%s: %.200s\n", s->name, slowly ? ", byte by byte" : "", c.got.buf);
    client_close(&c);
}

static void check_samples(const struct sample *s, size_t n)
{
    struct host h;

    host_open(&h, NULL, on_request, NULL);
    for (size_t i = 0; i < n; i++) {
        check_sample(&h, &s[i], false);
        check_sample(&h, &s[i], true);
    }
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    host_close(&h);
}

TEST(broken_heads)
{
    check_samples(heads, ARRAY_SIZE(heads));
}

TEST(broken_chunks)
{
    check_samples(bodies, ARRAY_SIZE(bodies));
}

/* What looks odd and is right. */
static const struct {
    const char *name, *bytes, *answer;
} accepted[] = {
    {"plain", GET "\r\n", "\r\n\r\n"},
    {"an empty line first", "\r\n" GET "\r\n", "\r\n\r\n"},
    {"spaces around a length", POST "Content-Length:   5  \r\n\r\nhello", "\r\n\r\nhello"},
    {"zeros before a length", POST "Content-Length: 005\r\n\r\nhello", "\r\n\r\nhello"},
    {"no space after a colon", POST "Content-Length:5\r\n\r\nhello", "\r\n\r\nhello"},
    {"chunks", CHUNKED "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "\r\n\r\nhello"},
    {"chunk size in capitals", CHUNKED "000A\r\nhellohello\r\n0\r\n\r\n", "\r\n\r\nhellohello"},
    {"chunk extension", CHUNKED "5;a=\"b c\";d\r\nhello\r\n0;x\r\n\r\n", "\r\n\r\nhello"},
    {"longest extension", CHUNKED "5;" X256 "\r\nhello\r\n0\r\n\r\n", "\r\n\r\nhello"},
    {"trailers", CHUNKED "5\r\nhello\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n", "\r\n\r\nhello"},
    {"framing inside data", CHUNKED "7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n0\r\n\r\n\r\n"},
    {"absolute target", "GET http://A:80/x HTTP/1.1\r\nHost: a:80\r\n\r\n", "\r\n\r\n"},
    {"absolute target without a path", "GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n\r\n"},
    {"IPv6 host", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "\r\n\r\n"},
    {"host with an underscore", "GET / HTTP/1.1\r\nHost: a_b.c-d\r\n\r\n", "\r\n\r\n"},
    {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", "\r\n\r\n"},
    {"empty value", GET "X:\r\n\r\n", "\r\n\r\n"},
    {"value in UTF-8", GET "X: \xc3\xa9\r\n\r\n", "\r\n\r\n"},
    {"value with a tab", GET "X: a\tb\r\n\r\n", "\r\n\r\n"},
    {"characters that browsers leave alone", "GET /a|b?{\"x\":[1]}^` HTTP/1.1\r\nHost: a\r\n\r\n",
     "\r\n\r\n"},
    {"other method", "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n\r\n"},
};

TEST(odd_but_right)
{
    struct host h;

    host_open(&h, NULL, on_request, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        struct sample s = {
            .name = accepted[i].name, .bytes = accepted[i].bytes, .len = strlen(accepted[i].bytes)};
        struct client c;
        int before = tap_failures;

        for (int slowly = 0; slowly < 2; slowly++) {
            smuggled = 0;
            client_open(&c, &h);
            send_sample(&c, &s, slowly);
            EXPECT(client_wait(&c, accepted[i].answer));
            EXPECT(client_status(&c) == 200);
            /* The next request is read from where this one ends. */
            if (!strstr(s.bytes, "HTTP/1.0"))
                WAIT_UNTIL(&h, smuggled == 1);
            if (tap_failures > before)
                printf("# in '%s': %.200s\n", s.name, c.got.buf);
            client_close(&c);
        }
    }
    host_close(&h);
}

static void send_repeated(struct client *c, const char *text, size_t times)
{
    AUTO(strbuf_done) struct strbuf all = {0};

    strbuf_init(&all, 4u << 20);
    for (size_t i = 0; i < times; i++)
        strbuf_addstr(&all, text);
    client_send_bytes(c, all.buf, all.len);
}

static int status_of_long(struct host *h, const char *before, const char *repeated, size_t times,
                          const char *after)
{
    struct client c;

    client_open(&c, h);
    client_send(&c, before);
    send_repeated(&c, repeated, times);
    client_send(&c, after);
    EXPECT(client_wait(&c, "\r\n\r\n"));
    int status = client_status(&c);
    client_close(&c);
    return status;
}

TEST(limits_of_a_head)
{
    struct host h;

    host_open(&h, NULL, on_request, NULL);
    EXPECT(status_of_long(&h, "GET /", "a", 8191, " HTTP/1.1\r\nHost: a\r\n\r\n") == 200);
    EXPECT(status_of_long(&h, "GET /", "a", 8192, " HTTP/1.1\r\nHost: a\r\n\r\n") == 414);
    EXPECT(status_of_long(&h, "GET /", "a", 100000, "") == 414);
    EXPECT(status_of_long(&h, GET, "A: b\r\n", 99, "\r\n") == 200);
    EXPECT(status_of_long(&h, GET, "A: b\r\n", 100, "\r\n") == 431);
    EXPECT(status_of_long(&h, GET "X: ", "a", 32000, "\r\n\r\n") == 200);
    EXPECT(status_of_long(&h, GET "X: ", "a", 40000, "\r\n\r\n") == 431);
    EXPECT(status_of_long(&h, GET "X: ", "a", 1000000, "") == 431);
    EXPECT(status_of_long(&h, GET, "a", 1000000, "") == 431);
    EXPECT(status_of_long(&h, "", "A", 100000, "") == 414);
    EXPECT(status_of_long(&h, CHUNKED "0\r\nX: ", "a", 8000, "\r\n\r\n") == 200);
    EXPECT(status_of_long(&h, CHUNKED "0\r\nX: ", "a", 9000, "\r\n\r\n") == 400);
    EXPECT(status_of_long(&h, CHUNKED "0\r\n", "X: y\r\n", 9000, "\r\n") == 400);
    host_close(&h);
}

TAP_MAIN
