/* Work in slices: who gets the loop, and for how long. */
#include "http_client.h"

#define SLICES 5

/* ---- the queue ------------------------------------------------------------------------------ */

static struct works *queue;
static char order[64]; /* who has run */

struct job {
    struct work work;
    char name;
    uint64_t party;
    unsigned left;
};

static void run_job(struct work *w)
{
    struct job *j = CONTAINER_OF(w, struct job, work);
    size_t n = strlen(order);

    if (n < sizeof(order) - 1)
        order[n] = j->name;
    if (--j->left > 0)
        work_post(queue, w, j->party);
}

static void post(struct job *j, char name, uint64_t party, unsigned slices)
{
    *j = (struct job){.work.run = run_job, .name = name, .party = party, .left = slices};
    work_post(queue, &j->work, party);
}

static void open_queue(uv_loop_t *loop, uint64_t turn_ns)
{
    must(uv_loop_init(loop) == 0, "uv_loop_init");
    memset(order, 0, sizeof(order));
    queue = works_new(loop, turn_ns);
}

static void close_queue(uv_loop_t *loop)
{
    works_free(queue);
    uv_run(loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(loop) == 0);
}

TEST(parties_take_turns)
{
    struct job jobs[4];
    uv_loop_t loop;

    open_queue(&loop, UINT32_MAX);
    post(&jobs[0], 'a', 1, 3);
    post(&jobs[1], 'b', 1, 3);
    post(&jobs[2], 'c', 1, 3);
    post(&jobs[3], 'X', 2, 4);
    work_post(queue, &jobs[3].work, 2); /* it waits already */
    uv_run(&loop, UV_RUN_NOWAIT);
    EXPECT_STR(order, "aXbXcXaXbcabc");
    EXPECT(!uv_loop_alive(&loop)); /* nothing waits: it may sleep */
    close_queue(&loop);
}

TEST(a_turn_has_an_end)
{
    struct job a, b;
    uv_loop_t loop;

    open_queue(&loop, 0);
    post(&a, 'a', 1, SLICES);
    post(&b, 'b', 2, SLICES);
    for (unsigned i = 1; i <= 2 * SLICES; i++) {
        EXPECT(uv_backend_timeout(&loop) == 0);
        uv_run(&loop, UV_RUN_NOWAIT);
        EXPECT(strlen(order) == i);
    }
    uv_run(&loop, UV_RUN_NOWAIT);
    EXPECT_STR(order, "ababababab");
    close_queue(&loop);
}

static struct job *victim;

static void run_and_drop(struct work *w)
{
    run_job(w);
    work_drop(queue, w);
    work_drop(queue, &victim->work);
}

TEST(what_is_dropped_never_runs)
{
    struct job a, b, c;
    uv_loop_t loop;

    open_queue(&loop, UINT32_MAX);
    post(&a, 'a', 1, 2);
    post(&b, 'b', 1, 2);
    post(&c, 'c', 2, 2);
    a.work.run = run_and_drop;
    victim = &b;
    uv_run(&loop, UV_RUN_NOWAIT);
    EXPECT_STR(order, "acc");
    post(&a, 'a', 1, 1); /* what waits at the end is forgotten */
    close_queue(&loop);
    EXPECT(!a.work.party);
}

/* ---- bodies --------------------------------------------------------------------------------- */

static struct http_req *last; /* the request that answers nothing */
static char bodies[4096];     /* whose pieces have come, in order */
static unsigned heads;        /* requests without a body, when so many pieces had come */
static size_t heads_at;

static void on_piece(struct http_req *req, const char *data, size_t len)
{
    size_t n = strlen(bodies);

    (void)data;
    EXPECT(len <= WORK_PIECE);
    if (n < sizeof(bodies) - 1)
        bodies[n] = req->path[1];
}

static void on_body_end(struct http_req *req)
{
    http_reply(req, 200, NULL, NULL, 0);
}

static void on_request(struct http_req *req)
{
    if (req->path[1] == 'h') {
        heads++;
        heads_at = strlen(bodies);
        http_reply(req, 200, NULL, NULL, 0);
        return;
    }
    last = req;
    req->party = (uint64_t)req->path[1];
    req->body_piece = WORK_PIECE;
    req->on_body = on_piece;
    req->on_body_end = on_body_end;
    http_body_stream(req);
}

/* As much of a body as the socket takes, and the loop does not turn. */
static size_t fill(struct client *c)
{
    static char zeros[256 * 1024];
    size_t all = 0;
    ssize_t n;

    while ((n = send(c->fd, zeros, sizeof(zeros), MSG_NOSIGNAL)) > 0)
        all += (size_t)n;
    return all;
}

/* Three long bodies of one party and one of another; and a request of nobody in particular. */
TEST(long_bodies_wait_for_each_other_and_nobody_for_them)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct client c[4], quick;
    struct host h;
    size_t b = 0, a = 0;

    limits.turn_ns = 0;
    host_open(&h, &limits, on_request, NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
        client_open(&c[i], &h);
        client_send(&c[i], i == 3
                               ? "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
                               : "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n");
    }
    client_open(&quick, &h);
    for (unsigned i = 0; i < 20; i++)
        host_turn(&h);
    for (unsigned i = 0; i < ARRAY_SIZE(c); i++)
        EXPECT(fill(&c[i]) >= 8 * WORK_PIECE);
    for (unsigned i = 0; i < 4; i++) /* all of them wait now */
        host_turn(&h);
    size_t before = strlen(bodies);
    EXPECT(before <= 4); /* one slice a turn */
    client_send(&quick, "GET /h HTTP/1.1\r\nHost: x\r\n\r\n");
    host_turn(&h);
    host_turn(&h);
    EXPECT(heads == 1 && heads_at <= before + 2);
    for (unsigned i = 0; i < 12; i++)
        host_turn(&h);
    for (const char *p = bodies + before; *p; p++) {
        a += *p == 'a';
        b += *p == 'b';
    }
    EXPECT(a + b >= 6 && a <= b + 2 && b <= a + 2); /* by party, not by connection */
    for (unsigned i = 0; i < ARRAY_SIZE(c); i++)
        client_close(&c[i]);
    client_close(&quick);
    host_close(&h);
}

TAP_MAIN
