/* What is told of each request when it is over: ids, statuses, what went wrong. */
#include "http_client.h"

TAP_MAIN

static struct {
    unsigned n;
    int status, fault;
    char id[ID_LEN + 1], text[1024], peer[46], method[16];
    bool answered, noted;
} told;

static void on_over(struct http_req *req)
{
    told.n++;
    told.status = req->status;
    told.fault = req->fault;
    told.answered = req->answered_ns != 0;
    told.noted = req->note != NULL;
    snprintf(told.id, sizeof(told.id), "%s", req->id);
    snprintf(told.text, sizeof(told.text), "%s", req->fault ? req->fault_text : "");
    snprintf(told.peer, sizeof(told.peer), "%s", req->peer);
    snprintf(told.method, sizeof(told.method), "%s", req->method_name);
}

static void on_body(struct http_req *req, const char *body, size_t len)
{
    http_reply(req, 200, "text/plain", body, len);
}

static void on_request(struct http_req *req)
{
    static char long_text[2048];

    req->note = &told;
    if (strcmp(req->path, "/fine") == 0) {
        http_reply(req, 204, NULL, NULL, 0);
    } else if (strcmp(req->path, "/bad") == 0) {
        http_failed(req, 418, "the first says it");
        http_failed(req, 500, "and not the second");
        http_reply(req, 418, "text/plain", "no", 2);
    } else if (strcmp(req->path, "/late") == 0) {
        http_start(req, 200, "text/plain", -1);
        http_failed(req, 503, "in the middle of an answer");
        http_finish(req);
    } else if (strcmp(req->path, "/long") == 0) {
        memset(long_text, 'x', sizeof(long_text) - 1);
        http_failed(req, 400, long_text);
        http_reply(req, 400, NULL, NULL, 0);
    } else if (strcmp(req->path, "/pipe") == 0) {
        http_take_over(req);
        http_finish(req);
    } else if (strcmp(req->path, "/body") == 0) {
        http_body_collect(req, 10, on_body);
    } /* else nobody answers */
}

static struct host host;

/* What comes back, up to the end of the connection, and *told is filled. */
static const char *ask(const char *bytes, struct client *c)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    memset(&told, 0, sizeof(told));
    client_open(c, &host);
    client_send_bytes(c, bytes, strlen(bytes));
    while ((!c->ended || told.n == 0) && clock_ns() < deadline) {
        host_turn(&host);
        client_read(c, SIZE_MAX);
    }
    EXPECT(told.n == 1);
    return c->got.buf;
}

static void begin(void)
{
    host_open(&host, NULL, on_request, NULL);
    http_server_on_over(host.server, on_over);
}

static void expect_id(const char *answer)
{
    char header[64];

    snprintf(header, sizeof(header), "\r\nX-Request-Id: %s\r\n", told.id);
    EXPECT(id_valid(told.id) && strstr(answer, header) != NULL);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

TEST(an_answer_has_the_id_of_its_request)
{
    struct client c;

    begin();
    expect_id(ask(GET("/fine"), &c));
    EXPECT(told.status == 204 && told.fault == 0 && told.answered && told.noted);
    EXPECT_STR(told.peer, "127.0.0.1");
    EXPECT_STR(told.method, "GET");
    client_close(&c);
    host_close(&host);
}

TEST(what_went_wrong_is_told_by_the_first_who_knows)
{
    struct client c;

    begin();
    expect_id(ask(GET("/bad"), &c));
    EXPECT(told.status == 418 && told.fault == 418);
    EXPECT_STR(told.text, "the first says it");
    client_close(&c);
    expect_id(ask(GET("/late"), &c));
    EXPECT(told.status == 200 && told.fault == 503);
    client_close(&c);
    ask(GET("/long"), &c);
    EXPECT(strlen(told.text) == 512);
    client_close(&c);
    host_close(&host);
}

TEST(another_protocol_has_a_status)
{
    struct client c;

    begin();
    ask(GET("/pipe"), &c);
    EXPECT(told.status == 101 && told.answered);
    client_close(&c);
    host_close(&host);
}

TEST(a_client_that_left_has_no_status)
{
    uint64_t deadline = clock_ns() + WAIT_NS;
    struct client c;

    begin();
    memset(&told, 0, sizeof(told));
    client_open(&c, &host);
    client_send_bytes(&c, GET("/nobody"), strlen(GET("/nobody")));
    for (int i = 0; i < 3; i++)
        host_turn(&host);
    client_close(&c);
    while (told.n == 0 && clock_ns() < deadline)
        host_turn(&host);
    EXPECT(told.n == 1 && told.status == 0 && !told.answered);
    host_close(&host);
}

TEST(what_is_refused_before_it_is_a_request)
{
    static const char *const cases[] = {"GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"};

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct client c;
        char body[64];
        const char *a = ask(cases[i], &c);
        expect_id(a);
        EXPECT(told.status == 400 && told.fault == 400 && told.text[0] && !told.noted);
        EXPECT_STR(told.method, "");
        EXPECT_STR(told.peer, "127.0.0.1");
        snprintf(body, sizeof(body), "\"requestId\":\"%s\"}", told.id);
        EXPECT(strstr(a, "\r\n\r\n{\"code\":400,\"message\":\"") && strstr(a, body));
        client_close(&c);
    }
    host_close(&host);
}

TEST(what_this_server_refuses_by_itself)
{
    struct client c;

    begin();
    const char *a =
        ask("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n12345678901", &c);
    expect_id(a);
    EXPECT(told.status == 413 && told.fault == 413 && told.noted && told.answered);
    EXPECT(strstr(a, "\"requestId\":\"") != NULL);
    EXPECT_STR(told.text, "the request's body is too large");
    client_close(&c);
    host_close(&host);
}
