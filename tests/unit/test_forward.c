/* Requests to ports of a sandbox: a real HTTP server in front, real servers inside. */
#include "front/forward/forward.h"
#include "front/forward/refusal.h"
#include "front_rig.h"

static unsigned wanted_port;

static void route(struct rig *r, struct http_req *req)
{
    forward_request(r->sandbox, wanted_port, req);
}

/* A server on a free port, which answers each connection with the code given: `c` is the
 * connection, `head()` the request's head, `rest` what came with it. */
static void serve(struct rig *r, struct rig_program *g, const char *code)
{
    char script[8192];

    snprintf(script, sizeof(script),
             "exec python3 -uc \"\nimport socket, threading, time\n"
             "s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(64)\n"
             "print(s.getsockname()[1])\n"
             "def one(c):\n"
             " d=b''\n"
             " while b'\\r\\n\\r\\n' not in d:\n"
             "  p=c.recv(65536)\n"
             "  if not p: return\n"
             "  d+=p\n"
             " head,rest=d.split(b'\\r\\n\\r\\n',1)\n"
             "%s\n"
             " c.close()\n"
             "while True:\n c,_=s.accept(); threading.Thread(target=one,args=(c,)).start()\n\"",
             code);
    rig_shell(r, g, script);
    EXPECT(rig_wait(r, &g->line));
    wanted_port = (unsigned)strtoul(g->out.buf, NULL, 10);
    if (wanted_port == 0)
        printf("# %s\n", g->out.buf);
}

static const char *ask(struct rig *r, const char *text)
{
    return rig_ask(r, text, strlen(text));
}

#define GET(path, headers) \
    "GET " path " HTTP/1.1\r\nHost: 8000-x.example.com\r\nConnection: close\r\n" headers "\r\n"

TEST(there_and_back)
{
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    serve(&r, &g,
          " c.sendall(b'HTTP/1.1 418 Teapot\\r\\nX-Up: 1\\r\\nSet-Cookie: a=b\\r\\nSet-Cookie: c=d"
          "\\r\\nKeep-Alive: x\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(head)+head)");
    const char *a = ask(&r, GET("/p%20q?x=%2f", "Cookie: k=v\r\nX-Forwarded-For: 1.2.3.4\r\n"));
    EXPECT_HAS(a, "HTTP/1.1 418 ");
    EXPECT_HAS(a, "\r\nx-up: 1\r\n");
    EXPECT_HAS(a, "\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n");
    EXPECT(!strcasestr(a, "keep-alive: x"));
    a = rig_body(a);
    EXPECT_HAS(a, "GET /p%20q?x=%2f HTTP/1.1\r\n");
    EXPECT_HAS(a, "\r\nHost: 8000-x.example.com\r\n");
    EXPECT_HAS(a, "\r\ncookie: k=v\r\n");
    EXPECT_HAS(a, "\r\nX-Forwarded-For: 127.0.0.1\r\n");
    EXPECT_HAS(a, "\r\nConnection: close");
    EXPECT(!strstr(a, "1.2.3.4"));

    r.sandbox->spec.network = json_pack("{ss}", "maskRequestHost", "localhost:${PORT}");
    char host[64];
    snprintf(host, sizeof(host), "\r\nHost: localhost:%u\r\n", wanted_port);
    EXPECT_HAS(ask(&r, GET("/", "")), host);

    /* HEAD has a length and no body. */
    a = ask(&r, "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_HAS(a, "Content-Length: ");
    EXPECT_STR(rig_body(a), "");
    rig_program_done(&r, &g);
    rig_stop(&r);
}

TEST(bodies)
{
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    /* Echoes a chunked body as it came, framing included. */
    serve(&r, &g,
          " while not rest.endswith(b'0\\r\\n\\r\\n') and not rest.endswith(b'END'):\n"
          "  rest+=c.recv(65536)\n"
          " c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\n'+rest)");
    const char *a = ask(&r, "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n"
                            "\r\n");
    EXPECT_HAS(a, "\r\nTransfer-Encoding: chunked\r\n");
    EXPECT_HAS(a, "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n\r\n");
    a = ask(&r, "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 8\r\n\r\n"
                "12345END");
    EXPECT_HAS(a, "12345END");
    rig_program_done(&r, &g);

    serve(&r, &g,
          " c.sendall(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: "
          "chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n')\n"
          " time.sleep(0.05)\n"
          " c.sendall(b'1\\r\\nd\\r\\n0\\r\\nTrailer: x\\r\\n\\r\\n')");
    EXPECT_HAS(ask(&r, GET("/", "")), "\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n");
    rig_program_done(&r, &g);
    rig_stop(&r);
}

TEST(nobody_there)
{
    struct rig r;

    rig_start(&r, route);
    wanted_port = 1;
    const char *a = ask(&r, GET("/", ""));
    EXPECT_HAS(a, "HTTP/1.1 502 ");
    EXPECT_HAS(rig_body(a),
               "{\"sandboxId\":\"abcdefghijklmnopqrst\",\"message\":\"The sandbox is running but "
               "port is not open\",\"port\":1,\"code\":502}");
    a = ask(&r, GET("/", "Accept: text/html,*/*\r\nSec-Fetch-Mode: navigate\r\n"));
    EXPECT_HAS(a, "Content-Type: text/html");
    EXPECT_HAS(a, "port is not open");
    a = ask(&r, GET("/", "Accept: text/html\r\nSec-Fetch-Mode: cors\r\nUser-Agent: Mozilla\r\n"));
    EXPECT_HAS(a, "Content-Type: application/json");
    wanted_port = 0;
    EXPECT_HAS(ask(&r, GET("/", "")), "HTTP/1.1 400 ");
    wanted_port = 65536;
    EXPECT_HAS(ask(&r, GET("/", "")), "HTTP/1.1 400 ");

    wanted_port = 1;
    link_free(r.sandbox->link);
    r.sandbox->link = NULL;
    a = ask(&r, GET("/", ""));
    EXPECT_HAS(a, "HTTP/1.1 502 ");
    EXPECT_HAS(a, "\"message\":\"The sandbox was not found\",\"code\":502");
    rig_stop(&r);
}

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

TEST(private_ports)
{
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    serve(&r, &g, " c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n'+head)");
    snprintf(r.sandbox->spec.traffic_token, sizeof(r.sandbox->spec.traffic_token), "%s", TOKEN);
    const char *a = ask(&r, GET("/", ""));
    EXPECT_HAS(a, "HTTP/1.1 403 ");
    EXPECT_HAS(a, "\"sandboxId\":\"abcdefghijklmnopqrst\"");
    EXPECT_HAS(a, "Token header 'e2b-traffic-access-token' is missing");
    EXPECT_HAS(a, "\"code\":403");
    EXPECT_HAS(ask(&r, GET("/", "E2B-Traffic-Access-Token: x\r\n")), "is invalid");
    a = ask(&r, GET("/", "E2B-Traffic-Access-Token: " TOKEN "\r\n"));
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT(!strstr(a, TOKEN)); /* the server inside does not get it */
    rig_program_done(&r, &g);
    rig_stop(&r);
}

TEST(bad_servers)
{
    static const struct {
        const char *code, *answer;
        bool cut; /* the connection is dropped before the end */
    } cases[] = {
        {" c.sendall(b'SSH-2.0-x\\r\\n\\r\\n')", "HTTP/1.1 502 ", false},
        {" pass", "HTTP/1.1 502 ", false},
        {" c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nContent-Length: 6\\r\\n\\r\\n')",
         "HTTP/1.1 502 ", false},
        {" c.sendall(b'HTTP/1.1 200 OK\\r\\nA: '+b'x'*100000+b'\\r\\n\\r\\n')", "HTTP/1.1 502 ",
         false},
        {" c.sendall(b'HTTP/1.1 101 Ok\\r\\nUpgrade: x\\r\\n\\r\\n')", "HTTP/1.1 502 ", false},
        {" c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhel'); time.sleep(0.1)",
         "hel", true},
        {" c.sendall(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: "
         "chunked\\r\\n\\r\\n3\\r\\nhel\\r\\n'); time.sleep(0.1)",
         "hel", true},
        {" c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nokHTTP/1.1 200 OK\\r\\n')",
         "\r\n\r\nok", false},
    };
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        serve(&r, &g, cases[i].code);
        const char *a = ask(&r, GET("/", ""));
        EXPECT_HAS(a, cases[i].answer);
        EXPECT(!cases[i].cut || !strstr(a, "0\r\n\r\n"));
        if (!cases[i].cut && strstr(a, " 200 "))
            EXPECT_STR(rig_body(a), "ok");
        rig_program_done(&r, &g);
    }
    rig_stop(&r);
}

/* ---- another protocol ------------------------------------------------------------------------ */

static void talk(struct rig *r, void *arg)
{
    static const char head[] = "GET /ws HTTP/1.1\r\nHost: h\r\nOrigin: http://other\r\n"
                               "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                               "Sec-WebSocket-Key: k\r\n\r\n";
    struct strbuf *out = arg;
    int fd = rig_connect(r);

    fd_write_all(fd, head, sizeof(head) - 1);
    rig_read(fd, out, "early");
    fd_write_all(fd, "ping", 4);
    rig_read(fd, out, "<ping>");
    shutdown(fd, SHUT_WR); /* a direction ends; the other goes on */
    rig_read(fd, out, NULL);
    close(fd);
}

TEST(websockets)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    serve(&r, &g,
          " assert b'Upgrade: websocket' in head and b'sec-websocket-key: k' in head\n"
          " c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: "
          "Upgrade\\r\\nSec-WebSocket-Accept: z\\r\\n\\r\\nearly')\n"
          " while True:\n"
          "  d=c.recv(100)\n"
          "  if not d: break\n"
          "  c.sendall(b'<'+d+b'>')\n"
          " c.sendall(b'bye')");
    strbuf_init(&out, 65536);
    rig_run(&r, talk, &out);
    EXPECT_HAS(out.buf, "HTTP/1.1 101 Switching Protocols\r\n");
    EXPECT_HAS(out.buf, "sec-websocket-accept: z\r\n");
    EXPECT_HAS(out.buf, "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\nearly<ping>bye");
    /* A server that does not want to: an ordinary answer. */
    rig_program_done(&r, &g);
    serve(&r, &g, " c.sendall(b'HTTP/1.1 400 No\\r\\nContent-Length: 2\\r\\n\\r\\nno')");
    EXPECT_HAS(ask(&r, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\n"
                       "Upgrade: websocket\r\n\r\n"),
               "HTTP/1.1 400 ");
    rig_program_done(&r, &g);
    rig_stop(&r);
}

/* A server that speaks TLS only, with a key of its own making. */
TEST(tls_inside)
{
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    rig_shell(&r, &g,
              "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "
              "/CN=x -keyout k -out c 2>/dev/null; exec python3 -uc \"\n"
              "import socket, ssl\n"
              "x=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); x.load_cert_chain('c','k')\n"
              "s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n"
              "print(s.getsockname()[1])\n"
              "while True:\n"
              " try:\n"
              "  c=x.wrap_socket(s.accept()[0], server_side=True)\n"
              "  d=b''\n"
              "  while not d.endswith(b'END'): d+=c.recv(65536)\n"
              "  n=b'%d' % len(d.split(b'\\r\\n\\r\\n',1)[1])\n"
              "  c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 3000000\\r\\nX-Got: '+n+"
              "b'\\r\\n\\r\\n'+b'y'*3000000)\n"
              "  c.close()\n"
              " except OSError: pass\n\"");
    EXPECT(rig_wait(&r, &g.line));
    wanted_port = (unsigned)strtoul(g.out.buf, NULL, 10);

    static char body[2000003];
    AUTO(strbuf_done) struct strbuf q = {0};
    memset(body, 'x', 2000000);
    memcpy(body + 2000000, "END", 3);
    strbuf_init(&q, 4u << 20);
    strbuf_addf(&q,
                "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Content-Length: %zu\r\n\r\n",
                sizeof(body));
    strbuf_add(&q, body, sizeof(body));
    EXPECT_HAS(rig_ask(&r, q.buf, q.len), "HTTP/1.1 502 "); /* it is not known to speak TLS */
    r.sandbox->spec.network = json_pack("{s[ii]}", "httpsPorts", 1, (int)wanted_port);
    const char *a = rig_ask(&r, q.buf, q.len);
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT_HAS(a, "x-got: 2000003\r\n");
    EXPECT(strlen(rig_body(a)) == 3000000);
    rig_program_done(&r, &g);

    /* One that does not speak it after all. */
    rig_shell(&r, &g,
              "exec python3 -uc \"\nimport socket\n"
              "s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n"
              "print(s.getsockname()[1])\n"
              "while True: c=s.accept()[0]; c.sendall(b'HTTP/1.1 400 Bad\\r\\n\\r\\n')\n\"");
    EXPECT(rig_wait(&r, &g.line));
    wanted_port = (unsigned)strtoul(g.out.buf, NULL, 10);
    json_array_append_new(json_object_get(r.sandbox->spec.network, "httpsPorts"),
                          json_integer(wanted_port));
    EXPECT_HAS(ask(&r, GET("/", "")), "does not speak TLS");
    rig_program_done(&r, &g);
    rig_stop(&r);
}

/* ---- pace ------------------------------------------------------------------------------------ */

#define LARGE (30u << 20)

static void slow_both_ways(struct rig *r, void *arg)
{
    static char buf[1u << 20];
    size_t *got = arg;
    char head[128];
    int fd = rig_connect(r);
    ssize_t n;

    int len = snprintf(head, sizeof(head),
                       "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: "
                       "%u\r\n\r\n",
                       LARGE);
    fd_write_all(fd, head, (size_t)len);
    for (unsigned i = 0; i < LARGE / sizeof(buf); i++)
        fd_write_all(fd, buf, sizeof(buf));
    usleep(300000);
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        *got += (size_t)n;
    close(fd);
}

TEST(large_bodies_both_ways)
{
    struct rig_program g;
    size_t got = 0;
    struct rig r;

    rig_start(&r, route);
    serve(&r, &g,
          " time.sleep(0.2)\n n=len(rest)\n"
          " while n<31457280: n+=len(c.recv(1<<20))\n"
          " c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 31457280\\r\\n\\r\\n')\n"
          " c.sendall(b'x'*31457280)");
    rig_run(&r, slow_both_ways, &got);
    EXPECT(got > LARGE && got < LARGE + 1024);
    rig_program_done(&r, &g);
    rig_stop(&r);
}

static void leave(struct rig *r, void *arg)
{
    int fd = rig_connect(r);

    (void)arg;
    fd_write_all(fd, GET("/", ""), sizeof(GET("/", "")) - 1);
    usleep(100000);
    close(fd);
}

TEST(a_client_that_leaves)
{
    struct rig_program g;
    struct rig r;

    rig_start(&r, route);
    /* The server says when it is left alone. */
    serve(&r, &g, " c.recv(1); open('left','w').close()");
    for (int i = 0; i < 3; i++)
        rig_run(&r, leave, NULL);
    EXPECT_STR(rig_says(&r, "for i in $(seq 100); do [ -e left ] && echo yes && break; sleep 0.05; "
                            "done"),
               "yes\n");
    EXPECT(r.sandbox->refs == 2);
    rig_program_done(&r, &g);
    rig_stop(&r);
}

TAP_MAIN
