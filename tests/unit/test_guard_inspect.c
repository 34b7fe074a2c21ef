/* Inspected connections: what a client in a sandbox and a server see of each other. */
#include "inspect_rig.h"

#define HAS(text, what)                                                                     \
    do {                                                                                    \
        if (!strstr((text).buf, (what))) {                                                  \
            tap_failures++;                                                                 \
            printf("# %s:%d: no '%s' in:\n# %s\n", __FILE__, __LINE__, (what), (text).buf); \
        }                                                                                   \
    } while (0)
#define HAS_NOT(text, what)                                                              \
    do {                                                                                 \
        if (strstr((text).buf, (what))) {                                                \
            tap_failures++;                                                              \
            printf("# %s:%d: '%s' in:\n# %s\n", __FILE__, __LINE__, (what), (text).buf); \
        }                                                                                \
    } while (0)

#define RULE                                                                  \
    "\"rules\":[{\"domain\":\"api.test\",\"headers\":[[\"X-Team\",\"blue\"]," \
    "[\"Authorization\",\"Bearer ${e2b.secrets.key}\"]]}]"
#define BARE_RULE "\"rules\":[{\"domain\":\"api.test\",\"headers\":[]}]"
#define VALUE     "sk-live-0123456789abcdef"
#define HOLDER    "sgph_00112233445566778899aabbccddeeff"

static char document[16384];

/* The rules, and one secret with these members. */
static const char *with_secret(const char *rules, const char *value, const char *members)
{
    snprintf(document, sizeof(document), "%s,\"secrets\":[{\"name\":\"key\",%s%s}]", rules,
             rig_sealed("key", value), members);
    return document;
}

static void ok(struct rig_end *e)
{
    rig_send(e, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

/* One request without a body, a plain answer. */
static void serve_one(struct rig_end *e)
{
    rig_expect_head(e);
    ok(e);
    rig_rest(e);
}

/* Takes what comes and says nothing. */
static void listen_only(struct rig_end *e)
{
    rig_rest(e);
}

static const char *request;
static void client_text(struct rig_end *e)
{
    rig_send(e, request);
    rig_rest(e);
}

static const char *answer;
static void serve_text(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e, answer);
}

/* ---- headers and secrets --------------------------------------------------------------------- */

static void client_twice(struct rig_end *e)
{
    rig_send(e, "GET /a?b=c HTTP/1.1\r\nhost: API.test\r\nAuthorization: mine\r\nx-team: red\r\n"
                "Accept: */*\r\nAccept-Encoding: gzip, br\r\n\r\n");
    rig_expect(e, "first");
    rig_send(e, "POST /b HTTP/1.1\r\nHost: api.test:443\r\nContent-Length: 5\r\n"
                "Connection: close\r\n\r\nhello");
    rig_rest(e);
}

static void serve_twice(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: timeout=5\r\n\r\nfirst");
    rig_expect(e, "hello");
    rig_send(e, "HTTP/1.1 201 Made\r\nContent-Length: 6\r\n\r\nsecond");
    rig_rest(e);
}

TEST(headers_of_the_rule_are_set_on_each_request)
{
    struct rig r = {.name = "api.test", .client = client_twice, .server = serve_twice};

    rig_open(&r);
    r.document = with_secret(RULE, VALUE, ",\"hosts\":[\"api.test\"]");
    rig_play(&r);
    EXPECT(r.c.shaken && r.s.shaken);
    HAS(r.s.log, "GET /a?b=c HTTP/1.1\r\nHost: api.test\r\nAccept: */*\r\nx-team: blue\r\n"
                 "authorization: Bearer " VALUE "\r\nAccept-Encoding: identity\r\n\r\n");
    HAS(r.s.log, "POST /b HTTP/1.1\r\nHost: api.test:443\r\n");
    HAS(r.s.log, "Connection: close\r\nContent-Length: 5\r\n\r\nhello");
    HAS_NOT(r.s.log, "mine");
    HAS_NOT(r.s.log, "red");
    HAS(r.c.log, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
    HAS(r.c.log, "HTTP/1.1 201 Made\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecond");
    HAS_NOT(r.c.log, "Keep-Alive");
    EXPECT_STR(rig_records.buf, "secret allow api.test [key] (rules api.test)\n"
                                "request allow api.test [] (rules api.test)\n"
                                "request allow api.test [] (rules api.test)\n");
    EXPECT_STR(r.error, "");
    EXPECT(r.up > 300 && r.down > 300);
    rig_done(&r);
}

static void serve_echo_secret(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e,
             "HTTP/1.1 200 got " VALUE "\r\nX-Echo: a" VALUE "b\r\nTransfer-Encoding: chunked\r\n"
             "\r\n10\r\n{\"a\":\"sk-live-01\r\n");
    /* "user:" and the value, in base64 and percent-encoded; the first one is cut by a chunk. */
    rig_send(e, "e\r\n23456789abcdef\r\n20\r\ndXNlcjpzay1saXZlLTAxMjM0NTY3ODlh\r\n"
                "8\r\nYmNkZWY=\r\n1e\r\n %73k%2Dlive-0123456789abcdef.\r\n0\r\n\r\n");
    rig_rest(e);
}

TEST(secrets_do_not_come_back)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_echo_secret};

    rig_open(&r);
    r.document = with_secret(RULE, VALUE, "");
    request = "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n";
    rig_play(&r);
    HAS(r.s.log, VALUE);
    HAS(r.c.log, "200 got ************************\r\nX-Echo: a************************b\r\n");
    HAS_NOT(r.c.log, "sk-live");
    HAS_NOT(r.c.log, "XZlLTAxMjM0NTY3ODlhYm");
    HAS(r.c.log, "dXNlcjp");
    HAS_NOT(r.c.log, "%2Dlive");
    HAS(r.c.log, ".\r\n0\r\n\r\n");
    rig_done(&r);
}

static const char *part_answer;

static void serve_part(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e, part_answer);
    rig_rest(e);
}

/* members: of a secret; NULL: there is none. */
static void play_part(struct rig *r, const char *rules, const char *members, const char *part)
{
    *r = (struct rig){.name = "api.test", .client = client_text, .server = serve_part};
    rig_open(r);
    r->document = members ? with_secret(rules, VALUE, members) : rules;
    request = "GET / HTTP/1.1\r\nHost: api.test\r\nRange: bytes=0-11\r\nIf-Range: \"x\"\r\n"
              "Accept-Charset: utf-7\r\nConnection: close\r\n\r\n";
    part_answer = part;
    rig_play(r);
}

TEST(no_part_of_an_answer_can_be_asked_for)
{
    static const char *const parts[] = {
        "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-11/24\r\nContent-Length: "
        "12\r\n\r\nsk-live-0123",
        "HTTP/1.1 206 Partial\r\nContent-Length: 12\r\n\r\nsk-live-0123",
        "HTTP/1.1 200 OK\r\nContent-Range: bytes 0-11/24\r\nContent-Length: 12\r\n\r\nsk-live-0123",
        "HTTP/1.1 200 OK\r\nContent-Type: Multipart/Byteranges; x\r\nContent-Length: 12\r\n\r\n"
        "sk-live-0123",
    };
    struct rig r;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        play_part(&r, RULE, "", parts[i]);
        HAS(r.c.log, "HTTP/1.1 502 ");
        HAS_NOT(r.c.log, "sk-live");
        HAS_NOT(r.s.log, "ange:");
        HAS_NOT(r.s.log, "Charset:");
        rig_done(&r);
    }
    /* Where no secret goes it is nobody's business. */
    play_part(&r, BARE_RULE, NULL, parts[0]);
    HAS(r.c.log, "HTTP/1.1 206 Partial\r\n");
    HAS(r.s.log, "Range: bytes=0-11\r\n");
    rig_done(&r);
}

TEST(nor_does_one_come_back_in_names_of_headers_or_from_an_earlier_request)
{
    struct rig r;

    /* It was put in nowhere on this connection: the placeholder is not in the request. */
    play_part(&r, BARE_RULE, ",\"hosts\":[\"api.test\"],\"placeholder\":\"" HOLDER "\"",
              "HTTP/1.1 200 OK\r\nX-" VALUE ": 1\r\nSK-LIVE-0123456789ABCDEF: 2\r\n"
              "Accept-Ranges: bytes\r\nContent-Length: 24\r\n\r\n" VALUE);
    HAS_NOT(r.s.log, VALUE);
    HAS(r.c.log,
        "X-************************: 1\r\n************************: 2\r\nContent-Length: 24");
    HAS(r.c.log, "\r\n\r\n************************");
    rig_done(&r);
}

TEST(placeholders_become_secrets_in_their_headers)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_one};

    rig_open(&r);
    r.document = with_secret("\"fakeIp\":false", VALUE,
                             ",\"hosts\":[\"api.test\"],\"placeholder\":\"" HOLDER "\"");
    /* The second is user:PLACEHOLDER. */
    request = "GET /" HOLDER " HTTP/1.1\r\nHost: api.test\r\nX-Api-Key: <" HOLDER ">\r\n"
              "X-Goog-Api-Key: " HOLDER "\r\n"
              "X-Other: " HOLDER "\r\nAuthorization: Basic "
              "dXNlcjpzZ3BoXzAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZm\r\n"
              "Connection: close\r\n\r\n";
    rig_play(&r);
    HAS(r.s.log, "GET /" HOLDER " HTTP/1.1\r\n");
    HAS(r.s.log, "X-Api-Key: <" VALUE ">\r\n");
    HAS(r.s.log, "X-Goog-Api-Key: " VALUE "\r\n");
    HAS(r.s.log, "X-Other: " HOLDER "\r\n");
    HAS(r.s.log, "Authorization: Basic dXNlcjpzay1saXZlLTAxMjM0NTY3ODlhYmNkZWY=\r\n");
    HAS(r.c.log, "200 OK");
    HAS(rig_records, "secret allow api.test [key]");
    rig_done(&r);
}

TEST(a_placeholder_toward_another_host_stays_and_is_on_record)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_one};

    rig_open(&r);
    r.document =
        with_secret(BARE_RULE, VALUE, ",\"hosts\":[\"other.test\"],\"placeholder\":\"" HOLDER "\"");
    request = "GET / HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer " HOLDER
              "\r\nConnection: close\r\n\r\n";
    rig_play(&r);
    HAS(r.s.log, "Authorization: Bearer " HOLDER "\r\n");
    HAS_NOT(r.s.log, VALUE);
    HAS(rig_records, "secret deny api.test [key] (a placeholder in a request to another host)");
    rig_done(&r);
}

/* A rule that cannot be kept is no reason to go on without it. */
static void refused_rule(const char *value, const char *members, const char *why)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = listen_only};

    rig_open(&r);
    r.document = with_secret(RULE, value, members);
    request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    rig_play(&r);
    EXPECT_STR(r.s.log.buf, "");
    HAS(r.c.log, "HTTP/1.1 502 Bad Gateway\r\n");
    HAS(r.c.log, why);
    HAS(rig_records, "request allow api.test [the ");
    rig_done(&r);
}

TEST(a_rule_whose_secret_cannot_be_used_stops_the_request)
{
    refused_rule("two\r\nlines: x", "", "the secret key cannot be in a header");
    refused_rule(VALUE, ",\"hosts\":[\"other.test\"]", "which may not go there");
}

/* ---- whose request it is --------------------------------------------------------------------- */

static void client_second_host(struct rig_end *e)
{
    rig_send(e, "GET /1 HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_expect(e, "ok");
    rig_send(e, "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    rig_rest(e);
}

TEST(every_request_is_for_the_name_of_the_connection)
{
    struct rig r = {.name = "api.test", .client = client_second_host, .server = serve_one};

    rig_open(&r);
    r.document = BARE_RULE;
    rig_play(&r);
    HAS(r.s.log, "GET /1");
    HAS_NOT(r.s.log, "GET /2");
    HAS(r.c.log, "HTTP/1.1 421 Misdirected Request\r\n");
    HAS(rig_records, "request deny api.test [] (Host is not the name of the connection)");
    rig_done(&r);
}

static void refused(const char *text, const char *status)
{
    struct rig r = {
        .name = "api.test", .plain = true, .client = client_text, .server = listen_only};

    rig_open(&r);
    r.document = BARE_RULE;
    request = text;
    rig_play(&r);
    EXPECT_STR(r.s.log.buf, "");
    HAS(r.c.log, status);
    rig_done(&r);
}

TEST(what_two_readers_could_read_differently_does_not_pass)
{
    refused("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", "HTTP/1.1 405 ");
    refused("TRACE / HTTP/1.1\r\nHost: api.test\r\n\r\n", "HTTP/1.1 405 ");
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 ");
    refused("GET http://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", "HTTP/1.1 421 ");
    refused("GET / HTTP/1.1\r\nHost: api.test:8080\r\n\r\n", "HTTP/1.1 421 ");
    refused("GET / HTTP/1.1\r\nHost: api.test\r\nHost: api.test\r\n\r\n", "HTTP/1.1 400 ");
    refused("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ");
    refused("POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 400 ");
    refused("GET / HTTP/1.1\nHost: api.test\n\n", "HTTP/1.1 400 ");
    refused("POST / HTTP/1.1\r\nHost: api.test\r\nExpect: x\r\n\r\n", "HTTP/1.1 417 ");
}

/* ---- framing --------------------------------------------------------------------------------- */

static void client_ahead(struct rig_end *e)
{
    rig_send(e, "GET /1 HTTP/1.1\r\nHost: api.test\r\n\r\nPOST /2 HTTP/1.1\r\nHost: api.test\r\n"
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n"
                "HEAD /3 HTTP/1.1\r\nHost: api.test\r\n\r\nGET /4 HTTP/1.1\r\nHost: api.test\r\n"
                "\r\nGET /5 HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_rest(e);
}

static void serve_ahead(struct rig_end *e)
{
    rig_expect(e, "GET /1 HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_send(e, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n");
    rig_expect(e, "0\r\n\r\n");
    rig_send(e, "HTTP/1.1 204 None\r\n\r\n");
    rig_expect(e, "HEAD /3 HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_send(e, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    rig_expect(e, "GET /4 HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_send(e, "HTTP/1.1 304 Same\r\nContent-Length: 77\r\n\r\n");
    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
}

TEST(requests_that_are_sent_ahead_are_answered_in_order)
{
    for (int plain = 0; plain < 2; plain++) {
        struct rig r = {
            .name = "api.test", .plain = plain, .client = client_ahead, .server = serve_ahead};

        rig_open(&r);
        r.document = BARE_RULE;
        rig_play(&r);
        HAS(r.s.log, "POST /2 HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
        EXPECT_STR(r.c.log.buf, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "3\r\none\r\n0\r\n\r\n"
                                "HTTP/1.1 204 None\r\n\r\n"
                                "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
                                "HTTP/1.1 304 Same\r\nContent-Length: 77\r\n\r\n"
                                "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
        rig_done(&r);
    }
}

static void client_waits(struct rig_end *e)
{
    rig_send(e, "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 4\r\n"
                "Expect: 100-continue\r\nConnection: close\r\n\r\n");
    rig_expect(e, "HTTP/1.1 100 Continue\r\n\r\n");
    rig_send(e, "body");
    rig_rest(e);
}

static void serve_continue(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 100 Continue\r\n\r\n");
    rig_expect(e, "body");
    ok(e);
    rig_rest(e);
}

TEST(a_client_can_wait_for_100)
{
    struct rig r = {.name = "api.test", .client = client_waits, .server = serve_continue};

    rig_open(&r);
    r.document = BARE_RULE;
    rig_play(&r);
    HAS(r.s.log, "Expect: 100-continue\r\n");
    HAS(r.c.log, "100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n");
    rig_done(&r);
}

TEST(a_client_of_1_0_gets_no_chunks)
{
    struct rig r = {.name = "api.test", .plain = true, .client = client_text, .server = serve_text};

    rig_open(&r);
    r.document = BARE_RULE;
    request = "GET / HTTP/1.0\r\nHost: api.test\r\n\r\n";
    answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplain\r\n0\r\n\r\n";
    rig_play(&r);
    EXPECT_STR(r.c.log.buf, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nplain");
    rig_done(&r);
}

#define BULK (6u * 1024 * 1024)

static void bulk_fill(char *p)
{
    for (uint32_t i = 0; i < BULK; i++)
        p[i] = (char)('a' + (i * 2654435761u >> 24) % 26);
}

static void client_bulk(struct rig_end *e)
{
    AUTO(free_p) char *data = xcalloc(1, BULK);
    char head[128];

    bulk_fill(data);
    snprintf(head, sizeof(head), "PUT / HTTP/1.1\r\nHost: api.test\r\nContent-Length: %u\r\n\r\n",
             BULK);
    rig_send(e, head);
    rig_send_bytes(e, data, BULK);
    rig_expect_head(e);
    strbuf_reset(&e->log);
    while (e->got.len < BULK && rig_more(e))
        ;
    EXPECT(e->got.len == BULK && memcmp(e->got.buf, data, BULK) == 0);
}

static void serve_bulk(struct rig_end *e)
{
    char head[128];

    rig_expect_head(e);
    while (e->got.len < BULK && rig_more(e))
        ;
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", e->got.len);
    rig_send(e, head);
    rig_send_bytes(e, e->got.buf, e->got.len);
    rig_rest(e);
}

TEST(large_bodies_pass_both_ways)
{
    for (int plain = 0; plain < 2; plain++) {
        struct rig r = {
            .name = "api.test", .plain = plain, .client = client_bulk, .server = serve_bulk};

        rig_open(&r);
        r.document = with_secret(RULE, VALUE, "");
        rig_play(&r);
        EXPECT(r.up > BULK && r.down > BULK);
        rig_done(&r);
    }
}

static void client_leaves(struct rig_end *e)
{
    rig_send(e, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
    rig_expect_head(e);
}

static void serve_endless(struct rig_end *e)
{
    static char data[1024 * 1024];

    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 200 OK\r\n\r\n");
    for (int i = 0; i < 64; i++)
        rig_send_bytes(e, data, sizeof(data));
}

TEST(a_client_that_leaves_ends_an_answer_without_end)
{
    for (int plain = 0; plain < 2; plain++) {
        struct rig r = {
            .name = "api.test", .plain = plain, .client = client_leaves, .server = serve_endless};

        rig_open(&r);
        r.document = BARE_RULE;
        rig_play(&r);
        EXPECT(r.down < 16u * 1024 * 1024);
        HAS(rig_records, "request allow api.test [cut off]");
        rig_done(&r);
    }
}

/* A client that reads nothing for a while: the server is stopped, and all arrives later. */
static size_t most_held;
static void client_slow(struct rig_end *e)
{
    rig_send(e, "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    while (e->got.len < BULK && rig_more(e))
        usleep(50);
    rig_rest(e);
}

static void serve_fast(struct rig_end *e)
{
    static char data[1024 * 1024];

    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
    for (int i = 0; i < 8; i++)
        rig_send_bytes(e, data, sizeof(data));
    rig_rest(e);
}

static void weigh(struct rig *r)
{
    const struct inspect *i = r->inspect;
    size_t n = i->client.in.cap + i->client.out.cap + i->server.in.cap + i->server.out.cap;

    most_held = n > most_held ? n : most_held;
}

TEST(a_client_that_does_not_read_stops_the_server)
{
    struct rig r = {.name = "api.test", .client = client_slow, .server = serve_fast, .then = weigh};

    rig_open(&r);
    r.document = BARE_RULE;
    most_held = 0;
    rig_play(&r);
    EXPECT(r.c.log.len > 8388608 && r.c.log.len < 8388608 + 200);
    EXPECT(most_held > 0 && most_held <= 320u * 1024);
    rig_done(&r);
}

/* ---- servers that fail ----------------------------------------------------------------------- */

static void failing_server(void (*server)(struct rig_end *), const char *status, const char *why)
{
    for (int plain = 0; plain < 2; plain++) {
        struct rig r = {.name = "api.test",
                        .plain = plain,
                        .client = client_text,
                        .server = server,
                        .first_byte_ms = 300};

        rig_open(&r);
        r.document = BARE_RULE;
        request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
        rig_play(&r);
        HAS(r.c.log, status);
        HAS(r.c.log, why);
        HAS(rig_records, "request allow api.test [");
        rig_done(&r);
    }
}

static void serve_nothing(struct rig_end *e)
{
    rig_expect_head(e);
}

TEST(a_server_that_fails_is_told_of)
{
    failing_server(serve_nothing, "HTTP/1.1 502 ", "without an answer");
    failing_server(listen_only, "HTTP/1.1 504 ", "no answer in time");
    answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
    failing_server(serve_text, "HTTP/1.1 502 ", "more than one Content-Length");
    answer = "220 smtp.test ESMTP\r\n\r\n";
    failing_server(serve_text, "HTTP/1.1 502 ", "not an HTTP response");
    answer = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    failing_server(serve_text, "HTTP/1.1 502 ", "not asked for");
}

static void serve_interim_forever(struct rig_end *e)
{
    rig_expect_head(e);
    for (int i = 0; i < 100; i++)
        rig_send(e, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    rig_rest(e);
}

TEST(interim_answers_have_an_end)
{
    failing_server(serve_interim_forever, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                   "HTTP/1.1 502 ");
}

TEST(an_answer_that_is_not_whole_is_not_ended_as_if_it_were)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_text};

    rig_open(&r);
    r.document = BARE_RULE;
    request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplain\r\n5\r\npl";
    rig_play(&r);
    HAS(r.c.log, "plain\r\n");
    HAS_NOT(r.c.log, "0\r\n\r\n");
    EXPECT_STR(r.error, "the server closed the connection in the middle of an answer");
    rig_done(&r);
}

static void unbelieved(struct rig *r, const char *why)
{
    r->name = "api.test";
    r->client = client_text;
    r->server = listen_only;
    rig_open(r);
    r->document = with_secret(RULE, VALUE, "");
    request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    rig_play(r);
    EXPECT(r->c.shaken);
    EXPECT_STR(r->s.log.buf, "");
    HAS(r->c.log, "HTTP/1.1 502 ");
    HAS(r->c.log, why);
    rig_done(r);
}

TEST(a_server_must_prove_its_name)
{
    struct rig unknown = {.unknown_server = true}, other = {.server_name = "evil.test"};

    unbelieved(&unknown, "its certificate is not valid: unable to get local issuer");
    unbelieved(&other, "its certificate is not valid: hostname mismatch");
}

/* ---- the sandbox's side ---------------------------------------------------------------------- */

TEST(a_client_without_the_sandbox_s_ca_gets_nothing)
{
    struct rig r = {
        .name = "api.test", .untrusted = true, .client = client_text, .server = listen_only};

    rig_open(&r);
    r.document = BARE_RULE;
    rig_play(&r);
    EXPECT(!r.c.shaken);
    EXPECT(strstr(r.error, "TLS with the sandbox: "));
    EXPECT_STR(r.s.log.buf, "");
    rig_done(&r);
}

TEST(a_name_without_a_rule_has_no_certificate)
{
    struct rig r = {.name = "free.test", .client = client_text, .server = listen_only};

    rig_open(&r);
    r.document = BARE_RULE;
    rig_play(&r);
    EXPECT(!r.c.shaken);
    EXPECT_STR(r.error, "no rule for the name: no certificate");
    rig_done(&r);
}

static void reset_it(struct rig *r)
{
    if (!r->inspect || r->inspect->requests == 0)
        return;
    inspect_reset(r->inspect);
    EXPECT(r->done);
}

TEST(a_reset_ends_it_at_once)
{
    struct rig r = {
        .name = "api.test", .client = client_text, .server = listen_only, .then = reset_it};

    rig_open(&r);
    r.document = BARE_RULE;
    request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    rig_play(&r);
    EXPECT_STR(r.c.log.buf, "");
    HAS(rig_records, "request allow api.test [cut off]");
    rig_done(&r);
}

/* ---- WebSocket ------------------------------------------------------------------------------- */

static void serve_socket(struct rig_end *e)
{
    rig_expect_head(e);
    rig_send(e, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Accept: xyz\r\n\r\n");
    rig_expect(e, "hello");
    rig_send(e, "\x81\x1f[sk-live-0123456789");
    rig_send(e, "abcdef]\x81\x03yes");
    rig_send(e, " s"); /* what only looks like a secret is not kept for long */
    rig_expect(e, "never");
}

static void client_socket(struct rig_end *e)
{
    rig_send(e, "GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\n"
                "Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    rig_expect_head(e);
    rig_send(e, "\x81\x05"
                "hello");
    rig_expect(e, "yes s");
}

TEST(a_websocket_passes_scrubbed)
{
    struct rig r = {.name = "api.test", .client = client_socket, .server = serve_socket};

    rig_open(&r);
    r.document = with_secret(RULE, VALUE, "");
    rig_play(&r);
    HAS(r.s.log, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    HAS_NOT(r.s.log, "permessage-deflate");
    HAS(r.s.log, "hello");
    HAS(r.c.log, "101 Switching Protocols\r\n");
    HAS(r.c.log, "[************************]");
    HAS(r.c.log, "yes s");
    HAS(rig_records, "request allow api.test [websocket] (rules api.test)");
    rig_done(&r);
}

/* ---- packed answers -------------------------------------------------------------------------- */

static size_t gzip(const char *text, size_t len, char *ret, size_t cap)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
                  .avail_in = (uInt)len,
                  .next_out = (Bytef *)ret,
                  .avail_out = (uInt)cap};

    rig_must(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflate");
    rig_must(deflate(&z, Z_FINISH) == Z_STREAM_END, "deflate");
    deflateEnd(&z);
    return cap - z.avail_out;
}

static void serve_gzip(struct rig_end *e)
{
    char packed[512], head[256];
    size_t n = gzip("[" VALUE "]", strlen(VALUE) + 2, packed, sizeof(packed));

    rig_expect_head(e);
    snprintf(head, sizeof(head),
             "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", n);
    rig_send(e, head);
    rig_send_bytes(e, packed, n);
    rig_rest(e);
}

TEST(a_packed_answer_is_unpacked_to_be_scrubbed)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_gzip};

    rig_open(&r);
    r.document = with_secret(RULE, VALUE, "");
    request = "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n";
    rig_play(&r);
    HAS(r.c.log, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n");
    HAS(r.c.log, "\r\n1a\r\n[************************]\r\n0\r\n\r\n");
    rig_done(&r);
}

TEST(an_answer_that_cannot_be_unpacked_does_not_pass)
{
    struct rig r = {.name = "api.test", .client = client_text, .server = serve_text};

    rig_open(&r);
    r.document = with_secret(RULE, VALUE, "");
    request = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
    answer = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nxx";
    rig_play(&r);
    HAS(r.c.log, "HTTP/1.1 502 ");
    rig_done(&r);
}

/* ---- sanitising ------------------------------------------------------------------------------ */

#define ENFORCE ",\"sanitise\":\"enforce\""
#define REPORT  ",\"sanitise\":\"report-only\""

static void serve_log(struct rig_end *e)
{
    struct timeval limit = {.tv_sec = 1};

    setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    rig_expect(e, "END");
    ok(e);
    rig_rest(e);
}

static void sanitised(const char *mode, const char *text, const char *status, const char *arrives)
{
    struct rig r = {.name = "api.test", .plain = true, .client = client_text, .server = serve_log};
    char members[256];

    rig_open(&r);
    snprintf(members, sizeof(members), "%s%s", BARE_RULE, mode);
    r.document = members;
    request = text;
    rig_play(&r);
    HAS(r.c.log, status);
    HAS(r.s.log, arrives);
    if (strstr(text, "@"))
        HAS(rig_records, "sanitise allow api.test [email=1] (rules api.test)");
    rig_done(&r);
}

TEST(bodies_are_sanitised)
{
    sanitised(ENFORCE,
              "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 23\r\n"
              "Connection: close\r\n\r\n"
              "ask bob@example.com END",
              "200 OK", "Content-Length: 15\r\n\r\nask [EMAIL] END");
    sanitised(ENFORCE,
              "POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n"
              "Connection: close\r\n\r\n"
              "9\r\nask bob@e\r\nE\r\nxample.com END\r\n0\r\n\r\n",
              "200 OK", "ask [EMAIL] END");
    sanitised(REPORT,
              "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 23\r\n"
              "Connection: close\r\n\r\n"
              "ask bob@example.com END",
              "200 OK", "Content-Length: 23\r\n\r\nask bob@example.com END");
    sanitised(ENFORCE,
              "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n"
              "Content-Encoding: br\r\n\r\nEND",
              "HTTP/1.1 415 ", "");
}

static void serve_whole(struct rig_end *e)
{
    rig_expect(e, "body");
    ok(e);
    rig_rest(e);
}

TEST(who_waits_for_100_gets_it_when_the_body_is_sanitised)
{
    struct rig r = {.name = "api.test", .client = client_waits, .server = serve_whole};

    rig_open(&r);
    r.document = BARE_RULE ENFORCE;
    rig_play(&r);
    HAS(r.s.log, "Connection: close\r\nContent-Length: 4\r\n\r\nbody");
    HAS_NOT(r.s.log, "Expect");
    HAS(r.c.log, "100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n");
    rig_done(&r);
}

static void client_gzip(struct rig_end *e)
{
    char packed[512], head[256];
    size_t n = gzip("ask bob@example.com END", 23, packed, sizeof(packed));

    snprintf(head, sizeof(head),
             "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Encoding: gzip\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             n);
    rig_send(e, head);
    rig_send_bytes(e, packed, n);
    rig_rest(e);
}

TEST(packed_bodies_are_unpacked_and_sanitised)
{
    struct rig r = {.name = "api.test", .client = client_gzip, .server = serve_log};

    rig_open(&r);
    r.document = BARE_RULE ENFORCE;
    rig_play(&r);
    HAS(r.s.log, "Content-Length: 15\r\n\r\nask [EMAIL] END");
    HAS_NOT(r.s.log, "gzip");
    HAS(r.c.log, "200 OK");
    rig_done(&r);
}

static void client_bomb(struct rig_end *e)
{
    AUTO(free_p) char *zeros = xcalloc(1, 64u << 20);
    AUTO(free_p) char *packed = xcalloc(1, 1u << 20);
    char head[256];
    size_t n = gzip(zeros, 64u << 20, packed, 1u << 20);

    snprintf(head, sizeof(head),
             "POST / HTTP/1.1\r\nHost: api.test\r\nContent-Encoding: gzip\r\n"
             "Content-Length: %zu\r\n\r\n",
             n);
    rig_send(e, head);
    rig_send_bytes(e, packed, n);
    rig_rest(e);
}

TEST(a_bomb_is_refused)
{
    struct rig r = {.name = "api.test", .client = client_bomb, .server = listen_only};

    rig_open(&r);
    r.document = BARE_RULE ENFORCE;
    rig_play(&r);
    HAS(r.c.log, "HTTP/1.1 415 ");
    HAS(rig_records, "request deny api.test [] (the body is too large when unpacked)");
    rig_done(&r);
}

TAP_MAIN
