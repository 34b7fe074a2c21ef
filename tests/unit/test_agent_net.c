/* Connections to servers inside, and the disk. */
#include "agent_host.h"

/* A server on a free port, which it prints. */
static uint32_t serve(struct agent_host *h, struct call *c, const char *family, const char *host,
                      const char *body)
{
    char script[2048];

    snprintf(script, sizeof(script),
             "exec python3 -uc \"\nimport socket, sys, time\n"
             "s=socket.socket(socket.%s); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
             "s.bind(('%s', 0)); s.listen()\nprint(s.getsockname()[1])\n"
             "while True:\n c,_=s.accept()\n%s\n c.close()\n\"",
             family, host, body);
    shell_open(h, c, "user", 0, script);
    EXPECT(host_wait_output(h, c, "\n"));
    return (uint32_t)strtoul(c->out.buf, NULL, 10);
}

TEST(both_directions_and_both_families)
{
    static const struct {
        const char *family, *host;
    } cases[] = {{"AF_INET", "127.0.0.1"}, {"AF_INET", "0.0.0.0"}, {"AF_INET6", "::1"}};
    struct agent_host h;
    struct call server, c;

    host_start(&h);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t port = serve(&h, &server, cases[i].family, cases[i].host,
                              " d=c.recv(100); c.sendall(b'hello '+d)");
        call_open(&h, &c, OP_NET_CONNECT, "u", port);
        chan_send(h.chan, c.stream, 0, "world", 5); /* before it is connected */
        EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == 0);
        EXPECT(c.started && c.pid == 0);
        EXPECT_STR(c.out.buf, "hello world");
        call_done(&c);
        chan_cancel(h.chan, server.stream);
        EXPECT(host_wait(&h, &server.ended, AGENT_WAIT_MS));
        call_done(&server);
    }
    host_stop(&h);
}

TEST(eof_is_half_a_close)
{
    struct agent_host h;
    struct call server, c;
    bool never = false;
    static char bytes[100000];

    host_start(&h);
    uint32_t port = serve(&h, &server, "AF_INET", "127.0.0.1",
                          " n=0\n while True:\n  d=c.recv(65536)\n  n+=len(d)\n  if not d: break\n"
                          " c.sendall(str(n).encode())");
    call_open(&h, &c, OP_NET_CONNECT, "u", port);
    for (int i = 0; i < 100; i++) {
        while (!c.ended && chan_credit(c.stream) < sizeof(bytes))
            host_wait(&h, &never, 5);
        if (!c.ended)
            chan_send(h.chan, c.stream, 0, bytes, sizeof(bytes));
    }
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == 0);
    EXPECT_STR(c.out.buf, "10000000");
    call_done(&c);
    call_done(&server);
    chan_free(h.chan);
    h.chan = NULL;
    host_stop(&h);
}

TEST(a_slow_host_gets_everything)
{
    struct agent_host h;
    struct call server, c;
    bool never = false;

    host_start(&h);
    uint32_t port =
        serve(&h, &server, "AF_INET", "127.0.0.1", " c.sendall(b'x'*20000000); print('sent')");
    call_open(&h, &c, OP_NET_CONNECT, "u", port);
    c.hold = true;
    host_wait(&h, &never, 300);
    EXPECT(!c.ended && c.out.len == CHAN_WINDOW && !strstr(server.out.buf, "sent"));
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == 0 && c.out.len == 20000000);
    call_done(&c);
    /* one that does not read at all is hung up on */
    call_open(&h, &c, OP_NET_CONNECT, "u", port);
    c.hold = true;
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ECANCELED);
    call_done(&c);
    call_done(&server);
    chan_free(h.chan);
    h.chan = NULL;
    host_stop(&h);
}

TEST(refused_or_reset)
{
    struct agent_host h;
    struct call server, c;
    bool never = false;
    static char bytes[60000];

    host_start(&h);
    CALL(&h, &c, OP_NET_CONNECT, "u", 1u);
    EXPECT(c.status == ECONNREFUSED && !c.started);
    EXPECT_STR(c.message, "nothing listens on port 1 in the sandbox");
    call_done(&c);
    static const uint32_t bad[] = {0, 65536, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CALL(&h, &c, OP_NET_CONNECT, "u", bad[i]);
        EXPECT(c.status == EINVAL);
        call_done(&c);
    }
    CALL(&h, &c, OP_NET_CONNECT, "");
    EXPECT(c.status == EINVAL);
    call_done(&c);

    /* the server goes away with bytes unread: what it sent still counts, the rest has an end */
    uint32_t port = serve(&h, &server, "AF_INET", "127.0.0.1", " c.recv(1); c.sendall(b'bye')");
    call_open(&h, &c, OP_NET_CONNECT, "u", port);
    for (int i = 0; i < 200 && !c.ended; i++) {
        if (chan_credit(c.stream) >= sizeof(bytes))
            chan_send(h.chan, c.stream, 0, bytes, sizeof(bytes));
        host_wait(&h, &never, 2);
    }
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(c.status == 0 || c.status == ECONNRESET);
    call_done(&c);
    call_done(&server);
    chan_free(h.chan);
    h.chan = NULL;
    host_stop(&h);
}

TEST(disk)
{
    struct agent_host h;
    struct call c;
    struct wire_reader r;

    host_start(&h);
    CALL(&h, &c, OP_DISK, "");
    wire_reader_init(&r, c.result.buf, c.result.len);
    uint64_t total = wire_get_u64(&r), used = wire_get_u64(&r);
    EXPECT(c.status == 0 && wire_done(&r) && total > used && used > 0);
    call_done(&c);
    CALL(&h, &c, OP_DISK, "u", 1u);
    EXPECT(c.status == EINVAL);
    call_done(&c);
    host_stop(&h);
}

TAP_MAIN
