/* Clients that are too slow, and those that only look so. Limits are small here, so that nobody
 * waits long; the clock ticks every quarter of a second. */
#include "http_client.h"

static struct http_req *pending, *keeping;
static unsigned closed;
static size_t body_bytes;
static char block[64 * 1024];
#define KEPT (100u << 20) /* by an owner; all clients together may leave 256 MiB */

static void on_close(struct http_req *req)
{
    (void)req;
    closed++;
    pending = NULL;
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    (void)req, (void)data;
    body_bytes += len;
}

static void on_body_end(struct http_req *req)
{
    http_reply(req, 200, NULL, "end", 3);
}

static void on_request(struct http_req *req)
{
    pending = req;
    req->on_close = on_close;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    req->body_may_rest = strcmp(req->path, "/rest") == 0;
    if (strcmp(req->path, "/") == 0)
        http_reply(req, 200, NULL, "hello", 5);
    else if (strcmp(req->path, "/pour") == 0)
        for (http_start(req, 200, NULL, -1); http_write(req, block, sizeof(block));)
            ;
    else if (strcmp(req->path, "/keep") == 0)
        http_keep(keeping = req, KEPT);
    else if (strcmp(req->path, "/hang") != 0)
        http_body_stream(req);
}

static struct host h;
static struct client cl;

static void start(const struct http_limits *limits)
{
    closed = 0;
    body_bytes = 0;
    pending = NULL;
    host_open(&h, limits, on_request, NULL);
    client_open(&cl, &h);
}

static void stop(void)
{
    client_close(&cl);
    host_close(&h);
}

static struct http_limits quick(void)
{
    struct http_limits l = HTTP_LIMITS_DEFAULT;

    l.head_ms = l.idle_ms = l.stall_ms = 500;
    return l;
}

#define HEAD(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n"

static void turn_for_ms(unsigned ms)
{
    for (uint64_t end = clock_ns() + ms * 1000000ull; clock_ns() < end;)
        host_turn(&h);
}

TEST(a_head_that_takes_too_long)
{
    struct http_limits limits = quick();
    uint64_t begin = clock_ns();

    start(&limits);
    /* A byte now and then does not help. */
    client_send(&cl, "GET / HTTP/1.1\r\nHost: a\r\n");
    while (!cl.ended && clock_ns() < begin + WAIT_NS) {
        client_send(&cl, "X: y\r\n");
        turn_for_ms(50);
        client_read(&cl, SIZE_MAX);
    }
    EXPECT(cl.ended && clock_ns() - begin > 400000000ull);
    EXPECT(client_status(&cl) == 408);
    EXPECT(client_count(&cl, "{\"code\":408,") == 1);
    stop();
}

TEST(a_client_that_says_nothing)
{
    struct http_limits limits = quick();

    start(&limits);
    EXPECT(client_wait_end(&cl));
    EXPECT(cl.got.len == 0);
    stop();
}

TEST(a_connection_that_idles)
{
    struct http_limits limits = quick();

    limits.head_ms = 60000;
    start(&limits);
    client_send(&cl, HEAD("GET", "/") "\r\n");
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "HTTP/1.1") == 1);
    stop();
}

TEST(an_answer_may_take_its_time)
{
    struct http_limits limits = quick();

    start(&limits);
    client_send(&cl, HEAD("GET", "/hang") "\r\n");
    turn_for_ms(1500);
    EXPECT(pending && closed == 0);
    http_reply(pending, 200, NULL, "late", 4);
    EXPECT(client_wait(&cl, "late"));
    stop();
}

TEST(a_body_that_comes_too_slowly)
{
    struct http_limits limits = quick();

    limits.body_rate = 1024;
    limits.body_grace_ms = 500;
    start(&limits);
    client_send(&cl, HEAD("POST", "/body") "Content-Length: 100000\r\n\r\n");
    uint64_t begin = clock_ns();
    while (!cl.ended && clock_ns() < begin + WAIT_NS) {
        client_send(&cl, "x");
        turn_for_ms(50);
        client_read(&cl, SIZE_MAX);
    }
    EXPECT(cl.ended && client_status(&cl) == 408);
    EXPECT(closed == 1 && body_bytes > 0);
    stop();
}

TEST(a_body_that_is_just_fast_enough)
{
    struct http_limits limits = quick();

    limits.body_rate = 1024;
    limits.body_grace_ms = 500;
    start(&limits);
    client_send(&cl, HEAD("POST", "/body") "Content-Length: 8000\r\n\r\n");
    for (unsigned i = 0; i < 20; i++) {
        client_send_bytes(&cl, block, 400);
        turn_for_ms(100);
    }
    EXPECT(client_wait(&cl, "end"));
    stop();
}

TEST(a_body_that_may_rest_or_is_paused)
{
    struct http_limits limits = quick();

    limits.body_grace_ms = 500;
    start(&limits);
    client_send(&cl, HEAD("POST", "/rest") "Content-Length: 2\r\n\r\na");
    turn_for_ms(1500);
    client_send(&cl, "b");
    EXPECT(client_wait(&cl, "end"));
    client_send(&cl, HEAD("POST", "/body") "Content-Length: 2\r\n\r\na");
    WAIT_UNTIL(&h, body_bytes == 3);
    http_body_pause(pending);
    turn_for_ms(1500);
    http_body_resume(pending);
    client_send(&cl, "b");
    WAIT_UNTIL(&h, closed == 2);
    client_read(&cl, SIZE_MAX);
    EXPECT(client_count(&cl, "end") == 2);
    stop();
}

TEST(a_reader_that_takes_nothing)
{
    struct http_limits limits = quick();

    start(&limits);
    client_send(&cl, HEAD("GET", "/pour") "\r\n");
    WAIT_UNTIL(&h, closed == 1);
    EXPECT(http_server_connections(h.server) == 0);
    stop();
}

TEST(a_client_that_does_not_close)
{
    struct http_limits limits = quick();

    start(&limits);
    client_send(&cl, HEAD("GET", "/") "Connection: close\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(http_server_connections(h.server) == 1);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    stop();
}

TEST(a_dropped_body_that_does_not_come)
{
    struct http_limits limits = quick();

    start(&limits);
    client_send(&cl, HEAD("POST", "/") "Content-Length: 10\r\n\r\n");
    EXPECT(client_wait(&cl, "hello"));
    EXPECT(client_wait_end(&cl));
    stop();
}

TEST(too_much_that_waits_costs_the_slowest_his_connection)
{
    struct http_limits limits = quick();
    struct client more[3];

    start(&limits);
    client_send(&cl, HEAD("GET", "/keep") "\r\n");
    WAIT_UNTIL(&h, keeping);
    turn_for_ms(20);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        keeping = NULL;
        client_open(&more[i], &h);
        client_send(&more[i], HEAD("GET", "/keep") "\r\n");
        WAIT_UNTIL(&h, keeping);
        turn_for_ms(20);
    }
    /* Two fit: those who came last. What the others kept does not count any more. */
    EXPECT(client_wait_end(&cl));
    EXPECT(client_wait_end(&more[0]));
    WAIT_UNTIL(&h, closed == 2);
    EXPECT(http_server_connections(h.server) == 2);
    http_keep(keeping, 0);
    http_reply(keeping, 200, NULL, "hello", 5);
    EXPECT(client_wait(&more[2], "hello"));
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        client_close(&more[i]);
    stop();
}

TAP_MAIN
