/* Connections are for all tenants: one that keeps its requests open leaves some to others. */
#define CONNS 20
#define SERVER_LIMITS                                                                     \
    {                                                                                     \
        .head_max = 32768, .target_max = 8192, .headers_max = 100, .head_ms = 10000,      \
        .idle_ms = 640000, .body_rate = 1024, .body_grace_ms = 10000, .stall_ms = 300000, \
        .conns_max = CONNS, .conns_per_ip = 512, .turn_ns = WORK_TURN_NS                  \
    }
#define SERVER_REQUEST dispatch_request
#include "front/main/dispatch.h"
#include "tap.h"

#include "e2b_server.h"
#include "front/core/request_log.h"

TAP_MAIN

static int open_one(const char *key)
{
    int fd = client_connect();

    client_send(fd, key, "POST", "/v2/sandboxes", "{}");
    for (int i = 0; i < 10; i++)
        server_turn(-1);
    return fd;
}

TEST(one_tenant_leaves_connections_to_the_next)
{
    int fds[CONNS];
    size_t n = 0, orders = 0;
    struct answer *a;

    http_server_on_over(server.front.http, request_log_over);
    server.silent = true; /* creates are not answered, and wait */
    for (; n < CONNS * 4 / 5; n++)
        fds[n] = open_one(server.acme);
    for (size_t i = 0; i < server.n_orders; i++)
        orders += server.orders[i].op == ORDER_CREATE;
    EXPECT(orders == n);
    a = call_acme("POST", "{}", "/v2/sandboxes");
    EXPECT(a->status == 429 && strstr(message_of(a), "open requests"));
    EXPECT(strcasestr(a->text, "Retry-After: 1"));
    EXPECT(ask(server.beta, "GET", "/v2/sandboxes", NULL)->status == 200);
    /* What is over is given back. */
    close(fds[--n]);
    close(fds[--n]);
    for (int i = 0; i < 10; i++)
        server_turn(-1);
    EXPECT(call_acme("GET", NULL, "/v2/sandboxes")->status == 200);
    while (n > 0)
        close(fds[--n]);
}
