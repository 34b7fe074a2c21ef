/* A sandbox's port 49983 to test against: the real server and services, a real agent behind, and a
 * client in the same process. */
#pragma once

#define call       agent_call
#define call_begin agent_call_begin
#include "agent_host.h"
#undef call
#undef call_begin

#include "front/envd/envd.h"
#include "front/core/call.h"
#include "front/core/lifecycle.h"
#include "http_client.h"

static struct host host;
static struct front front;
static struct agent_host agent;
static struct sandbox *sandbox;
static struct client client;

static inline void on_request(struct http_req *req)
{
    envd_request(sandbox, req);
}

static inline void begin(void)
{
    static const struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct sandbox_spec spec;

    host_open(&host, &limits, on_request, &front);
    front.loop = &host.loop;
    sandbox_spec_init(&spec);
    spec.envs = json_pack("{s:s, s:s}", "GLOBAL", "1", "BOTH", "global");
    snprintf(spec.template_id, sizeof(spec.template_id), "base");
    sandbox = sandbox_new(&front, "abcdefghij0123456789", &spec);
    sandbox->state = SANDBOX_RUNNING;
    agent.line = -1;
    sandbox->link = link_new(sandbox, host_fork(&agent, false));
    client_open(&client, &host);
}

static inline void end(void)
{
    client_close(&client);
    http_server_free(host.server);
    for (int i = 0; i < 10; i++)
        host_turn(&host);
    link_free(steal_ptr(&sandbox->link)); /* ends what still holds the sandbox, as its end does */
    EXPECT(sandbox->refs == 1);
    sandbox_unref(sandbox);
    uv_run(&host.loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&host.loop) == 0);
    EXPECT(host_ended(&agent));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *extra = ""; /* headers of the next calls */

static inline void send_post(struct client *c, const char *path, const char *type, const void *body,
                             size_t len)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 16u << 20);
    strbuf_addf(&s,
                "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n",
                path, type, len, extra);
    strbuf_add(&s, body, len);
    strbuf_reset(&c->got);
    client_send_bytes(c, s.buf, s.len);
}

/* A unary call: its status, and its body in `got`. */
static inline int unary(const char *path, const char *body)
{
    send_post(&client, path, "application/json", body, strlen(body));
    if (!client_wait(&client, "\r\n\r\n"))
        return 0;
    const char *length = strcasestr(client.got.buf, "content-length: ");
    size_t len = length ? strtoul(length + 16, NULL, 10) : 0;
    uint64_t deadline = clock_ns() + WAIT_NS;
    int status = client_status(&client);
    const char *at = strstr(client.got.buf, "\r\n\r\n") + 4;
    size_t head = (size_t)(at - client.got.buf);

    while (client.got.len < head + len && clock_ns() < deadline) {
        host_turn(&host);
        client_read(&client, SIZE_MAX);
    }
    strbuf_consume(&client.got, head);
    return status;
}

static inline void expect_unary(const char *path, const char *body, int status, const char *part)
{
    int got = unary(path, body);

    if (got != status || !strstr(client.got.buf, part))
        printf("# %s %s: %d %s\n", path, body, got, client.got.buf);
    EXPECT(got == status && strstr(client.got.buf, part) != NULL);
}

/* Starts a stream, whose frames come as they come. */
static inline void stream_begin(struct client *c, const char *path, const char *body)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    size_t len = strlen(body);
    char header[5] = {0, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len};

    strbuf_init(&s, 1u << 20);
    strbuf_add(&s, header, sizeof(header));
    strbuf_addstr(&s, body);
    send_post(c, path, "application/connect+json", s.buf, s.len);
}

/* The end of a stream is a frame with the flag 2. */
static inline bool stream_ended(struct client *c)
{
    static const char plain[] = "\2\0\0\0\2{}", error[] = "{\"error\":";
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (clock_ns() < deadline) {
        client_read(c, SIZE_MAX);
        if (memmem(c->got.buf, c->got.len, plain, sizeof(plain) - 1) ||
            memmem(c->got.buf, c->got.len, error, sizeof(error) - 1))
            return true;
        if (c->ended)
            return false;
        host_turn(&host);
    }
    return false;
}

static inline bool has(struct client *c, const char *text)
{
    bool found = memmem(c->got.buf, c->got.len, text, strlen(text)) != NULL;

    if (!found) {
        printf("# no '%s' in: ", text);
        for (size_t i = 0; i < c->got.len && i < 2000; i++)
            putchar(c->got.buf[i] ? c->got.buf[i] : '.');
        putchar('\n');
    }
    return found;
}

/* All of a stream, whose frames must hold the texts, in this order. */
static inline void expect_stream(const char *path, const char *body, const char *const texts[])
{
    stream_begin(&client, path, body);
    EXPECT(stream_ended(&client));
    const char *at = client.got.buf;
    for (; *texts; texts++) {
        const char *found =
            memmem(at, client.got.len - (size_t)(at - client.got.buf), *texts, strlen(*texts));
        EXPECT(found != NULL);
        if (!found) {
            has(&client, *texts);
            return;
        }
        at = found + strlen(*texts);
    }
}
#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
