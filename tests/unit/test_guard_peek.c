/* First bytes: which protocol it is, and the heads of HTTP/1 requests. */
#include "guard/peek.h"
#include "tap.h"

static struct peek look(const char *text)
{
    struct peek k;

    peek_bytes((const uint8_t *)text, strlen(text), &k);
    return k;
}

static enum peek_what what(const char *text)
{
    return look(text).what;
}

/* A request with these lines behind the first. */
static struct peek get(const char *fields)
{
    char text[4096];

    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\n", fields);
    return look(text);
}

/* A request with this target, to a.test. */
static struct peek target(const char *method, const char *target, const char *host)
{
    char text[4096];

    snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, target, host);
    return look(text);
}

/* ---- which protocol -------------------------------------------------------------------------- */

TEST(other_protocols_are_something_else)
{
    EXPECT(what("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n") == PEEK_OTHER);
    EXPECT(what("EHLO a.test\r\n") == PEEK_OTHER);
    EXPECT(what("{\"json\": 1}") == PEEK_OTHER);
    EXPECT(what("\x05\x01") == PEEK_OTHER);
    EXPECT(what("PING\r\n") == PEEK_OTHER);
    const char git[] = "0032git-upload-pack /project.git\0host=a.test\0";
    struct peek p;
    peek_bytes((const uint8_t *)git, sizeof(git) - 1, &p);
    EXPECT(p.what == PEEK_OTHER);
    EXPECT(what("*1\r\n$4\r\nPING\r\n") == PEEK_OTHER);
    EXPECT(what("USER x 0 * :x\r\n") == PEEK_OTHER);
    EXPECT(what("RENAME /a /b\r\n") == PEEK_OTHER);
    EXPECT(what("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") == PEEK_OTHER);
    EXPECT(what("\x80\x01") == PEEK_OTHER);
}

TEST(one_waits_while_it_could_be_http)
{
    EXPECT(what("") == PEEK_MORE);
    EXPECT(what("G") == PEEK_MORE);
    EXPECT(what("BREW ") == PEEK_MORE);
    EXPECT(what("BREW /pot HT") == PEEK_MORE);
    EXPECT(what("GET /") == PEEK_MORE);
    EXPECT(what("GET / HTTP/1.1\r\nHost: a.test\r\n\r") == PEEK_MORE);
    EXPECT(what("\r\n") == PEEK_MORE);
}

TEST(a_word_of_nobody_is_a_method_if_the_rest_is_http)
{
    struct peek k = target("BREW", "/pot", "a.test");

    EXPECT(k.what == PEEK_HTTP);
    EXPECT_STR(k.name, "a.test");
    EXPECT_STR(target("get", "/", "a.test").name, "a.test");
    EXPECT(target("GE(T", "/", "a.test").what == PEEK_OTHER);
}

TEST(an_empty_line_before_a_request_is_bad)
{
    EXPECT(what("\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n") == PEEK_BAD);
    EXPECT(what("\n\nGET ") == PEEK_BAD);
    EXPECT(what("\r\nhello\r\n") == PEEK_OTHER);
}

TEST(the_preface_of_http2_is_seen)
{
    struct peek k = look("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4");

    EXPECT(k.what == PEEK_HTTP && k.h2c && !k.name[0]);
    EXPECT(what("PRI * HTTP/2.0\r\n\r\nSM") == PEEK_MORE);
    EXPECT(what("PRI / HTTP/2.0\r\n") == PEEK_BAD);
    EXPECT(what("PRI * HTTP/2.0\r\n\r\nXX") == PEEK_BAD);
}

/* ---- requests -------------------------------------------------------------------------------- */

TEST(the_host_is_the_name)
{
    struct peek k = get("Accept: */*\r\nhOST: \t Www.A.test. \r\nX: y\r\n");

    EXPECT(k.what == PEEK_HTTP && !k.address && !k.connect && !k.h2c && !k.ech);
    EXPECT_STR(k.name, "www.a.test");
    EXPECT_STR(get("Host:a.test:8080\r\n").name, "a.test");
    EXPECT_STR(look("HEAD /x?y HTTP/1.0\r\nHost: a.test\r\n\r\nmore").name, "a.test");
    EXPECT_STR(target("GET", "//evil.test/", "a.test").name, "a.test");
    EXPECT_STR(target("GET", "/\xc3\xa4", "a.test").name, "a.test");
}

TEST(addresses_are_no_names)
{
    static const char *const hosts[] = {
        "93.184.216.34", "93.184.216.34:80", "[2606::1]",     "[::ffff:10.9.9.9]:1",
        "0x7f.1",        "2130706433",       "0177.0.0.1:80", "127.0.0.0x00000001"};

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        struct peek k = target("GET", "/", hosts[i]);
        EXPECT(k.what == PEEK_HTTP && k.address);
        EXPECT_STR(k.name, "");
    }
}

TEST(hosts_that_are_none_are_bad)
{
    static const char *const hosts[] = {"",
                                        "a.test:80@evil.test",
                                        "user@a.test",
                                        "a.test:",
                                        "a.test:0",
                                        "a.test:70000",
                                        "a.test:8x",
                                        "a.test, b",
                                        "a.test b",
                                        "a.test/",
                                        "a.test\\",
                                        "a.test?",
                                        "a%2etest",
                                        "[::1",
                                        "::1",
                                        "[::1]x",
                                        "[a.test]",
                                        "[1.2.3.4]",
                                        "[fe80::1%1]",
                                        "*.a.test",
                                        "a..test",
                                        "http://a.test",
                                        ":80",
                                        "a.test:80:80",
                                        "a\xc3\xa4.test"};

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        struct peek k = target("GET", "/", hosts[i]);
        EXPECT(k.what == PEEK_BAD && !k.name[0] && !k.address);
        if (k.what != PEEK_BAD)
            printf("# '%s'\n", hosts[i]);
    }
}

TEST(there_is_exactly_one_host)
{
    EXPECT(get("").what == PEEK_BAD);
    EXPECT(get("X-Host: a.test\r\n").what == PEEK_BAD);
    EXPECT(get("Host: a.test\r\nHost: a.test\r\n").what == PEEK_BAD);
    EXPECT(get("Host: a.test\r\nHOST: evil.test\r\n").what == PEEK_BAD);
    EXPECT(what("GET / HTTP/1.0\r\n\r\n") == PEEK_BAD);
    EXPECT(get("Host: a.test\r\nHosts: x\r\nHos: t\r\n").what == PEEK_HTTP);
}

TEST(what_is_read_in_two_ways_is_bad)
{
    static const char *const fields[] = {
        "Host: a.test\n", /* ends of lines */
        "X: y\nHost: a.test\r\n",
        "X: y\rHost: b.test\r\nHost: a.test\r\n",
        "Host: a.test\r\r\n",
        "Host: a.test\r\n folded\r\n", /* folding */
        "Host:\r\n a.test\r\n",
        " Host: a.test\r\n",
        "\tX: y\r\nHost: a.test\r\n",
        "Host : a.test\r\n", /* names */
        "Host\t: a.test\r\n",
        "Host a.test\r\n",
        ": x\r\nHost: a.test\r\n",
        "X y: z\r\nHost: a.test\r\n",
        "X\x80: z\r\nHost: a.test\r\n",
        "X: \x01\r\nHost: a.test\r\n", /* control characters */
        "X: \x7f\r\nHost: a.test\r\n",
        "X: \x0b\r\nHost: a.test\r\n",
        "Host: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", /* bodies */
        "Host: a.test\r\nContent-Length: 1\r\ncontent-length: 1\r\n",
        "Host: a.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        EXPECT(get(fields[i]).what == PEEK_BAD);
        if (get(fields[i]).what != PEEK_BAD)
            printf("# '%s'\n", fields[i]);
    }
    EXPECT(get("X: \x80\xff\ty\r\nHost: a.test\r\nContent-Length: 1\r\n").what == PEEK_HTTP);
}

TEST(a_nul_is_bad)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a.test\0.evil.test\r\n\r\n";
    static const char later[] = "GET / HTTP/1.1\r\nHost: a.test\r\nX: \0\r\n\r\n";
    static const char target[] = "GET /\0 HTTP/1.1\r\nHost: a.test\r\n\r\n";
    struct peek k;

    peek_bytes((const uint8_t *)text, sizeof(text) - 1, &k);
    EXPECT(k.what == PEEK_BAD);
    peek_bytes((const uint8_t *)later, sizeof(later) - 1, &k);
    EXPECT(k.what == PEEK_BAD);
    peek_bytes((const uint8_t *)target, sizeof(target) - 1, &k);
    EXPECT(k.what == PEEK_BAD);
}

TEST(first_lines_that_are_none_are_bad)
{
    static const char *const lines[] = {
        "GET /",           "GET / HTTP/2.0",  "GET / HTTP/1.2",     "GET / http/1.1",
        "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ",    "GET /a b HTTP/1.1",
        "GET /\tHTTP/1.1", "GET / HTTP/1.1x", "GET  HTTP/1.1",      "GET / HTTP/1.1\r",
        "GET x HTTP/1.1",  "GET * HTTP/1.1",  "OPTIONS *x HTTP/1.1"};
    char text[256];

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(text, sizeof(text), "%s\r\nHost: a.test\r\n\r\n", lines[i]);
        EXPECT(what(text) == PEEK_BAD);
        if (what(text) != PEEK_BAD)
            printf("# '%s'\n", lines[i]);
    }
    EXPECT(what("GET / HTTP/1.1\nHost: a.test\n\n") == PEEK_BAD);
    EXPECT(target("OPTIONS", "*", "a.test").what == PEEK_HTTP);
}

TEST(a_target_with_a_host_agrees_with_host)
{
    EXPECT_STR(target("GET", "http://a.test/x", "a.test").name, "a.test");
    EXPECT_STR(target("GET", "HTTP://A.test", "a.TEST").name, "a.test");
    EXPECT_STR(target("GET", "http://a.test:80/", "a.test").name, "a.test");
    EXPECT_STR(target("GET", "https://a.test?q=http://b.test/", "a.test:443").name, "a.test");
    EXPECT(target("GET", "http://1.2.3.4/", "1.2.3.4").address);
    EXPECT(target("GET", "http://evil.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://a.test:81/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://a.test@evil.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://a.test:80@evil.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://a.test#@evil.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://a.test\\@evil.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http:///", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http:a.test", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "ftp://a.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("GET", "http://1.2.3.4/", "1.2.3.5").what == PEEK_BAD);
    EXPECT(target("GET", "http://1.2.3.4/", "a.test").what == PEEK_BAD);
}

TEST(connect_and_upgrade_are_seen)
{
    struct peek k = target("CONNECT", "a.test:443", "a.test:443");

    EXPECT(k.what == PEEK_HTTP && k.connect);
    EXPECT_STR(k.name, "a.test");
    EXPECT(target("CONNECT", "a.test", "a.test").what == PEEK_BAD);
    EXPECT(target("CONNECT", "/", "a.test").what == PEEK_BAD);
    EXPECT(target("CONNECT", "evil.test:443", "a.test:443").what == PEEK_BAD);
    EXPECT(target("CONNECT", "http://a.test/", "a.test").what == PEEK_BAD);
    EXPECT(target("CONNECT", "a.test:443/x", "a.test:443").what == PEEK_BAD);
    k = get("Host: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    EXPECT(k.what == PEEK_HTTP && !k.connect);
    EXPECT(get("Host: a.test\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n").what == PEEK_HTTP);
}

TEST(piece_by_piece_is_the_same)
{
    static const char text[] = "POST /x HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\nbody\r\n\r\n";
    struct peek k;

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        peek_bytes((const uint8_t *)text, n, &k);
        EXPECT(k.what == (n < 40 ? PEEK_MORE : PEEK_HTTP));
    }
}

TEST(a_head_that_does_not_fit_is_never_passed_on)
{
    static char text[PEEK_MAX + 64];
    struct peek k;
    int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a.test\r\nX: ");

    memset(text + n, 'y', sizeof(text) - (size_t)n);
    memcpy(text + PEEK_MAX - 4, "\r\n\r\n", 4);
    peek_bytes((const uint8_t *)text, sizeof(text), &k);
    EXPECT(k.what == PEEK_HTTP);
    memcpy(text + PEEK_MAX - 4, "y\r\n\r\n", 5);
    peek_bytes((const uint8_t *)text, PEEK_MAX - 1, &k);
    EXPECT(k.what == PEEK_MORE);
    peek_bytes((const uint8_t *)text, PEEK_MAX, &k);
    EXPECT(k.what == PEEK_BAD && !k.name[0]);
    peek_bytes((const uint8_t *)text, sizeof(text), &k);
    EXPECT(k.what == PEEK_BAD);
}

TAP_MAIN
