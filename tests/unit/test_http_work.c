/* Work in slices: who gets the loop, and for how long. */
#include "http_client.h"

#include <pthread.h>
#include <semaphore.h>

#include "lib/http/impl.h"

#define SLICES 5

/* ---- the queue ------------------------------------------------------------------------------- */

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
    work_drop(w);
    work_drop(&victim->work);
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

/* ---- bodies ---------------------------------------------------------------------------------- */

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

/* ---- what is made of bodies ------------------------------------------------------------------ */

static pthread_t loop_thread;
static _Atomic unsigned made_inside, made_outside;
static unsigned dropped;
static char makers[64]; /* whose, in the order of their ends */

static void *make_count(const void *schema, const char *body, size_t len)
{
    size_t *n = xcalloc(1, sizeof(*n));

    EXPECT(schema == NULL);
    for (size_t i = 0; i < len; i++)
        *n += body[i] == 'x';
    if (pthread_equal(pthread_self(), loop_thread))
        made_inside++;
    else
        made_outside++;
    return n;
}

static void drop_count(void *made)
{
    dropped++;
    free(made);
}

static const struct http_make counting = {make_count, drop_count};

static void on_made(struct http_req *req, void *made)
{
    char text[32];
    size_t n = strlen(makers);

    snprintf(text, sizeof(text), "<%zu>", *(size_t *)made);
    makers[n < sizeof(makers) - 1 ? n : 0] = req->path[1];
    http_reply(req, 200, NULL, text, strlen(text));
    free(made);
}

static void on_make_request(struct http_req *req)
{
    req->party = (uint64_t)req->path[1];
    http_body_make(req, 1u << 20, &counting, NULL, on_made);
}

static void post_many(struct client *c, char who, size_t len)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 2u << 20);
    strbuf_addf(&s, "POST /%c HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", who, len);
    for (size_t i = 0; i < len; i++)
        strbuf_addch(&s, 'x');
    client_send_bytes(c, s.buf, s.len);
}

TEST(what_is_made_of_a_long_body_is_made_elsewhere)
{
    struct client c, gone;
    struct host h;

    loop_thread = pthread_self();
    dropped = 0;
    host_open(&h, NULL, on_make_request, NULL);
    client_open(&c, &h);
    post_many(&c, 'a', 10);
    EXPECT(client_wait(&c, "<10>"));
    EXPECT(made_inside == 1 && made_outside == 0);
    strbuf_reset(&c.got);
    post_many(&c, 'a', 1u << 20);
    EXPECT(client_wait(&c, "<1048576>"));
    EXPECT(made_inside == 1 && made_outside == 1 && dropped == 0);
    EXPECT_STR(makers, "aa");
    strbuf_reset(&c.got);
    post_many(&c, 'a', (1u << 20) + 1);
    EXPECT(client_wait(&c, " 413 "));
    client_open(&gone, &h);
    post_many(&gone, 'b', 1u << 20);
    client_close(&gone); /* whenever it is noticed, nothing is lost of it */
    for (int i = 0; i < 50; i++)
        host_turn(&h);
    client_close(&c);
    host_close(&h);
}

/* ---- made when the test says so -------------------------------------------------------------- */

static sem_t gate;
static _Atomic unsigned begun;
static unsigned answered, closed, drained;

static void *make_at_gate(const void *schema, const char *body, size_t len)
{
    (void)schema;
    begun++;
    sem_wait(&gate);
    return strndup(body, len);
}

static const struct http_make gated = {make_at_gate, drop_count};

static void on_gated_made(struct http_req *req, void *made)
{
    answered++;
    http_reply(req, 200, NULL, "made", 4);
    free(made);
}

static void on_gated_close(struct http_req *req)
{
    (void)req;
    closed++;
}

static void on_gated_request(struct http_req *req)
{
    req->party = (uint64_t)req->path[1];
    req->on_close = on_gated_close;
    http_body_make(req, 20u << 20, &gated, NULL, on_gated_made);
}

static void on_drained(void *arg)
{
    (void)arg;
    drained++;
}

static void open_gated(struct host *h, struct client *c, size_t n)
{
    must(sem_init(&gate, 0, 0) == 0, "sem_init");
    begun = answered = closed = drained = dropped = 0;
    host_open(h, NULL, on_gated_request, NULL);
    for (size_t i = 0; i < n; i++)
        client_open(&c[i], h);
    WAIT_UNTIL(h, http_server_connections(h->server) == n);
    uv_timer_stop(&h->server->tick); /* time passes when the test says so */
}

static void close_gated(struct host *h, struct client *c, size_t n)
{
    host_close(h);
    for (size_t i = 0; i < n; i++)
        client_close(&c[i]);
    sem_destroy(&gate);
}

TEST(a_client_may_go_and_a_server_drain_while_it_is_made)
{
    struct client c[2];
    struct host h;

    open_gated(&h, c, 2);
    for (unsigned i = 0; i < 2; i++) {
        post_many(&c[i], 'a', 100000);
        WAIT_UNTIL(&h, begun == i + 1);
    }
    client_close(&c[0]);
    WAIT_UNTIL(&h, closed == 1);
    http_server_drain(h.server, on_drained, NULL);
    for (int i = 0; i < 10; i++)
        host_turn(&h);
    EXPECT(dropped == 0 && drained == 0);
    sem_post(&gate);
    sem_post(&gate);
    EXPECT(client_wait(&c[1], "made"));
    client_close(&c[1]);
    WAIT_UNTIL(&h, drained == 1 && dropped == 1);
    EXPECT(answered == 1 && h.server->room_taken == 0);
    close_gated(&h, c, 2);
}

TEST(a_server_may_be_freed_while_it_is_made)
{
    struct client c[3];
    struct host h;

    open_gated(&h, c, 3);
    for (unsigned i = 0; i < 3; i++)
        post_many(&c[i], 'a', 100000);
    WAIT_UNTIL(&h, h.server->n_jobs == 2 && !list_empty(&h.server->jobs));
    http_server_free(h.server);
    EXPECT(closed == 3);
    sem_post(&gate);
    sem_post(&gate);
    close_gated(&h, c, 3); /* the third is not begun: it would wait for ever */
    EXPECT(answered == 0 && dropped == 2);
}

/* ---- room for bodies ------------------------------------------------------------------------- */

static size_t n_in(const struct list *list)
{
    size_t n = 0;

    LIST_EACH(const struct req, r, list, in_room)
        n++;
    return n;
}

TEST(bodies_wait_for_room_but_not_for_slow_ones_of_others)
{
    struct client c[5];
    struct host h;

    open_gated(&h, c, 5);
    for (unsigned i = 0; i < 4; i++)
        client_send(&c[i], "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\nx");
    WAIT_UNTIL(&h, n_in(&h.server->roomed) + n_in(&h.server->roomless) == 4);
    EXPECT(n_in(&h.server->roomed) == 2 && h.server->room_taken == 32u << 20);
    sem_post(&gate);
    post_many(&c[4], 'b', 100000); /* another party has room at once */
    EXPECT(client_wait(&c[4], "made"));
    EXPECT(h.server->room_taken == 32u << 20);

    /* One that brings nothing keeps neither its room nor others of its party from it. */
    struct req *slow = LIST_FIRST(struct req, &h.server->roomed, in_room);
    struct req *next = LIST_FIRST(struct req, &h.server->roomless, in_room);
    for (unsigned i = 0; i < 1000 / HTTP_TICK_MS; i++) {
        EXPECT(slow->room == ROOM_TAKEN && next->room == ROOM_AWAITED && !body_flows(next));
        make_room_tick(slow);
    }
    EXPECT(slow->room == ROOM_LEFT && body_flows(slow));
    EXPECT(next->room == ROOM_TAKEN && body_flows(next));
    WAIT_UNTIL(&h, next->collected.len == 1); /* it is read now */

    /* Who goes makes room, or waits no more. */
    for (unsigned i = 0; i < 4; i++)
        client_close(&c[i]);
    WAIT_UNTIL(&h, closed == 5);
    EXPECT(n_in(&h.server->roomed) + n_in(&h.server->roomless) == 0 && h.server->room_taken == 0);
    close_gated(&h, c, 5);
}

TEST(a_chunked_body_asks_for_room_when_it_is_long)
{
    struct client c[3];
    struct host h;
    char *chunk = xcalloc(1, 70000);

    open_gated(&h, c, 3);
    memset(chunk, 'x', 70000);
    for (unsigned i = 0; i < 3; i++) {
        client_send(&c[i],
                    "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n");
        client_send_bytes(&c[i], chunk, 70000);
        client_send(&c[i], "\r\n");
    }
    WAIT_UNTIL(&h, n_in(&h.server->roomed) == 2 && n_in(&h.server->roomless) == 1);
    EXPECT(h.server->room_taken == 40u << 20);
    for (unsigned i = 0; i < 3; i++) {
        sem_post(&gate);
        client_send(&c[i], "0\r\n\r\n");
    }
    for (unsigned i = 0; i < 3; i++)
        EXPECT(client_wait(&c[i], "made"));
    EXPECT(h.server->room_taken == 0);
    free(chunk);
    close_gated(&h, c, 3);
}

TAP_MAIN
