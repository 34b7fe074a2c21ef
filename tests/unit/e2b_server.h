/* A front with the control plane only, on a port of the loopback, and a warden that does what the
 * test says: no root, no sandboxes. */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "front/builds/build.h"
#include "front/e2b/e2b.h"
#include "front/core/lifecycle.h"
#include "front/core/warden.h"
#include "front/store/store.h"

/* What answers: the control plane, unless the test says otherwise. */
#ifndef SERVER_REQUEST
#define SERVER_REQUEST e2b_request
#endif
#ifndef SERVER_LIMITS
#define SERVER_LIMITS HTTP_LIMITS_DEFAULT
#endif

#define SERVER_DEADLINE_NS (10ull * 1000 * 1000 * 1000)
#define ORDERS_MAX         512
#define AGENTS_MAX         256

struct answer {
    int status;
    char text[256 * 1024]; /* head and body */
    char *body;
    json_t *json; /* NULL if it has none */
};

static struct {
    struct front front;
    struct http_server *http;
    char dir[64];
    int warden; /* the other end of the orders */
    uint16_t port;
    struct order orders[ORDERS_MAX]; /* all that came */
    size_t n_orders;
    int agents[AGENTS_MAX]; /* our ends of the channels */
    size_t n_agents;
    /* What the warden answers to an operation: 0 or -errno. */
    int fail[ORDER_MAX_];
    bool silent; /* it does not answer at all */
    /* What comes with an answer to ORDER_CHECKPOINT, and whether kernels do with one to CREATE from
     * it; NULL: nothing. */
    const char *list; /* that DIFF writes */
    size_t list_len;
    const char *report;
    char acme[STORE_KEY_LEN + 1], beta[STORE_KEY_LEN + 1];
    struct store_tenant acme_tenant;
} server;

static void server_fail(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static int report_memfd(void)
{
    int fd = memfd_create("report", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, server.report, strlen(server.report)) < 0)
        server_fail("make a report");
    return fd;
}

static void warden_answer(const struct order *o)
{
    struct order_answer a = {.magic = ORDER_MAGIC, .tell = TELL_REPLY, .seq = o->seq};
    int pair[2] = {-1, -1};

    a.code = server.fail[o->op];
    if (a.code < 0) {
        a.error_kind = a.code == -EAGAIN || a.code == -EDQUOT ? SG_ERR_LIMIT
                       : a.code == -EOPNOTSUPP                ? SG_ERR_UNSUPPORTED
                                                              : SG_ERR_INTERNAL;
        snprintf(a.message, sizeof(a.message), "the test said so");
    } else if (o->op == ORDER_CREATE || (o->op == ORDER_RESUME && (o->flags & ORDER_FILES_ONLY))) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            server_fail("socketpair");
        server.agents[server.n_agents++ % AGENTS_MAX] = pair[1];
    }
    if (o->op == ORDER_CHECKPOINT && server.report)
        pair[0] = report_memfd();
    if (server.report && (o->op == ORDER_CHECKPOINT || o->op == ORDER_REWIND ||
                          (o->op == ORDER_CREATE && (o->flags & ORDER_STATE))))
        a.flags = TELL_KERNELS;
    a.state = o->op == ORDER_PAUSE ? (o->flags & ORDER_FILES_ONLY ? STATE_STORED : STATE_PAUSED)
                                   : STATE_RUNNING;
    a.stats = (struct order_stats){.cpu_usec = 1000,
                                   .memory_total = 1 << 30,
                                   .memory_used = o->op == ORDER_CHECKPOINT ? 1 << 20 : 0,
                                   .disk_bytes = 4096};
    if (ipc_send(server.warden, &a, sizeof(a), pair, pair[0] >= 0 ? 1 : 0) < 0)
        server_fail("answer an order");
    close_p(&pair[0]);
}

static void warden_serve(void)
{
    for (;;) {
        AUTO(ipc_fds_close) struct ipc_fds fds = {.max = IPC_FDS_MAX};
        struct order o;

        if (ipc_recv(server.warden, &o, sizeof(o), &fds) != (ssize_t)sizeof(o))
            return;
        if (o.op == ORDER_DIFF && fds.n == 1 && server.list_len > 0 &&
            pwrite(fds.at[0], server.list, server.list_len, 0) != (ssize_t)server.list_len)
            server_fail("write a list");
        if (server.n_orders == ORDERS_MAX)
            server_fail("too many orders");
        server.orders[server.n_orders++] = o;
        if (!server.silent)
            warden_answer(&o);
    }
}

static void server_on_tell(struct front *f, const struct order_answer *a, int *fds, size_t n)
{
    (void)f, (void)a, (void)fds, (void)n;
}

static void server_on_gone(struct front *f, bool unreadable)
{
    (void)f, (void)unreadable;
    server_fail("the warden is gone");
}

static void server_listen(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sg_error e;

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        server_fail("listen");
    server.port = ntohs(addr.sin_port);
    if (http_server_listen(server.front.http, fd, HTTP_PLAIN, &e) < 0)
        server_fail(e.message);
}

static void server_turn(int fd);

/* Before the first test and after the last. */
__attribute__((constructor)) static void server_start(void)
{
    static const struct warden_handlers handlers = {.on_tell = server_on_tell,
                                                    .on_gone = server_on_gone};
    static const struct http_limits limits = SERVER_LIMITS;
    struct front *f = &server.front;
    struct store_tenant t;
    struct sg_error e;
    int pair[2];

    snprintf(server.dir, sizeof(server.dir), "/tmp/test_e2b.XXXXXX");
    if (!mkdtemp(server.dir) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        server_fail("set up");
    server.warden = pair[1];
    f->loop = uv_default_loop();
    settings_init(&f->settings);
    f->http = http_server_new(f->loop, &limits, SERVER_REQUEST, f);
    warden_open(f, pair[0], &handlers);
    if (store_open(server.dir, &f->store, &e) < 0 ||
        store_tenant_ensure(f->store, "acme", &server.acme_tenant, &e) < 0 ||
        store_key_create(f->store, server.acme_tenant.id, "", server.acme, NULL, &e) < 0 ||
        store_tenant_ensure(f->store, "beta", &t, &e) < 0 ||
        store_key_create(f->store, t.id, "", server.beta, NULL, &e) < 0)
        server_fail(e.message);
    if (builds_start(f, &e) < 0)
        server_fail(e.message);
    server_listen();
    server_turn(-1);
    server.n_orders = 0; /* to remove what builds of an earlier server left */
}

/* One turn of everybody. */
static void server_turn(int fd)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = server.warden, .events = POLLIN}};

    uv_run(server.front.loop, UV_RUN_NOWAIT);
    warden_serve();
    uv_run(server.front.loop, UV_RUN_NOWAIT);
    poll(p, 2, 1);
}

static int client_connect(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(server.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        server_fail("connect");
    return fd;
}

static void client_send(int fd, const char *key, const char *method, const char *target,
                        const char *body)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 4u << 20);
    strbuf_addf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method, target);
    if (key)
        strbuf_addf(&out, "X-API-Key: %s\r\n", key);
    /* As the JS SDK does it. */
    if (body)
        strbuf_addf(&out, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n%s", strlen(body), body,
                    body[0] ? "0\r\n\r\n" : "");
    else
        strbuf_addstr(&out, "\r\n");
    if (fd_write_all(fd, out.buf, out.len) < 0)
        server_fail("send a request");
}

/* The last answer; the next call overwrites it. */
static struct answer *client_receive(int fd)
{
    static struct answer a;
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    size_t len = 0;

    json_decref(a.json);
    a = (struct answer){0};
    fd_set_nonblock(fd, true);
    for (;;) {
        ssize_t n = read(fd, a.text + len, sizeof(a.text) - 1 - len);

        if (n == 0)
            break;
        if (n > 0)
            len += (size_t)n;
        else if (errno != EAGAIN || clock_ns() > deadline)
            server_fail("read an answer");
        else
            server_turn(fd);
    }
    close(fd);
    a.body = strstr(a.text, "\r\n\r\n");
    if (sscanf(a.text, "HTTP/1.1 %d", &a.status) != 1 || !a.body)
        server_fail("an answer that is none");
    a.body += 4;
    a.json = json_loads(a.body, 0, NULL);
    return &a;
}

static struct answer *ask(const char *key, const char *method, const char *target, const char *body)
{
    int fd = client_connect();

    client_send(fd, key, method, target, body);
    return client_receive(fd);
}

/* The same of acme's key, with a target that is put together. */
static struct answer *call_acme(const char *method, const char *body, const char *fmt, ...)
    PRINTF(3, 4);
static struct answer *call_acme(const char *method, const char *body, const char *fmt, ...)
{
    char target[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(target, sizeof(target), fmt, ap);
    va_end(ap);
    return ask(server.acme, method, target, body);
}

static const char *field_of(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);

    return json_is_string(v) ? json_string_value(v) : json_is_null(v) ? "(null)" : "(none)";
}

static inline const char *message_of(const struct answer *a)
{
    return field_of(a->json, "message");
}

/* The last order of a kind, or NULL. */
static inline const struct order *last_order(enum order_op op)
{
    for (size_t i = server.n_orders; i > 0; i--)
        if (server.orders[i - 1].op == (uint32_t)op)
            return &server.orders[i - 1];
    return NULL;
}

static inline void make_sandbox(const char *body, char id[ID_LEN + 1])
{
    struct answer *a = call_acme("POST", body, "/v2/sandboxes");

    if (a->status != 201)
        printf("# %s\n", a->body);
    EXPECT(a->status == 201);
    snprintf(id, ID_LEN + 1, "%s", field_of(a->json, "sandboxID"));
    EXPECT(id_valid(id));
}

/* Everything of acme's is gone, and so are the orders about it. */
static inline void clean_up(void)
{
    struct answer *a = call_acme("GET", NULL, "/v2/sandboxes?limit=100");
    json_t *all = json_incref(a->json), *v;
    size_t i;

    server.front.settings.tenant_sandboxes = 1000;
    server.front.settings.tenant_snapshots = 100;
    server.front.settings.tenant_paused = 1000;
    server.front.settings.tenant_paused_memory = 4ull << 30;
    json_array_foreach(all, i, v)
        EXPECT(call_acme("DELETE", NULL, "/sandboxes/%s", field_of(v, "sandboxID"))->status == 204);
    json_decref(all);
    server.n_orders = 0;
    server.report = NULL;
    while (server.n_agents > 0)
        close(server.agents[--server.n_agents % AGENTS_MAX]);
}

__attribute__((destructor)) static void server_stop(void)
{
    static const char *const files[] = {"server.db", "server.db-wal", "server.db-shm",
                                        "contexts.key", "events.key"};
    char path[128];

    store_close(server.front.store);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", server.dir, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/uploads", server.dir);
    rmdir(path);
    rmdir(server.dir);
}
