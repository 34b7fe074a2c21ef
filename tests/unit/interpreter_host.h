/* A sandbox's port 49999 to test against: the real server and interpreter, and an agent made by
 * hand, which says what the test has it say; all in one process and on one loop. A test that
 * serves something else defines HOST_SERVES(req). */
#pragma once

#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/lifecycle.h"
#include "http_client.h"
#include "front/interpreter/interpreter.h"

#ifndef HOST_SERVES
#define HOST_SERVES(req) interpreter_request(sandbox, req)
#endif

#define ID    "abcdefghij0123456789"
#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static struct host host;
static struct front front;
static struct sandbox *sandbox;
static struct client client;

/* The agent: the last stream that was opened, and what came for it. */
static struct {
    struct chan *chan;
    uv_poll_t *poll;
    struct chan_stream *stream;
    unsigned opens, seen, eofs, cancels;
    uint8_t op;
    struct strbuf request, code;
    struct chan_stream *before; /* the one before, and what it asked for */
    struct strbuf request_before;
} agent;

static inline void agent_watch(void);

static inline void agent_on_ready(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events;
    if (chan_pump(agent.chan) < 0)
        uv_poll_stop(agent.poll);
    else
        agent_watch();
}

static inline void agent_watch(void)
{
    uv_poll_start(agent.poll,
                  (chan_wants_read(agent.chan) ? UV_READABLE : 0) |
                      (chan_wants_write(agent.chan) ? UV_WRITABLE : 0),
                  agent_on_ready);
}

static inline void agent_on_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *req,
                                 size_t len)
{
    (void)c;
    agent.opens++;
    agent.eofs = 0;
    agent.before = agent.stream;
    agent.stream = s;
    strbuf_reset(&agent.request_before);
    strbuf_add(&agent.request_before, agent.request.buf, agent.request.len);
    agent.op = op;
    strbuf_reset(&agent.request);
    strbuf_add(&agent.request, req, len);
    strbuf_reset(&agent.code);
}

static inline void agent_on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p,
                                 size_t len)
{
    (void)sub;
    strbuf_add(&agent.code, p, len);
    chan_consumed(c, s, len);
}

static inline void agent_on_eof(struct chan *c, struct chan_stream *s)
{
    (void)c, (void)s;
    agent.eofs++;
}

static inline void agent_on_cancel(struct chan *c, struct chan_stream *s)
{
    agent.cancels++;
    chan_end(c, s, ECANCELED, "cancelled", NULL, 0);
    agent.stream = NULL;
}

static inline void agent_on_control(struct chan *c, struct chan_stream *s, uint8_t what,
                                    const void *p, size_t len)
{
    (void)c, (void)s, (void)what, (void)p, (void)len;
}

static inline void agent_on_credit(struct chan *c, struct chan_stream *s)
{
    (void)c, (void)s;
}

static inline void on_request(struct http_req *req)
{
    HOST_SERVES(req);
}

static inline void begin(void)
{
    static const struct chan_handlers handlers = {.on_open = agent_on_open,
                                                  .on_data = agent_on_data,
                                                  .on_eof = agent_on_eof,
                                                  .on_cancel = agent_on_cancel,
                                                  .on_control = agent_on_control,
                                                  .on_credit = agent_on_credit};
    static const struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct sandbox_spec spec;
    int ends[2];

    host_open(&host, &limits, on_request, &front);
    front.loop = &host.loop;
    front.http = host.server;
    sandbox_spec_init(&spec);
    spec.envs = json_pack("{s:s}", "GLOBAL", "1");
    snprintf(spec.template_id, sizeof(spec.template_id), "base");
    sandbox = sandbox_new(&front, ID, &spec);
    sandbox->state = SANDBOX_RUNNING;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
         "socketpair");
    sandbox->link = link_new(sandbox, ends[0]);
    memset(&agent, 0, sizeof(agent));
    strbuf_init(&agent.request, OPS_OPEN_MAX);
    strbuf_init(&agent.request_before, OPS_OPEN_MAX);
    strbuf_init(&agent.code, KERNEL_CODE_MAX);
    agent.chan = chan_new(ends[1], CHAN_AGENT, &handlers, NULL);
    agent.poll = xcalloc(1, sizeof(*agent.poll));
    uv_poll_init(&host.loop, agent.poll, ends[1]);
    agent_watch();
    client_open(&client, &host);
}

static inline void on_poll_closed(uv_handle_t *h)
{
    free(h);
}

static inline void end(void)
{
    client_close(&client);
    http_server_free(host.server);
    for (int i = 0; i < 10; i++)
        host_turn(&host);
    link_free(steal_ptr(&sandbox->link));
    EXPECT(sandbox->refs == 1);
    sandbox_unref(sandbox);
    uv_close((uv_handle_t *)agent.poll, on_poll_closed);
    uv_run(&host.loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&host.loop) == 0);
    chan_free(agent.chan);
    strbuf_done(&agent.request);
    strbuf_done(&agent.request_before);
    strbuf_done(&agent.code);
}

/* ---- the client's side ----------------------------------------------------------------------- */

static const char *extra = ""; /* headers of the next requests */

static inline void ask(const char *method, const char *path, const char *body)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 64u << 20);
    strbuf_addf(&s, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n%s", method, path,
                strlen(body), extra, body);
    strbuf_reset(&client.got);
    client_send_bytes(&client, s.buf, s.len);
}

static inline void execute(const char *body)
{
    ask("POST", "/execute", body);
}

/* A whole answer with a length must be this. */
static inline void expect_answer(int status, const char *body)
{
    size_t len = strlen(body);

    if (client_wait(&client, "\r\n\r\n"))
        client_wait(&client, len ? body : "\r\n\r\n");
    const char *got = strstr(client.got.buf, "\r\n\r\n");
    if (client_status(&client) != status || !got || strcmp(got + 4, body) != 0)
        printf("# wanted %d %s, got: %s\n", status, body, client.got.buf);
    EXPECT(client_status(&client) == status && got && strcmp(got + 4, body) == 0);
}

/* The body of an answer in chunks, as far as it has come. Valid until the next call. */
static inline const char *unchunked(void)
{
    static struct strbuf body;
    const char *p = strstr(client.got.buf, "\r\n\r\n"), *stop = client.got.buf + client.got.len;
    char *after;

    strbuf_done(&body);
    strbuf_init(&body, 64u << 20);
    for (p = p ? p + 4 : stop; p < stop; p = after + strlen("\r\n")) {
        size_t n = strtoul(p, &after, 16);
        after += 2;
        if (n == 0 || after + n > stop)
            break;
        strbuf_add(&body, after, n);
        after += n;
    }
    return body.buf;
}

/* Takes all of a long answer in chunks. */
static inline bool take_all(void)
{
    static const char last[] = "\r\n0\r\n\r\n";
    const size_t len = sizeof(last) - 1;
    uint64_t deadline = clock_ns() + 2 * WAIT_NS;

    while (!client.ended && clock_ns() < deadline) {
        client_read(&client, SIZE_MAX);
        if (client.got.len > len && strcmp(client.got.buf + client.got.len - len, last) == 0)
            return true;
        host_turn(&host);
    }
    return false;
}

/* The answer is this, but for times, which are written as T. */
static inline void expect_lines(const char *text)
{
    AUTO(strbuf_done) struct strbuf got = {0};
    static const char key[] = "\"timestamp\":\"";

    client_wait(&client, "\r\n0\r\n\r\n");
    EXPECT(client_status(&client) == 200);
    strbuf_init(&got, 64u << 20);
    strbuf_addstr(&got, unchunked());
    for (char *at = got.buf; (at = strstr(at, key)); at += sizeof(key)) {
        char *from = at + sizeof(key) - 1, *to = strchr(from, '"');
        *from = 'T';
        memmove(from + 1, to, strlen(to) + 1);
    }
    EXPECT_STR(got.buf, text);
}

/* ---- the agent's side ------------------------------------------------------------------------ */

/* The next request has come, and all of its code. */
static inline bool agent_request_log(uint8_t op)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while ((agent.opens == agent.seen || (op == OP_KERNEL_EXECUTE && agent.eofs == 0)) &&
           clock_ns() < deadline)
        host_turn(&host);
    must(agent.opens == agent.seen + 1, "the agent was asked");
    agent.seen = agent.opens;
    return agent.op == op;
}

static inline void agent_executing(uint32_t number, const char *note)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 4096);
    wire_put_u32(&s, number);
    wire_put_str(&s, note);
    chan_event(agent.chan, agent.stream, EVENT_EXECUTING, s.buf, s.len);
}

/* As much as the credit allows at once. */
static inline void agent_data(uint8_t sub, const void *p, size_t len)
{
    uint64_t deadline = clock_ns() + WAIT_NS;
    const char *at = p;

    while (len > 0 && agent.stream && clock_ns() < deadline) {
        size_t n = chan_credit(agent.stream);
        n = n < len ? n : len;
        if (n > 0)
            chan_send(agent.chan, agent.stream, sub, at, n);
        at += n;
        len -= n;
        agent_watch();
        if (len > 0) {
            host_turn(&host);
            client_read(&client, SIZE_MAX);
        }
    }
    EXPECT(len == 0);
}
#define AGENT_PACKET(text) agent_data(CHAN_KERNEL, text, sizeof(text) - 1)

/* The memory limit that agent_end names as the end of a kernel; 0: none. */
static uint64_t agent_memory_limit;

static inline void agent_end(enum kernel_end how, uint32_t code, bool timed_out)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 64);
    wire_put_u32(&s, how);
    wire_put_u32(&s, code);
    wire_put_u32(&s, timed_out);
    wire_put_u64(&s, agent_memory_limit);
    chan_end(agent.chan, agent.stream, 0, NULL, s.buf, s.len);
    agent.stream = NULL;
    agent_watch();
}

static inline void agent_fails(int status, const char *message)
{
    chan_end(agent.chan, agent.stream, status, message, NULL, 0);
    agent.stream = NULL;
    agent_watch();
}
