/* A front with one sandbox, in one process: a real HTTP server, a real agent, and nothing between
 * but the code under test. Clients are blocking sockets in a thread of their own, while the loop
 * runs. Needs root, as agent_host.h does. */
#pragma once

#include <arpa/inet.h>
#include <pthread.h>

/* Both headers have a struct call; the one of agent_host.h is not used here. */
#define call host_call
#include "agent_host.h"
#undef call

#include "front/core/call.h"
#include "front/core/lifecycle.h"
#include "lib/http/http.h"

#define RIG_WAIT_S 20

struct rig {
    struct agent_host agent;
    uv_loop_t loop;
    struct front front;
    struct sandbox *sandbox;
    void (*route)(struct rig *r, struct http_req *req);
    unsigned server_port; /* of a server inside, if there is one */
    unsigned short port;
    uv_async_t done;
    void (*work)(struct rig *r, void *arg);
    void *work_arg;
};

static bool rig_one_slice; /* of work, in each turn of the loop */

static inline void rig_on_request(struct http_req *req)
{
    struct rig *r = CONTAINER_OF(http_server_arg(req->server), struct rig, front);

    r->route(r, req);
}

static inline int rig_listen(unsigned short *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static inline void rig_on_done(uv_async_t *a)
{
    uv_stop(a->loop);
}

static inline void rig_start(struct rig *r, void (*route)(struct rig *r, struct http_req *req))
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct sandbox_spec spec;
    struct sg_error e = {0};

    if (rig_one_slice)
        limits.turn_ns = 0;

    *r = (struct rig){.route = route};
    int fd = host_fork(&r->agent, false); /* before there are threads */
    uv_loop_init(&r->loop);
    uv_async_init(&r->loop, &r->done, rig_on_done);
    r->front.loop = &r->loop;
    r->front.http = http_server_new(&r->loop, &limits, rig_on_request, &r->front);
    if (http_server_listen(r->front.http, rig_listen(&r->port), HTTP_PLAIN, &e) < 0)
        abort();
    sandbox_spec_init(&spec);
    r->sandbox = sandbox_new(&r->front, "abcdefghijklmnopqrst", &spec);
    r->sandbox->state = SANDBOX_RUNNING;
    r->sandbox->link = link_new(r->sandbox, fd);
    sandboxes_add(r->sandbox);
}

/* Everything is given back: run with a sanitizer, this is where a leak shows. */
static inline void rig_stop(struct rig *r)
{
    int status;

    http_server_free(r->front.http);
    uv_close((uv_handle_t *)&r->done, NULL);
    link_free(r->sandbox->link);
    r->sandbox->link = NULL;
    EXPECT(r->sandbox->refs == 2); /* ours and the table's: no request holds one */
    sandboxes_remove(r->sandbox);
    sandbox_unref(r->sandbox);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&r->loop) == 0);
    waitpid(r->agent.pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void *rig_thread(void *arg)
{
    struct rig *r = arg;

    r->work(r, r->work_arg);
    uv_async_send(&r->done);
    return NULL;
}

/* Runs fn beside the loop. */
static inline void rig_run(struct rig *r, void (*fn)(struct rig *r, void *arg), void *arg)
{
    pthread_t thread;

    r->work = fn;
    r->work_arg = arg;
    if (pthread_create(&thread, NULL, rig_thread, r) != 0)
        abort();
    uv_run(&r->loop, UV_RUN_DEFAULT);
    pthread_join(thread, NULL);
}

/* Lets the loop run until *flag, which a callback on it sets. */
static inline bool rig_wait(struct rig *r, const bool *flag)
{
    uint64_t deadline = clock_ns() + RIG_WAIT_S * 1000000000ull;

    while (!*flag && clock_ns() < deadline) {
        uv_run(&r->loop, UV_RUN_NOWAIT);
        usleep(200);
    }
    return *flag;
}

/* ---- for the thread -------------------------------------------------------------------------- */

static inline int rig_connect(struct rig *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(r->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = RIG_WAIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        abort();
    return fd;
}

/* Reads until `end` has come, or to the end of the stream if it is NULL. */
static inline void rig_read(int fd, struct strbuf *out, const char *end)
{
    char buf[65536];
    ssize_t n;

    while (!(end && strstr(out->buf, end)) && (n = read(fd, buf, sizeof(buf))) > 0)
        strbuf_add(out, buf, (size_t)n);
}

struct rig_ask {
    const char *request;
    size_t len;
    struct strbuf answer;
};

static inline void rig_ask_work(struct rig *r, void *arg)
{
    struct rig_ask *a = arg;
    int fd = rig_connect(r);

    fd_write_all(fd, a->request, a->len);
    rig_read(fd, &a->answer, NULL);
    close(fd);
}

/* The whole answer to a request, which says Connection: close. Valid until the next call. */
static inline const char *rig_ask(struct rig *r, const char *request, size_t len)
{
    static struct strbuf answer;
    struct rig_ask a = {.request = request, .len = len};

    strbuf_done(&answer);
    strbuf_init(&a.answer, 64u << 20);
    rig_run(r, rig_ask_work, &a);
    answer = a.answer;
    return answer.buf;
}

/* The body of an answer with Content-Length. */
static inline const char *rig_body(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    return end ? end + 4 : "";
}

#define EXPECT_HAS(text, part)                                                    \
    do {                                                                          \
        const char *t_ = (text), *p_ = (part);                                    \
        if (!strstr(t_, p_)) {                                                    \
            tap_failures++;                                                       \
            printf("# %s:%d: no '%s' in '%.600s'\n", __FILE__, __LINE__, p_, t_); \
        }                                                                         \
    } while (0)

/* ---- programs inside ------------------------------------------------------------------------- */

struct rig_program {
    struct call call;
    struct strbuf out;
    bool line, ended;
};

static inline void rig_on_output(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct rig_program *g = c->owner;

    (void)sub;
    strbuf_add(&g->out, p, len);
    g->line = strchr(g->out.buf, '\n') != NULL;
    call_consumed(c, len);
}

static inline void rig_on_exit(struct call *c, int status, const char *message, const void *result,
                               size_t len)
{
    struct rig_program *g = c->owner;

    (void)status, (void)message, (void)result, (void)len;
    g->ended = true;
}

/* Starts a shell as `user` in its home. */
static inline void rig_shell(struct rig *r, struct rig_program *g, const char *script)
{
    struct strbuf q;

    *g = (struct rig_program){0};
    strbuf_init(&g->out, 1u << 20);
    strbuf_init(&q, OPS_OPEN_MAX);
    wire_put_str(&q, "user");
    wire_put_str(&q, "");
    for (int i = 0; i < 3; i++)
        wire_put_u32(&q, 0);
    wire_put_u64(&q, 0);
    wire_put_str(&q, "");
    wire_put_str(&q, "");
    wire_put_u32(&q, 3);
    wire_put_str(&q, "/bin/bash");
    wire_put_str(&q, "-c");
    wire_put_str(&q, script);
    wire_put_u32(&q, 0);
    g->call = (struct call){.owner = g, .on_data = rig_on_output, .on_end = rig_on_exit};
    EXPECT(call_begin(&g->call, r->sandbox, OP_PROCESS_START, &q, NULL) == 0);
    strbuf_done(&q);
}

static inline void rig_program_done(struct rig *r, struct rig_program *g)
{
    call_cancel(&g->call);
    strbuf_done(&g->out);
    (void)r;
}

/* What a script prints. Valid until the next call. */
static inline const char *rig_says(struct rig *r, const char *script)
{
    static char text[65536];
    struct rig_program g;

    rig_shell(r, &g, script);
    EXPECT(rig_wait(r, &g.ended));
    snprintf(text, sizeof(text), "%s", g.out.buf);
    rig_program_done(r, &g);
    return text;
}
