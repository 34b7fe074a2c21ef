/* WebSockets: frames without I/O, cut in every way, and connections over a socket. */
#include "lib/http/websocket.h"

#include "lib/http/ws_codec.h"
#include "http_client.h"

#define ROOM (1u << 20)

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

TEST(utf8_is_what_the_standard_says)
{
    static const char *const good[] = {"",
                                       "plain text that is longer than thirty-two bytes is skipped",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "h\xc3\xa9llo \xe2\x98\x83 \xf0\x9f\x98\x80"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xe2\x98",
                                      "text that is longer than thirty-two bytes, and then \xe2(",
                                      "\xf0\x9f\x98x"};

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct utf8_state s = {0};

        EXPECT(utf8_valid(good[i], strlen(good[i])));
        for (const char *p = good[i]; *p; p++)
            EXPECT(utf8_feed(&s, p, 1));
        EXPECT(utf8_whole(&s));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct utf8_state s = {0};
        bool ok = true;

        EXPECT(!utf8_valid(bad[i], strlen(bad[i])));
        for (const char *p = bad[i]; *p && ok; p++)
            ok = utf8_feed(&s, p, 1);
        EXPECT(!ok || !utf8_whole(&s));
    }
}

/* ---- codec ----------------------------------------------------------------------------------- */

/* A client's frame. len_bytes: of its length, beyond the first: 0, 2 or 8. */
static void add_frame(struct strbuf *out, uint8_t first, const char *payload, size_t len,
                      unsigned len_bytes)
{
    static const uint8_t mask[4] = {0x12, 0xa5, 0xff, 0x01};
    uint64_t n = len;

    strbuf_addch(out, (char)first);
    strbuf_addch(out, (char)(0x80 | (len_bytes == 0 ? len : len_bytes == 2 ? 126 : 127)));
    for (unsigned i = len_bytes; i > 0; i--)
        strbuf_addch(out, (char)(n >> (8 * (i - 1))));
    strbuf_add(out, mask, sizeof(mask));
    for (size_t i = 0; i < len; i++)
        strbuf_addch(out, (char)((uint8_t)payload[i] ^ mask[i & 3]));
}

static void add_short(struct strbuf *out, uint8_t first, const char *payload)
{
    size_t len = strlen(payload);

    add_frame(out, first, payload, len, len < 126 ? 0 : len <= 0xffff ? 2 : 8);
}

/* What comes of it, in words, fed so many bytes at a time. */
static void read_all(const struct strbuf *in, size_t step, size_t max, struct strbuf *out)
{
    static const char *const names[] = {"more", "message", "ping", "pong", "close", "broken"};
    struct ws_codec c;
    struct ws_seen seen = {0};

    ws_codec_init(&c, max);
    for (size_t at = 0; at < in->len && seen.what != WS_BROKEN;) {
        size_t n = in->len - at < step ? in->len - at : step;

        at += ws_codec_feed(&c, in->buf + at, n, &seen);
        if (seen.what == WS_BROKEN)
            strbuf_addf(out, "broken %u;", seen.code);
        else if (seen.what == WS_CLOSE)
            strbuf_addf(out, "close %u %.*s;", seen.code, (int)seen.len, seen.data);
        else if (seen.what != WS_MORE)
            strbuf_addf(out, "%s%s %.*s;", seen.what == WS_MESSAGE && !seen.text ? "binary " : "",
                        names[seen.what], (int)seen.len, seen.data);
    }
    ws_codec_done(&c);
}

static void expect_of(const struct strbuf *in, size_t max, const char *expected)
{
    static const size_t steps[] = {1, 2, 3, 7, 64, SIZE_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        AUTO(strbuf_done) struct strbuf out = {0};

        strbuf_init(&out, ROOM);
        read_all(in, steps[i], max, &out);
        EXPECT_STR(out.buf, expected);
    }
}

TEST(messages_control_frames_and_pieces)
{
    AUTO(strbuf_done) struct strbuf in = {0};

    strbuf_init(&in, ROOM);
    add_short(&in, 0x81, "{\"a\":1}");
    add_short(&in, 0x81, "");
    add_short(&in, 0x01, "first \xe2\x98");
    add_short(&in, 0x89, "in between");
    add_short(&in, 0x00, "\x83 second");
    add_short(&in, 0x80, "");
    add_short(&in, 0x82, "bytes \xff");
    add_short(&in, 0x8a, "7");
    add_short(&in, 0x88,
              "\x03\xe8"
              "bye");
    expect_of(&in, 100,
              "message {\"a\":1};message ;ping in between;message first \xe2\x98\x83 second;"
              "binary message bytes \xff;pong 7;close 1000 bye;");
}

TEST(long_messages_come_whole)
{
    static char text[200001];
    AUTO(strbuf_done) struct strbuf in = {0}, expected = {0};

    strbuf_init(&in, ROOM);
    strbuf_init(&expected, ROOM);
    memset(text, 'x', 200000);
    for (size_t n = 120; n <= 200000; n = n < 130 ? n + 1 : n * 7) {
        add_frame(&in, 0x81, text, n, n < 126 ? 0 : n <= 0xffff ? 2 : 8);
        strbuf_addf(&expected, "message %.*s;", (int)n, text);
    }
    AUTO(strbuf_done) struct strbuf out = {0};
    strbuf_init(&out, ROOM);
    read_all(&in, 1000, ROOM, &out);
    EXPECT_STR(out.buf, expected.buf);
}

TEST(what_is_no_frame_is_refused_with_its_code)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *expected;
    } cases[] = {
        {"\x81\x02{}", 4, "broken 1002;"}, /* not masked */
        {"\xc1\x80", 2, "broken 1002;"},   /* reserved bits */
        {"\xa1\x80", 2, "broken 1002;"},
        {"\x83\x80", 2, "broken 1002;"}, /* opcodes */
        {"\x8b\x80", 2, "broken 1002;"},
        {"\x80\x80", 2, "broken 1002;"},                              /* continues nothing */
        {"\x09\x80", 2, "broken 1002;"},                              /* control in pieces */
        {"\x89\xfe", 2, "broken 1002;"},                              /* control too long */
        {"\x81\xfe\0\x7d\0\0\0\0", 8, "broken 1002;"},                /* 125 in two bytes */
        {"\x81\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", 14, "broken 1002;"}, /* 65535 in eight */
        {"\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14, "broken 1002;"},   /* 2^63 */
        {"\x81\xff\0\0\0\0\x40\0\0\0\0\0\0\0", 14, "broken 1009;"},   /* 1 GiB */
        {"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14, "broken 1009;"},
        {"\x81\x82\0\0\0\0\xff\xfe", 8, "broken 1007;"}, /* not UTF-8 */
        {"\x81\x81\0\0\0\0\xe2", 7, "broken 1007;"},     /* half a character */
        {"\x88\x81\0\0\0\0\x03", 7, "broken 1002;"},     /* half a code */
        {"\x88\x82\0\0\0\0\x03\xed", 8, "broken 1002;"}, /* 1005 is not sent */
        {"\x88\x82\0\0\0\0\0\x01", 8, "broken 1002;"},
        {"\x88\x83\0\0\0\0\x03\xe8\xff", 9, "broken 1007;"},
        {"\x88\x80\0\0\0\0", 6, "close 1005 ;"},
        {"\x88\x82\0\0\0\0\x11\x39", 8, "close 4409 ;"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct strbuf in = {.buf = (char *)(uintptr_t)cases[i].bytes, .len = cases[i].len};

        expect_of(&in, 4096, cases[i].expected);
    }
}

TEST(a_message_of_many_pieces_has_the_same_limit)
{
    AUTO(strbuf_done) struct strbuf in = {0};

    strbuf_init(&in, ROOM);
    add_short(&in, 0x01, "12345");
    add_short(&in, 0x00, "12345");
    add_short(&in, 0x80, "1");
    expect_of(&in, 10, "broken 1009;");
    expect_of(&in, 11, "message 12345123451;");
    strbuf_reset(&in);
    add_short(&in, 0x01, "1");
    add_short(&in, 0x81, "2");
    expect_of(&in, 10, "broken 1002;");
}

TEST(nothing_is_allocated_for_what_is_only_announced)
{
    static const char head[] = "\x81\xff\0\0\0\0\x03\xff\xff\xff\0\0\0\0"
                               "abc";
    struct ws_codec c;
    struct ws_seen seen;

    ws_codec_init(&c, 64u << 20);
    EXPECT(ws_codec_feed(&c, head, sizeof(head) - 1, &seen) == sizeof(head) - 1);
    EXPECT(seen.what == WS_MORE && c.len == 3 && c.cap <= 4096);
    ws_codec_done(&c);
}

TEST(our_own_frames_have_the_size_that_they_say)
{
    static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 10u << 20};
    uint8_t head[WS_HEAD_OWN];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t n = ws_frame_head(head, WS_OP_TEXT, sizes[i]);

        EXPECT(head[0] == 0x81 && (head[1] & 0x80) == 0);
        EXPECT(ws_frame_size(head) == n + sizes[i]);
    }
}

TEST(unmasking_begins_anywhere)
{
    static const uint8_t mask[4] = {1, 2, 4, 8};
    char in[64], out[64];

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)i;
    for (unsigned at = 0; at < 4; at++)
        for (size_t n = 0; n <= 40; n++) {
            bool same = true;
            ws_unmask(out, in + 3, n, mask, at);
            for (size_t i = 0; i < n; i++)
                same = same && out[i] == (char)((uint8_t)in[3 + i] ^ mask[(at + i) & 3]);
            EXPECT(same);
        }
}

/* ---- connection ------------------------------------------------------------------------------ */

#define ASK                                                                        \
    "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define MESSAGE_MAX 4096

static struct host h;
static struct client cl;
static struct ws *server_ws;
static struct strbuf came; /* what the server was told */
static unsigned writable, ends, former_ends;
static bool echoes;

static void on_message(struct ws *w, bool text, const char *data, size_t len)
{
    strbuf_addf(&came, "%s:%.*s;", text ? "text" : "binary", (int)len, data);
    if (echoes)
        ws_send(w, text, data, len);
}

static void on_messages_end(struct ws *w)
{
    (void)w;
    ends++;
}

static void on_pong(struct ws *w, const char *data, size_t len)
{
    (void)w;
    strbuf_addf(&came, "pong:%.*s;", (int)len, data);
}

static void on_writable(struct ws *w)
{
    (void)w;
    writable++;
}

static void on_ws_close(struct ws *w, unsigned code, const char *reason)
{
    (void)w;
    strbuf_addf(&came, "closed:%u %s;", code, reason);
    server_ws = NULL;
}

static const struct ws_handlers handlers = {.on_message = on_message,
                                            .on_messages_end = on_messages_end,
                                            .on_pong = on_pong,
                                            .on_writable = on_writable,
                                            .on_close = on_ws_close};

static void on_former_close(struct http_req *req)
{
    EXPECT(req->owner == &former_ends);
    former_ends++;
}

static void on_request(struct http_req *req)
{
    req->owner = &former_ends;
    req->on_close = on_former_close;
    http_add_header(req, "X-Mine", "yes");
    server_ws =
        ws_accept(req, ws_offers(req, "mine.v1") ? "mine.v1" : NULL, MESSAGE_MAX, &handlers, &h);
    if (server_ws)
        EXPECT(ws_owner(server_ws) == &h);
}

static void start(void)
{
    writable = ends = former_ends = 0;
    echoes = true;
    server_ws = NULL;
    strbuf_init(&came, ROOM);
    host_open(&h, NULL, on_request, NULL);
    client_open(&cl, &h);
}

static void stop(void)
{
    client_close(&cl);
    host_close(&h);
    strbuf_done(&came);
}

static void upgrade(void)
{
    client_send(&cl, ASK "\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\n"));
    EXPECT(client_status(&cl) == 101);
    strbuf_reset(&cl.got);
}

static void send_frame(uint8_t first, const char *payload)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, ROOM);
    add_short(&out, first, payload);
    client_send_bytes(&cl, out.buf, out.len);
}

static bool has_come(const char *text)
{
    return strstr(came.buf, text) != NULL;
}

TEST(a_handshake)
{
    start();
    client_send(&cl, ASK "Sec-WebSocket-Protocol: other, mine.v1\r\n\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\n"));
    EXPECT(client_wait(&cl, "HTTP/1.1 101 Switching Protocols\r\n"));
    /* The example of the standard. */
    EXPECT(client_wait(&cl, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    EXPECT(client_wait(&cl, "Sec-WebSocket-Protocol: mine.v1\r\n"));
    EXPECT(client_wait(&cl, "X-Mine: yes\r\n"));
    stop();
    EXPECT(former_ends == 1);
}

TEST(requests_that_ask_for_something_else)
{
    static const struct {
        const char *request;
        int status;
        const char *text;
    } cases[] = {
        {"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", 426, "Upgrade: websocket"},
        {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 426,
         "WebSocket"},
        {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 8\r\n\r\n",
         426, "Sec-WebSocket-Version: 13"},
        {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
         400, "Sec-WebSocket-Key"},
        {"POST /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Content-Length: 0\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
         426, "ask for an upgrade"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        start();
        client_send(&cl, cases[i].request);
        EXPECT(client_wait(&cl, "requestId"));
        EXPECT(client_status(&cl) == cases[i].status);
        EXPECT(client_wait(&cl, cases[i].text));
        EXPECT(server_ws == NULL);
        EXPECT(came.len == 0);
        stop();
        EXPECT(former_ends == 1);
    }
}

TEST(messages_go_both_ways)
{
    start();
    upgrade();
    send_frame(0x81, "{\"n\":1}");
    EXPECT(client_wait(&cl, "\x81\x07{\"n\":1}"));
    send_frame(0x82, "raw");
    EXPECT(client_wait(&cl, "\x82\x03raw"));
    EXPECT_STR(came.buf, "text:{\"n\":1};binary:raw;");
    EXPECT(ends == 2);
    stop();
}

TEST(several_at_once_are_told_as_one_batch)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    start();
    upgrade();
    strbuf_init(&out, ROOM);
    for (int i = 0; i < 50; i++)
        add_short(&out, 0x81, "x");
    client_send_bytes(&cl, out.buf, out.len);
    WAIT_UNTIL(&h, came.len == 50 * strlen("text:x;"));
    EXPECT(ends >= 1 && ends < 50);
    stop();
}

TEST(pings_in_both_directions)
{
    start();
    upgrade();
    send_frame(0x89, "are you there");
    EXPECT(client_wait(&cl, "\x8a\x0d"
                            "are you there"));
    ws_ping(server_ws, "42", 2);
    EXPECT(client_wait(&cl, "\x89\x02"
                            "42"));
    send_frame(0x8a, "42");
    WAIT_UNTIL(&h, has_come("pong:42;"));
    stop();
}

TEST(the_client_closes)
{
    start();
    upgrade();
    send_frame(0x88, "\x03\xe9"
                     "leaving");
    EXPECT(client_wait_end(&cl));
    EXPECT(cl.got.len == 4 && memcmp(cl.got.buf, "\x88\x02\x03\xe9", 4) == 0);
    EXPECT_STR(came.buf, "closed:1001 leaving;");
    stop();
    EXPECT(former_ends == 1);
}

TEST(messages_with_a_close_right_behind_them_are_told_too)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    start();
    upgrade();
    strbuf_init(&out, ROOM);
    add_short(&out, 0x81, "last");
    add_short(&out, 0x88, "\x03\xe8");
    client_send_bytes(&cl, out.buf, out.len);
    EXPECT(client_wait_end(&cl));
    EXPECT_STR(came.buf, "text:last;closed:1000 ;");
    EXPECT(ends == 1);
    stop();
}

TEST(the_server_closes_and_hears_nothing_more)
{
    start();
    upgrade();
    ws_close(server_ws, WS_GOING_AWAY, "enough");
    ws_close(server_ws, WS_NORMAL, "twice");
    EXPECT(!ws_send(server_ws, true, "late", 4));
    EXPECT(client_wait(&cl, "\x88\x08\x03\xe9"
                            "enough"));
    send_frame(0x81, "too late");
    send_frame(0x88, "\x03\xe9");
    EXPECT(client_wait_end(&cl));
    EXPECT(cl.got.len == 10);
    WAIT_UNTIL(&h, came.len > 0);
    EXPECT_STR(came.buf, "closed:1001 enough;");
    stop();
}

TEST(a_client_that_does_not_answer_a_close_is_dropped)
{
    start();
    upgrade();
    ws_close(server_ws, WS_POLICY, "no");
    EXPECT(client_wait_end(&cl));
    EXPECT_STR(came.buf, "closed:1008 no;");
    stop();
}

TEST(a_breach_is_told_and_ends_it)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *close; /* begin of the close frame's payload */
        const char *told;
    } cases[] = {
        {"\x81\xff\0\0\0\0\x40\0\0\0\0\0\0\0", 14, "\x03\xf1", "closed:1009 "},
        {"\x81\x02{}", 4, "\x03\xea", "closed:1002 "},
        {"\x81\x82\0\0\0\0\xff\xfe", 8, "\x03\xef", "closed:1007 "},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        start();
        upgrade();
        client_send_bytes(&cl, cases[i].bytes, cases[i].len);
        EXPECT(client_wait(&cl, cases[i].close));
        EXPECT((uint8_t)cl.got.buf[0] == 0x88);
        EXPECT(client_wait_end(&cl));
        EXPECT(strncmp(came.buf, cases[i].told, strlen(cases[i].told)) == 0);
        stop();
    }
}

TEST(what_the_server_says_itself_waits_for_the_end_of_a_frame)
{
    uint8_t head[WS_HEAD_OWN];

    start();
    upgrade();
    size_t n = ws_frame_head(head, WS_OP_TEXT, 6);
    ws_send_frames(server_ws, head, n, false);
    ws_send_frames(server_ws, "abc", 3, false);
    ws_ping(server_ws, "1", 1);
    send_frame(0x89, "p");
    WAIT_UNTIL(&h, cl.got.len > 0 || (client_read(&cl, SIZE_MAX), cl.got.len >= 5));
    ws_send_frames(server_ws, "def", 3, true);
    EXPECT(client_wait(&cl, "\x8a\x01p"));
    EXPECT(cl.got.len == 14 && memcmp(cl.got.buf,
                                      "\x81\x06"
                                      "abcdef\x89\x01"
                                      "1\x8a\x01p",
                                      14) == 0);
    stop();
}

TEST(in_the_middle_of_a_frame_a_close_drops_the_connection)
{
    uint8_t head[WS_HEAD_OWN];

    start();
    upgrade();
    ws_send_frames(server_ws, head, ws_frame_head(head, WS_OP_TEXT, 6), false);
    ws_close(server_ws, WS_TRY_AGAIN, "too slow");
    EXPECT(client_wait_end(&cl));
    EXPECT(has_come("closed:1013 too slow;"));
    stop();
}

TEST(who_is_paused_is_not_read)
{
    start();
    upgrade();
    ws_pause(server_ws);
    send_frame(0x81, "later");
    for (int i = 0; i < 20; i++)
        host_turn(&h);
    EXPECT(came.len == 0);
    ws_resume(server_ws);
    WAIT_UNTIL(&h, has_come("text:later;"));
    stop();
}

TEST(a_client_that_does_not_read_stops_the_writer)
{
    static char block[64 * 1024];
    uint8_t head[WS_HEAD_OWN];
    unsigned sent = 0;

    start();
    upgrade();
    size_t n = ws_frame_head(head, WS_OP_BINARY, sizeof(block));
    memcpy(block, head, n);
    bool go_on = true;
    while (go_on && sent < 1000) {
        go_on = ws_send_frames(server_ws, block, sizeof(block), true);
        sent++;
        host_turn(&h);
    }
    EXPECT(sent < 1000 && writable == 0);
    while (writable == 0 && !cl.ended) {
        client_read(&cl, sizeof(block));
        strbuf_reset(&cl.got);
        host_turn(&h);
    }
    EXPECT(writable == 1);
    stop();
}

TEST(a_client_that_vanishes)
{
    start();
    upgrade();
    client_close(&cl);
    WAIT_UNTIL(&h, has_come("closed:1006 ;"));
    EXPECT(former_ends == 1);
    stop();
}

TAP_MAIN
