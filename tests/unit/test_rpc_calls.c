/* Calls over a real server: what a client sends, byte by byte, and what it gets back. */
#include "http_client.h"
#include "lib/rpc/rpc.h"

/* A service of its own: says what it is told, as often as it is told. */
static const struct rpc_field say_fields[] = {
    {.name = "text", .number = 1, .type = RPC_STRING},
    {.name = "times", .number = 2, .type = RPC_UINT32},
};
static const struct rpc_message say = RPC_TABLE("Say", say_fields);

static struct rpc_call *waiting; /* a call whose handler keeps it */
static unsigned closed, released, resumed;

static void on_close(struct rpc_call *c)
{
    EXPECT(c->over);
    closed++;
    if (waiting == c)
        waiting = NULL;
}

static json_t *said(const char *text)
{
    return json_pack("{s:s}", "text", text);
}

static void echo(struct rpc_call *c, json_t *message)
{
    c->on_close = on_close;
    if (strcmp(jr_text(message, "text"), "fail") == 0)
        rpc_fail(c, RPC_NOT_FOUND, "there is no '%s'", jr_text(message, "text"));
    else if (strcmp(jr_text(message, "text"), "wait") == 0)
        waiting = c;
    else
        rpc_reply(c, json_incref(message));
}

static void repeat(struct rpc_call *c, json_t *message)
{
    c->on_close = on_close;
    if (strcmp(jr_text(message, "text"), "fail") == 0) {
        rpc_fail(c, RPC_NOT_FOUND, "nothing of that kind");
        return;
    }
    if (strcmp(jr_text(message, "text"), "wait") == 0) {
        waiting = c;
        rpc_send(c, said("started"));
        rpc_set_keepalive(c, said("still here"));
        return;
    }
    for (uint32_t i = 0; i < (uint32_t)jr_int(message, "times"); i++)
        rpc_send(c, json_incref(message));
    rpc_finish(c);
}

static void flood_more(struct rpc_call *c)
{
    static char text[30000];

    memset(text, 'x', sizeof(text) - 1);
    resumed++;
    while (rpc_send(c, said(text)))
        ;
}

static void flood(struct rpc_call *c, json_t *message)
{
    (void)message;
    c->on_close = on_close;
    c->on_writable = flood_more;
    flood_more(c);
}

static void large(struct rpc_call *c, json_t *message)
{
    char *text = xcalloc(1, (uint32_t)jr_int(message, "times") + 1);

    memset(text, 'y', (uint32_t)jr_int(message, "times"));
    rpc_reply(c, said(text));
    free(text);
}

static char joined[256];
static unsigned n_long;

/* Every message but the first is held until the test lets it go. */
static void join(struct rpc_call *c, json_t *message)
{
    c->on_close = on_close;
    if (!message) {
        rpc_reply(c, joined[0] ? said(joined) : NULL);
        return;
    }
    size_t len = strlen(joined);
    if (strlen(jr_text(message, "text")) > WORK_PIECE) {
        n_long++;
        snprintf(joined + len, sizeof(joined) - len, "L");
        return;
    }
    snprintf(joined + len, sizeof(joined) - len, "%s", jr_text(message, "text"));
    if (strcmp(jr_text(message, "text"), "fail") == 0) {
        rpc_fail(c, RPC_INVALID_ARGUMENT, "not that");
    } else if (len > 0) {
        waiting = c;
        rpc_hold(c);
    }
}

static void release(void *context)
{
    EXPECT(context == &released);
    released++;
}

static const struct rpc_method methods[] = {
    {"Echo", RPC_UNARY, &say, &say, echo},
    {"Repeat", RPC_SERVER_STREAM, &say, &say, repeat},
    {"Flood", RPC_SERVER_STREAM, &say, &say, flood},
    {"Large", RPC_UNARY, &say, &say, large},
    {"Join", RPC_CLIENT_STREAM, &say, &say, join},
};
static const struct rpc_service service = {
    .prefix = "/test.Say/", .methods = methods, .n = ARRAY_SIZE(methods), .release = release};

static struct host host;
static struct client client;

static void on_request(struct http_req *req)
{
    rpc_serve(&service, &host.loop, req, &released);
}

static void begin(void)
{
    static const struct http_limits limits = HTTP_LIMITS_DEFAULT;

    closed = released = resumed = 0;
    joined[0] = '\0';
    host_open(&host, &limits, on_request, NULL);
    client_open(&client, &host);
}

static void end(void)
{
    client_close(&client);
    host_close(&host);
    EXPECT(waiting == NULL);
}

static void post(const char *method, const char *headers, const void *body, size_t len)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 16u << 20);
    strbuf_addf(&s, "POST /test.Say/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n\r\n",
                method, len, headers);
    strbuf_add(&s, body, len);
    client_send_bytes(&client, s.buf, s.len);
}

#define JSON   "Content-Type: application/json"
#define STREAM "Content-Type: application/connect+json"

static void post_text(const char *method, const char *headers, const char *body)
{
    post(method, headers, body, strlen(body));
}

static void add_frame(struct strbuf *s, unsigned flags, const char *text)
{
    char header[RPC_ENVELOPE_HEADER];

    rpc_envelope_header(header, flags, strlen(text));
    strbuf_add(s, header, sizeof(header));
    strbuf_addstr(s, text);
}

static void post_frame(const char *method, const char *headers, const char *text)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 1u << 20);
    add_frame(&s, 0, text);
    post(method, headers, s.buf, s.len);
}

static bool got_frame(unsigned flags, const char *text)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 4096);
    add_frame(&s, flags, text);
    for (int i = 0; i < 2000; i++) {
        client_read(&client, SIZE_MAX);
        if (memmem(client.got.buf, client.got.len, s.buf, s.len))
            return true;
        if (client.ended)
            break;
        host_turn(&host);
    }
    printf("# no frame '%s' in '%s'\n", text, client.got.buf);
    return false;
}

static void expect_reply(int status, const char *text)
{
    bool found = client_wait(&client, text);

    EXPECT(found);
    if (!found || client_status(&client) != status)
        printf("# got: %s\n", client.got.buf);
    EXPECT(client_status(&client) == status);
    strbuf_reset(&client.got);
}

/* ---- unary ----------------------------------------------------------------------------------- */

TEST(unary_calls_in_both_forms_on_one_connection)
{
    begin();
    post_text("Echo", JSON "; charset=utf-8\r\nConnect-Protocol-Version: 1", "{\"text\":\"hi\"}");
    expect_reply(200, "{\"text\":\"hi\"}");
    post_text("Echo", JSON, "");
    expect_reply(200, "{}");
    post("Echo", "Content-Type: application/proto\r\nContent-Encoding: identity", "\x0a\x02hi", 4);
    expect_reply(200, "Content-Type: application/proto\r\n");
    WAIT_UNTIL(&host, released == 3);
    EXPECT(closed == 3);
    end();
}

TEST(unary_errors_are_a_status_and_a_name)
{
    begin();
    post_text("Echo", JSON, "{\"text\":\"fail\"}");
    expect_reply(404, "{\"code\":\"not_found\",\"message\":\"there is no 'fail'\"}");
    post("Echo", "Content-Type: application/proto",
         "\x0a\x04"
         "fail",
         6);
    expect_reply(404, "{\"code\":\"not_found\"");
    post_text("Echo", JSON, "{\"text\":1}");
    expect_reply(400,
                 "{\"code\":\"invalid_argument\",\"message\":\"field 'text' must be a string\"}");
    post_text("Echo", JSON, "{");
    expect_reply(400, "\"invalid_argument\"");
    post_text("Echo", JSON "\r\nContent-Encoding: gzip", "{}");
    expect_reply(501, "\"unimplemented\"");
    post_text("Echo", JSON "\r\nConnect-Protocol-Version: 2", "{}");
    expect_reply(400, "Connect-Protocol-Version");
    post_text("Echo", JSON "\r\nConnect-Timeout-Ms: -1", "{}");
    expect_reply(400, "Connect-Timeout-Ms");
    post_text("Echo", JSON "\r\nConnect-Timeout-Ms: 99999999999999999999", "{}");
    expect_reply(400, "Connect-Timeout-Ms");
    post_text("Echo", JSON "\r\nConnect-Timeout-Ms: 1e3", "{}");
    expect_reply(400, "Connect-Timeout-Ms");
    WAIT_UNTIL(&host, released == 9);
    end();
}

TEST(what_is_no_call_is_refused)
{
    begin();
    post_text("Nothing", JSON, "{}");
    expect_reply(404, "\"unimplemented\"");
    post_text("Echo/", JSON, "{}");
    expect_reply(404, "\"unimplemented\"");
    post_text("Echo", "Content-Type: text/plain", "{}");
    expect_reply(415, "Accept-Post: application/json, application/proto");
    post_text("Echo", STREAM, "{}");
    expect_reply(415, "Accept-Post");
    post_text("Echo", "X: y", "{}");
    expect_reply(415, "Accept-Post");
    post_text("Echo", "Content-Type: application/jsonx", "{}");
    expect_reply(415, "Accept-Post");
    post_text("Repeat", JSON, "{}");
    expect_reply(415, "Accept-Post: application/connect+json");
    client_send(&client, "GET /test.Say/Echo HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_reply(405, "Allow: POST");
    end();
}

TEST(a_body_that_is_too_large_is_not_read)
{
    begin();
    client_send(&client,
                "POST /test.Say/Echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4194305\r\n" JSON
                "\r\n\r\n{");
    expect_reply(413, "too large");
    EXPECT(client_wait_end(&client));
    end();
}

TEST(a_large_answer_comes_whole)
{
    begin();
    post_text("Large", JSON, "{\"times\":12000000}");
    expect_reply(200, "yyyy\"}");
    EXPECT(client.got.len == 0);
    end();
    begin();
    post_text("Large", JSON, "{\"times\":17000000}");
    expect_reply(429, "resource_exhausted");
    end();
}

TEST(a_client_that_leaves_is_told_to_the_handler)
{
    begin();
    post_text("Echo", JSON, "{\"text\":\"wait\"}");
    WAIT_UNTIL(&host, waiting != NULL);
    client_close(&client);
    WAIT_UNTIL(&host, closed == 1);
    WAIT_UNTIL(&host, released == 1);
    end();
}

TEST(time_runs_out)
{
    begin();
    post_text("Echo", JSON "\r\nConnect-Timeout-Ms: 30", "{\"text\":\"wait\"}");
    expect_reply(504, "\"deadline_exceeded\"");
    EXPECT(closed == 1);
    post_frame("Repeat", STREAM "\r\nConnect-Timeout-Ms: 30", "{\"text\":\"wait\"}");
    expect_reply(200, "{\"error\":{\"code\":\"deadline_exceeded\"");
    EXPECT(closed == 2);
    post_text("Echo", JSON "\r\nConnect-Timeout-Ms: 0", "{\"text\":\"hi\"}");
    expect_reply(200, "hi");
    end();
}

/* ---- server streams -------------------------------------------------------------------------- */

TEST(a_stream_of_messages_and_its_end)
{
    begin();
    post_frame("Repeat", STREAM, "{\"text\":\"a\",\"times\":3}");
    EXPECT(got_frame(2, "{}"));
    EXPECT(client_count(&client, "{\"text\":\"a\",\"times\":3}") == 3);
    EXPECT(client_count(&client, "Content-Type: application/connect+json\r\n") == 1);
    EXPECT(client_count(&client, "Transfer-Encoding: chunked") == 1);
    EXPECT(client_status(&client) == 200);
    strbuf_reset(&client.got);
    /* the connection goes on */
    post("Repeat", "Content-Type: application/connect+proto", "\0\0\0\0\5\x0a\x01z\x10\x01", 10);
    EXPECT(client_wait(&client, "\x0a\x01z\x10\x01"));
    EXPECT(got_frame(2, "{}"));
    end();
}

TEST(errors_of_a_stream_are_200_and_a_frame)
{
    begin();
    post_frame("Repeat", STREAM, "{\"text\":\"fail\"}");
    EXPECT(
        got_frame(2, "{\"error\":{\"code\":\"not_found\",\"message\":\"nothing of that kind\"}}"));
    EXPECT(client_status(&client) == 200);
    strbuf_reset(&client.got);
    post_frame("Repeat", STREAM, "{\"text\":[]}");
    expect_reply(200, "{\"error\":{\"code\":\"invalid_argument\"");
    post_frame("Repeat", STREAM "\r\nConnect-Content-Encoding: gzip", "{}");
    expect_reply(200, "{\"error\":{\"code\":\"unimplemented\"");
    post_frame("Repeat",
               STREAM "\r\nConnect-Content-Encoding: identity\r\nContent-Encoding: identity", "{}");
    EXPECT(got_frame(2, "{}"));
    end();
}

static void expect_bad_stream(const void *body, size_t len, const char *code)
{
    char want[64];

    begin();
    post("Repeat", STREAM, body, len);
    snprintf(want, sizeof(want), "{\"error\":{\"code\":\"%s\"", code);
    expect_reply(200, want);
    end();
}

TEST(bad_envelopes)
{
    expect_bad_stream("", 0, "invalid_argument");
    expect_bad_stream("\0\0\0\0", 4, "invalid_argument");
    expect_bad_stream("\0\0\0\0\3{}", 7, "invalid_argument");
    expect_bad_stream("\0\0\0\0\2{}\0\0\0\0\2{}", 14, "invalid_argument");
    expect_bad_stream("\0\0\0\0\2{}\0", 8, "invalid_argument");
    expect_bad_stream("\1\0\0\0\2{}", 7, "unimplemented");
    expect_bad_stream("\2\0\0\0\2{}", 7, "invalid_argument");
    expect_bad_stream("\x80\0\0\0\2{}", 7, "invalid_argument");
    expect_bad_stream("\0\xff\xff\xff\xff", 5, "resource_exhausted");
    expect_bad_stream("{}", 2, "invalid_argument");
}

TEST(a_length_is_refused_before_its_bytes_come)
{
    begin();
    client_send(&client,
                "POST /test.Say/Repeat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" STREAM
                "\r\n\r\n5\r\n");
    client_send_bytes(&client, "\0\0\x40\0\1\r\n", 7);
    expect_reply(200, "{\"error\":{\"code\":\"resource_exhausted\"");
    end();
}

TEST(an_envelope_may_come_byte_by_byte)
{
    static const char body[] = "\0\0\0\0\x17{\"text\":\"a\",\"times\":2} ";

    begin();
    client_send(&client,
                "POST /test.Say/Repeat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" STREAM
                "\r\n\r\n");
    for (size_t i = 0; i < sizeof(body) - 1; i++) {
        char chunk[] = "1\r\nx\r\n";
        chunk[3] = body[i];
        client_send_bytes(&client, chunk, 6);
        host_turn(&host);
    }
    client_send(&client, "0\r\n\r\n");
    EXPECT(got_frame(2, "{}"));
    EXPECT(client_count(&client, "{\"text\":\"a\",\"times\":2}") == 2);
    end();
}

TEST(keepalives_come_after_the_start_and_only_in_silence)
{
    begin();
    post_frame("Repeat", STREAM "\r\nKeepalive-Ping-Interval: 1", "{\"text\":\"wait\"}");
    EXPECT(got_frame(0, "{\"text\":\"started\"}"));
    uint64_t start = clock_ns();
    /* while something is sent every now and then there is none */
    while (clock_ns() - start < 1500000000ull) {
        rpc_send(waiting, said("data"));
        for (int i = 0; i < 20; i++)
            host_turn(&host);
    }
    client_read(&client, SIZE_MAX);
    EXPECT(client_count(&client, "data") > 0 && client_count(&client, "still here") == 0);
    EXPECT(got_frame(0, "{\"text\":\"still here\"}"));
    EXPECT(clock_ns() - start > 2000000000ull);
    rpc_finish(waiting);
    EXPECT(got_frame(2, "{}"));
    end();
}

TEST(a_slow_reader_stops_the_sender)
{
    begin();
    post_frame("Flood", STREAM, "{}");
    for (int i = 0; i < 50; i++)
        host_turn(&host);
    unsigned before = resumed;
    EXPECT(before < 200);
    for (int i = 0; i < 50; i++)
        host_turn(&host);
    EXPECT(resumed == before); /* it waits */
    for (int i = 0; i < 100 && resumed < before + 3; i++) {
        client_read(&client, 1u << 20);
        host_turn(&host);
    }
    EXPECT(resumed >= before + 3);
    client_close(&client);
    WAIT_UNTIL(&host, released == 1);
    EXPECT(closed == 1);
    end();
}

/* ---- client streams -------------------------------------------------------------------------- */

TEST(messages_of_a_client_stream_wait_for_their_turn)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    begin();
    strbuf_init(&s, 4096);
    for (int i = 0; i < 4; i++) {
        char text[32];
        snprintf(text, sizeof(text), "{\"text\":\"%c\"}", 'a' + i);
        add_frame(&s, 0, text);
    }
    post("Join", STREAM, s.buf, s.len);
    for (int i = 0; i < 3; i++) {
        WAIT_UNTIL(&host, waiting != NULL);
        EXPECT(strlen(joined) == (size_t)i + 2);
        struct rpc_call *c = waiting;
        waiting = NULL;
        rpc_resume(c);
    }
    EXPECT(got_frame(0, "{\"text\":\"abcd\"}"));
    EXPECT(got_frame(2, "{}"));
    EXPECT(closed == 1);
    end();
}

/* {"text":"xxx…"}, and what it ends with. */
static char *long_text(const char *end)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 1u << 20);
    strbuf_addstr(&s, "{\"text\":\"");
    for (int i = 0; i < 500000; i++)
        strbuf_addch(&s, 'x');
    strbuf_addstr(&s, end);
    return strbuf_detach(&s, NULL);
}

TEST(long_messages_are_decoded_elsewhere_and_keep_their_place)
{
    AUTO(free_p) char *text = long_text("\"}"), *broken = long_text("]");
    AUTO(strbuf_done) struct strbuf s = {0};

    begin();
    n_long = 0;
    post_text("Echo", JSON, text);
    expect_reply(200, "xxx\"}");
    post_text("Echo", JSON, broken);
    expect_reply(400, "invalid_argument");
    post_frame("Repeat", STREAM, text);
    EXPECT(got_frame(2, "{}"));
    post_frame("Repeat", STREAM, broken);
    EXPECT(client_wait(&client, "invalid_argument"));
    strbuf_init(&s, 4u << 20);
    add_frame(&s, 0, text);
    add_frame(&s, 0, text);
    add_frame(&s, 0, "{\"text\":\"a\"}");
    post("Join", STREAM, s.buf, s.len);
    WAIT_UNTIL(&host, waiting != NULL);
    EXPECT_STR(joined, "LLa");
    EXPECT(n_long == 2);
    rpc_resume(steal_ptr(&waiting));
    EXPECT(got_frame(0, "{\"text\":\"LLa\"}"));
    end();
}

/* Whenever it is noticed, nothing is lost of what was decoded: the sanitizers look. */
TEST(a_client_may_leave_while_its_message_is_decoded)
{
    AUTO(free_p) char *text = long_text("\"}");

    begin();
    post_frame("Repeat", STREAM, text);
    for (int i = 0; i < 10; i++)
        host_turn(&host);
    end();
}

TEST(a_client_stream_may_be_empty_and_may_fail)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    begin();
    post("Join", STREAM, "", 0);
    EXPECT(got_frame(0, "{}"));
    EXPECT(got_frame(2, "{}"));
    end();

    begin();
    strbuf_init(&s, 4096);
    add_frame(&s, 0, "{\"text\":\"fail\"}");
    add_frame(&s, 0, "{\"text\":\"late\"}");
    post("Join", STREAM, s.buf, s.len);
    expect_reply(200, "{\"error\":{\"code\":\"invalid_argument\",\"message\":\"not that\"}}");
    EXPECT(strcmp(joined, "fail") == 0);
    end();

    begin();
    post("Join", STREAM, "\0\0\0\0\2{}\0\0", 9);
    expect_reply(200, "ends inside a message");
    end();
}

TAP_MAIN
