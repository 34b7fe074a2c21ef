/* What the guard tells the front without being asked, and what it counts: both ends of the socket
 * in one loop. The front's side ends where news are handed on. */
#include "tap.h"

#include <jansson.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "front/core/guard.h"
#include "front/core/news.h"
#include "guard/counts.h"
#include "guard/front_link.h"
#include "guard/news.h"

TAP_MAIN

#define WAIT_NS (10ull * 1000 * 1000 * 1000)
#define TENANT  "aaaaaaaaaaaaaaaaaaaa"
#define SANDBOX "sandboxaaaaaaaaaaaaa"
#define OTHER   "sandboxbbbbbbbbbbbbb"

static struct front front;
static struct guard guard;
static struct sandbox sandbox, other;

/* What has come, in place of front/core/news.c. */
static struct egress_news got[4096];
static size_t n_got;

void egress_news_take(struct front *f, const struct egress_news *news, size_t n)
{
    (void)f;
    for (size_t i = 0; i < n && n_got < ARRAY_SIZE(got); i++)
        got[n_got++] = news[i];
}

static void make_sandbox(struct sandbox *s, const char *id)
{
    s->guard = &guard;
    snprintf(s->id, sizeof(s->id), "%s", id);
    snprintf(s->tenant, sizeof(s->tenant), "%s", TENANT);
}

/* The guard's socket, if the front's end is not to be read. */
static int join_ends(bool front_reads)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    guard.loop = front.loop = uv_default_loop();
    make_sandbox(&sandbox, SANDBOX);
    make_sandbox(&other, OTHER);
    front_link_set(&guard, pair[1]);
    n_got = 0;
    guard_set_socket(&front, front_reads ? pair[0] : -1);
    return front_reads ? -1 : pair[0];
}

static void run_until(size_t n)
{
    for (uint64_t end_ns = clock_ns() + WAIT_NS; n_got < n && clock_ns() < end_ns;) {
        uv_run(front.loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static void run_for(unsigned ms)
{
    for (uint64_t end_ns = clock_ns() + ms * 1000000ull; clock_ns() < end_ns; usleep(500))
        uv_run(front.loop, UV_RUN_NOWAIT);
}

static struct net_addr address(const char *text, uint16_t port)
{
    struct net_addr a = {0};

    if (net_addr_parse(text, &a) < 0)
        abort();
    a.port = port;
    return a;
}

TEST(connections_are_told)
{
    struct net_addr to = address("93.184.216.34", 443);

    join_ends(true);
    news_gather(&sandbox, &(struct decision){.kind = "flow",
                                             .protocol = "tls",
                                             .allowed = true,
                                             .rule = "default allow",
                                             .name = "a.test",
                                             .address = &to,
                                             .up = 10,
                                             .down = 20,
                                             .ms = 30});
    news_gather(&sandbox,
                &(struct decision){
                    .kind = "flow", .protocol = "udp", .rule = "internal address", .address = &to});
    news_gather(&sandbox, &(struct decision){.kind = "flow",
                                             .allowed = true,
                                             .rule = "default allow",
                                             .address = &to,
                                             .detail = "connection refused"});
    news_gather(&sandbox, &(struct decision){
                              .kind = "dns", .protocol = "dns", .rule = "no", .name = "b.test"});
    run_until(4);
    EXPECT(n_got == 4);
    EXPECT(strcmp(got[0].id, SANDBOX) == 0 && strcmp(got[0].tenant, TENANT) == 0);
    EXPECT(got[0].verdict == VERDICT_ALLOWED && got[0].up == 10 && got[0].down == 20);
    EXPECT(got[0].took_ms == 30 && got[0].port == 443);
    EXPECT_STR(got[0].protocol, "tcp");
    EXPECT_STR(got[0].target, "a.test");
    EXPECT(got[1].verdict == VERDICT_BLOCKED);
    EXPECT_STR(got[1].protocol, "udp");
    EXPECT_STR(got[1].target, "93.184.216.34");
    EXPECT_STR(got[1].why, "internal address");
    EXPECT(got[2].verdict == VERDICT_FAILED);
    EXPECT_STR(got[2].why, "connection refused");
    EXPECT(got[3].verdict == VERDICT_BLOCKED);
    EXPECT_STR(got[3].protocol, "dns");
    EXPECT_STR(got[3].target, "b.test");
}

TEST(what_is_no_news)
{
    join_ends(true);
    news_gather(&sandbox, &(struct decision){.kind = "dns", .protocol = "dns", .allowed = true});
    news_gather(&sandbox, &(struct decision){.kind = "flow", .protocol = "dns", .allowed = true});
    news_gather(&sandbox,
                &(struct decision){.kind = "policy", .allowed = true, .rule = "in force"});
    news_gather(&sandbox, &(struct decision){.kind = "request", .allowed = true});
    run_for(3 * EGRESS_NEWS_MS);
    EXPECT(n_got == 0);
}

static void flows(struct sandbox *s, size_t n, uint64_t up)
{
    for (size_t i = 0; i < n; i++)
        news_gather(s, &(struct decision){.kind = "flow", .allowed = true, .up = up});
}

static uint64_t bytes_of(const char *id)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n_got; i++)
        sum += strcmp(got[i].id, id) == 0 ? got[i].up : 0;
    return sum;
}

TEST(many_at_once_are_all_told)
{
    join_ends(true);
    for (int i = 0; i < 20; i++) {
        flows(&sandbox, 100, 1);
        uv_run(front.loop, UV_RUN_NOWAIT);
    }
    run_until(2000);
    EXPECT(n_got == 2000 && bytes_of(SANDBOX) == 2000);
}

/* Nobody reads: it neither waits nor grows, and when somebody does, no byte is missing. */
TEST(without_a_front_bytes_are_kept)
{
    int unread = join_ends(false);

    flows(&sandbox, 20000, 1);
    flows(&other, 5, 1000);
    for (int i = 0; i < 1000; i++)
        news_gather(&sandbox, &(struct decision){.kind = "flow", .rule = "no"});
    flows(&other, 1, 1);
    close(unread);
    run_for(2 * EGRESS_NEWS_MS);
    join_ends(true);
    flows(&other, 1, 7);
    run_for(5 * EGRESS_NEWS_MS);
    /* Those that had left for the one that is gone are lost with it. */
    EXPECT(bytes_of(OTHER) == 5008);
    EXPECT(bytes_of(SANDBOX) <= 20000 && bytes_of(SANDBOX) >= 20000 - 2000);
    EXPECT(n_got < 400);
}

TEST(a_guard_without_a_front_gathers_nothing)
{
    struct guard lone = {.loop = uv_default_loop()};
    struct sandbox s = {.guard = &lone};

    flows(&s, 10, 1);
    EXPECT(!lone.news);
}

/* ---- lies ------------------------------------------------------------------------------------ */

static void send_raw(int sock, const void *payload, size_t len, enum ask_what what)
{
    static char message[sizeof(struct ask) + GUARD_PAYLOAD_MAX];
    struct ask a = {.magic = GUARD_MAGIC, .what = what, .len = (uint32_t)len};

    memcpy(message, &a, sizeof(a));
    memcpy(message + sizeof(a), payload, len);
    if (send(sock, message, sizeof(a) + len, 0) < 0)
        abort();
}

TEST(news_that_are_none_are_left_out)
{
    struct egress_news n[3];
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    front.loop = uv_default_loop();
    n_got = 0;
    guard_set_socket(&front, pair[0]);
    memset(n, 'x', sizeof(n)); /* nothing ends */
    for (int i = 0; i < 3; i++) {
        memcpy(n[i].id, SANDBOX, sizeof(n[i].id));
        memcpy(n[i].tenant, TENANT, sizeof(n[i].tenant));
        n[i].verdict = VERDICT_BLOCKED;
    }
    n[0].verdict = VERDICT_MAX_;
    n[1].id[3] = '/';
    send_raw(pair[1], n, sizeof(n) - 1, ASK_NEWS);
    send_raw(pair[1], n, sizeof(n), ASK_FIGURES);
    send_raw(pair[1], n, 0, ASK_NEWS);
    send_raw(pair[1], n, sizeof(n), ASK_NEWS);
    run_until(1);
    run_for(20);
    EXPECT(n_got == 1);
    EXPECT(strlen(got[0].target) == sizeof(n[0].target) - 1);
    EXPECT(strlen(got[0].why) == sizeof(n[0].why) - 1);
    EXPECT(strlen(got[0].protocol) == sizeof(n[0].protocol) - 1);
    guard_set_socket(&front, -1);
    close(pair[1]);
}

/* ---- figures --------------------------------------------------------------------------------- */

static json_t *told;

static void on_told(void *arg, int r, const void *payload, size_t len, int fd)
{
    (void)arg;
    EXPECT(r == 0 && fd < 0);
    told = json_loadb(payload, len, JSON_REJECT_DUPLICATES, NULL);
}

static json_t *ask_figures(void)
{
    told = NULL;
    guard_ask(&front, ASK_FIGURES, NULL, NULL, NULL, 0, on_told, NULL);
    for (uint64_t end_ns = clock_ns() + WAIT_NS; !told && clock_ns() < end_ns; usleep(500))
        uv_run(front.loop, UV_RUN_NOWAIT);
    return told;
}

static double number(json_t *v, const char *part, const char *key)
{
    return json_number_value(json_object_get(json_object_get(v, part), key));
}

TEST(what_the_guard_counts)
{
    char kind[80];

    join_ends(true);
    counts_sanitised(&guard, "email", 2);
    counts_sanitised(&guard, "email", 3);
    guard.dns_blocked = 7;
    json_t *v = ask_figures();
    EXPECT(number(v, "sanitised", "email") == 5);
    EXPECT(number(v, "dns", "blocked") == 7 && number(v, "dns", "allowed") == 0);
    EXPECT(number(v, "process", "cpuSeconds") > 0);
    EXPECT(number(v, "process", "residentBytes") > 100000);
    EXPECT(number(v, "process", "openFds") > 2);
    double age_ms = (double)clock_wall_ms() - number(v, "process", "startedMs");
    EXPECT(age_ms > -1000 && age_ms < 120000);
    json_decref(v);

    for (int i = 0; i < 3 * COUNTS_KINDS_MAX; i++) {
        snprintf(kind, sizeof(kind), "kind-%0*d", COUNTS_NAME_MAX - 5, i);
        counts_sanitised(&guard, kind, 1);
    }
    v = ask_figures();
    EXPECT(json_object_size(json_object_get(v, "sanitised")) == COUNTS_KINDS_MAX + 1);
    EXPECT(number(v, "sanitised", "other") == 2 * COUNTS_KINDS_MAX + 1);
    json_decref(v);
}
