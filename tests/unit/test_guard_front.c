/* The socket between front and guard, both ends of it in one loop: questions, answers, deadlines,
 * and what either does when the other is gone or sends what it should not. */
#include "tap.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/audit/audit.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "front/core/guard.h"
#include "guard/front_link.h"
#include "guard/guard.h"
#include "guard/inspect.h"
#include "lib/vault/vault.h"

TAP_MAIN

#define WAIT_NS  (10ull * 1000 * 1000 * 1000)
#define TENANT_A "aaaaaaaaaaaaaaaaaaaa"
#define TENANT_B "bbbbbbbbbbbbbbbbbbbb"
#define SANDBOX  "sandboxaaaaaaaaaaaaa"

static struct front front;
static struct guard guard;
static char dir[64];

static void end(void)
{
    static const char *const names[] = {"audit/audit-000001.jsonl",
                                        "audit/" TENANT_A "/audit-000001.jsonl",
                                        "audit/" TENANT_B "/audit-000001.jsonl",
                                        "audit/head.key",
                                        "audit/head.pub",
                                        "ca.key",
                                        "ca.pem"};

    audit_close(guard.audit);
    vault_key_free(guard.key);
    ca_free(guard.ca);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unlinkat(guard.dir, names[i], 0);
    unlinkat(guard.dir, "audit/" TENANT_A, AT_REMOVEDIR);
    unlinkat(guard.dir, "audit/" TENANT_B, AT_REMOVEDIR);
    unlinkat(guard.dir, "audit", AT_REMOVEDIR);
    close(guard.dir);
    rmdir(dir);
}

__attribute__((constructor)) static void begin(void)
{
    struct audit_limits limits = {.file_bytes = 1u << 20, .files = 2};
    AUTO(close_p) int audit = -1;
    struct sg_error e;

    snprintf(dir, sizeof(dir), "/tmp/test_guard_front.XXXXXX");
    if (!mkdtemp(dir) || (guard.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        mkdirat(guard.dir, "audit", 0700) < 0 ||
        (audit = openat(guard.dir, "audit", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        audit_open(audit, &limits, &guard.audit, &e) < 0)
        abort();
    guard.key = vault_key_new();
    guard.loop = front.loop = uv_default_loop();
    atexit(end); /* before OpenSSL's own, which was first */
}

static void make_pair(int ret[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        abort();
}

static void join_both(void)
{
    int pair[2];

    make_pair(pair);
    guard_set_socket(&front, pair[0]);
    front_link_set(&guard, pair[1]);
}

struct got {
    int calls, r, fd;
    size_t len;
    char payload[GUARD_PAYLOAD_MAX + 1];
};

static void on_done(void *arg, int r, const void *payload, size_t len, int fd)
{
    struct got *g = arg;

    EXPECT(((const char *)payload)[len] == '\0');
    g->calls++;
    g->r = r;
    g->len = len;
    memcpy(g->payload, payload, len);
    g->payload[len] = '\0';
    g->fd = fd;
}

static void run_until(const int *calls)
{
    for (uint64_t end_ns = clock_ns() + WAIT_NS; *calls == 0 && clock_ns() < end_ns;) {
        uv_run(front.loop, UV_RUN_NOWAIT);
        usleep(200);
    }
    EXPECT(*calls == 1);
}

static void turns(int n)
{
    for (; n > 0; n--)
        uv_run(front.loop, UV_RUN_NOWAIT);
}

/* The answer; valid until the next. */
static struct got *question(enum ask_what what, const char *tenant, const char *id,
                            const char *payload)
{
    static struct got g;

    g = (struct got){.fd = -1};
    guard_ask(&front, what, tenant, id, payload, strlen(payload), on_done, &g);
    run_until(&g.calls);
    return &g;
}

/* ---- the guard's answers --------------------------------------------------------------------- */

TEST(the_public_key)
{
    uint8_t key[VAULT_PUBLIC_LEN];

    join_both();
    struct got *g = question(ASK_PUBLIC, NULL, NULL, "");
    vault_key_public(guard.key, key);
    EXPECT(g->r == 0 && g->len == sizeof(key) && memcmp(g->payload, key, sizeof(key)) == 0);
}

TEST(the_certificate_of_a_sandbox)
{
    join_both();
    struct got *g = question(ASK_CA, TENANT_A, SANDBOX, "{\"names\":[\"a.test\",\"*.B.test.\"]}");
    json_t *v = json_loads(g->payload, 0, NULL);
    const char *pem = json_string_value(json_object_get(v, "pem"));
    const char *hash = json_string_value(json_object_get(v, "hash"));

    EXPECT(g->r == 0);
    EXPECT(pem && strstr(pem, "-----BEGIN CERTIFICATE-----"));
    EXPECT(hash && strlen(hash) == 8);
    json_decref(v);
}

TEST(certificates_that_are_refused)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "{\"names\":[]}",
                                      "{\"names\":\"a.test\"}",
                                      "{\"names\":[7]}",
                                      "{\"names\":[\"\"]}",
                                      "{\"names\":[\"a b\"]}",
                                      "{\"names\":[\"*.\"]}",
                                      "{\"names\":[\"*\"]}",
                                      "{\"names\":[\"10.0.0.1\"]}",
                                      "{\"names\":[\"a.test\"],\"names\":[]}",
                                      "{\"names\":[\"a.test\\u0000b\"]}"};

    join_both();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct got *g = question(ASK_CA, TENANT_A, SANDBOX, bad[i]);
        if (g->r != -EINVAL)
            printf("# %s: %d\n", bad[i], g->r);
        EXPECT(g->r == -EINVAL && g->len > 0);
    }
    EXPECT(question(ASK_CA, TENANT_A, "", "{\"names\":[\"a.test\"]}")->r == -EINVAL);
    EXPECT(question(ASK_CA, TENANT_A, "../x", "{\"names\":[\"a.test\"]}")->r == -EINVAL);
}

/* What ASK_AUDIT has found. */
static json_t *records(const char *tenant, const char *filter)
{
    struct got *g = question(ASK_AUDIT, tenant, NULL, filter);
    AUTO(free_p) char *text = NULL;
    json_t *v = NULL;

    EXPECT(g->r == 0 && g->fd >= 0);
    if (g->fd >= 0 && lseek(g->fd, 0, SEEK_SET) == 0 &&
        fd_read_all(g->fd, 8u << 20, &text, NULL) == 0)
        v = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    close_p(&g->fd);
    EXPECT(json_is_array(json_object_get(v, "records")));
    return v;
}

static size_t count_records(const char *tenant, const char *filter)
{
    json_t *v = records(tenant, filter);
    size_t n = json_array_size(json_object_get(v, "records"));

    json_decref(v);
    return n;
}

static void record(const char *tenant, const char *id, const char *payload)
{
    guard_ask(&front, ASK_RECORD, tenant, id, payload, strlen(payload), NULL, NULL);
    turns(3);
}

TEST(what_the_front_puts_on_record_is_found)
{
    join_both();
    size_t before = count_records(TENANT_A, "{}"), others = count_records(TENANT_B, "{}");
    record(TENANT_A, SANDBOX, "{\"kind\":\"secret\",\"name\":\"k\",\"detail\":\"made\"}");
    record(TENANT_A, "", "{\"kind\":\"sanitise\",\"verdict\":\"report\",\"detail\":\"email 3\"}");
    record(TENANT_B, SANDBOX,
           "{\"kind\":\"policy\",\"rule\":\"allow a.test\",\"verdict\":\"allow\"}");
    EXPECT(count_records(TENANT_A, "{}") == before + 2);
    EXPECT(count_records(TENANT_B, "{}") == others + 1);
    EXPECT(count_records(TENANT_B, "{\"kind\":\"policy\",\"sandbox\":\"" SANDBOX "\"}") == 1);

    json_t *v = records(TENANT_A, "{\"limit\":1}");
    const json_t *first = json_array_get(json_object_get(v, "records"), 0);
    EXPECT(json_is_integer(json_object_get(v, "next")));
    EXPECT_STR(json_string_value(json_object_get(first, "kind")), "sanitise");
    EXPECT(!json_object_get(first, "sandbox"));
    EXPECT_STR(json_string_value(json_object_get(first, "tenant")), TENANT_A);
    json_decref(v);
}

TEST(the_front_cannot_put_anything_else_on_record)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"kind\":\"flow\"}",
                                      "{\"kind\":\"head\"}",
                                      "{\"kind\":7}",
                                      "{\"kind\":\"secret\",\"tenant\":\"" TENANT_B "\"}",
                                      "{\"kind\":\"secret\",\"verdict\":\"perhaps\"}",
                                      "{\"kind\":\"secret\",\"name\":[]}",
                                      "{\"kind\":\"secret\",\"name\":\"a\\u0000b\"}",
                                      "{\"kind\":\"secret\",\"more\":1}",
                                      "{\"kind\":\"secret\",\"kind\":\"secret\"}"};
    char long_one[400];

    join_both();
    size_t a = count_records(TENANT_A, "{}"), b = count_records(TENANT_B, "{}");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        record(TENANT_A, SANDBOX, bad[i]);
    snprintf(long_one, sizeof(long_one), "{\"kind\":\"secret\",\"name\":\"%0300d\"}", 7);
    record(TENANT_A, SANDBOX, long_one);
    record("nobody", SANDBOX, "{\"kind\":\"secret\"}");
    record("", SANDBOX, "{\"kind\":\"secret\"}");
    record(TENANT_A, "x", "{\"kind\":\"secret\"}");
    EXPECT(count_records(TENANT_A, "{}") == a && count_records(TENANT_B, "{}") == b);
}

TEST(pages)
{
    char filter[64];
    size_t seen = 0;
    json_t *v;

    join_both();
    for (int i = 0; i < 25; i++)
        record(TENANT_B, SANDBOX, "{\"kind\":\"secret\",\"name\":\"paged\"}");
    json_int_t before = 0;
    do {
        snprintf(filter, sizeof(filter), "{\"limit\":10,\"name\":\"paged\",\"before\":%lld}",
                 (long long)before);
        v = records(TENANT_B, filter);
        seen += json_array_size(json_object_get(v, "records"));
        before = json_integer_value(json_object_get(v, "next"));
        json_decref(v);
    } while (before > 0 && seen < 100);
    EXPECT(seen == 25);
}

TEST(filters_that_are_refused)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"x\":1}",
                                      "{\"tenant\":\"" TENANT_B "\"}",
                                      "{\"kind\":1}",
                                      "{\"kind\":\"\"}",
                                      "{\"kind\":\"a\\\"b\"}",
                                      "{\"limit\":0}",
                                      "{\"limit\":1001}",
                                      "{\"limit\":-1}",
                                      "{\"limit\":1.5}",
                                      "{\"from\":\"x\"}",
                                      "{\"sandbox\":\"x\"}",
                                      "{\"before\":-1}"};

    join_both();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct got *g = question(ASK_AUDIT, TENANT_A, NULL, bad[i]);
        if (g->r != -EINVAL)
            printf("# %s: %d\n", bad[i], g->r);
        EXPECT(g->r == -EINVAL && g->fd < 0);
    }
    EXPECT(question(ASK_AUDIT, "", NULL, "{}")->r == -EINVAL);
    EXPECT(question(ASK_AUDIT, NULL, NULL, "{}")->r == -EINVAL);
}

/* More than run at once: each gets an answer, some of them to come back later. */
TEST(many_questions_about_the_record)
{
    static struct got all[64];
    int answered = 0, found = 0;

    join_both();
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i] = (struct got){.fd = -1};
        guard_ask(&front, ASK_AUDIT, TENANT_A, NULL, "{}", 2, on_done, &all[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        run_until(&all[i].calls);
        answered += all[i].r == 0 || all[i].r == -EAGAIN;
        found += all[i].r == 0;
        EXPECT((all[i].r == 0) == (all[i].fd >= 0));
        close_p(&all[i].fd);
    }
    EXPECT(answered == (int)ARRAY_SIZE(all) && found >= 4);
}

/* One that asks and asks does not keep another from an answer. */
TEST(each_tenant_gets_an_answer_about_the_record)
{
    static struct got all[65];

    join_both();
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i] = (struct got){.fd = -1};
        guard_ask(&front, ASK_AUDIT, i < 64 ? TENANT_A : TENANT_B, NULL, "{}", 2, on_done, &all[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        run_until(&all[i].calls);
        close_p(&all[i].fd);
    }
    EXPECT(all[64].r == 0);
}

/* ---- the front's side ------------------------------------------------------------------------ */

TEST(without_a_guard_the_answer_is_at_once)
{
    static struct got g;

    guard_set_socket(&front, -1);
    g = (struct got){.fd = -1};
    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g);
    EXPECT(g.calls == 1 && g.r == -EAGAIN);
    guard_ask(&front, ASK_RECORD, NULL, NULL, "{}", 2, NULL, NULL);
}

TEST(what_is_under_way_when_the_guard_goes_is_answered)
{
    static struct got g[3];
    int old[2], other[2];

    make_pair(old);
    guard_set_socket(&front, old[0]);
    memset(g, 0, sizeof(g));
    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g[0]);
    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g[1]);
    turns(2);
    EXPECT(g[0].calls == 0);
    make_pair(other);
    guard_set_socket(&front, other[0]); /* a new one */
    EXPECT(g[0].calls == 1 && g[0].r == -EAGAIN && g[1].calls == 1 && g[1].r == -EAGAIN);

    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g[2]);
    close(other[1]); /* it has ended */
    run_until(&g[2].calls);
    EXPECT(g[2].r == -EAGAIN);
    close(old[1]);
    join_both();
    EXPECT(question(ASK_PUBLIC, NULL, NULL, "")->r == 0);
}

static int n_done, last_r;

static void count_done(void *arg, int r, const void *payload, size_t len, int fd)
{
    (void)arg, (void)payload, (void)len, (void)fd;
    n_done++;
    last_r = r;
}

TEST(a_guard_that_does_not_answer)
{
    static struct got g;
    char big[1024] = "";
    int pair[2];

    make_pair(pair);
    guard_set_socket(&front, pair[0]);
    n_done = 0;
    for (int i = 0; i < GUARD_WAITING_MAX; i++)
        guard_ask(&front, ASK_AUDIT, NULL, NULL, big, sizeof(big), count_done, NULL);
    EXPECT(n_done == 0);
    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, count_done, NULL);
    EXPECT(n_done == 1 && last_r == -EAGAIN); /* one too many */
    uint64_t start = clock_ns();
    while (n_done < GUARD_WAITING_MAX + 1 && clock_ns() - start < WAIT_NS) {
        uv_run(front.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    EXPECT(n_done == GUARD_WAITING_MAX + 1 && last_r == -ETIMEDOUT);
    EXPECT(clock_ns() - start > 4ull * 1000 * 1000 * 1000);

    /* An answer that comes now is nobody's. */
    struct ask late = {.magic = GUARD_MAGIC, .what = ASK_AUDIT, .seq = 1};
    EXPECT(ipc_send(pair[1], &late, sizeof(late), &pair[1], 1) == 0);
    turns(3);
    guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g);
    EXPECT(g.calls == 0);
    close(pair[1]);
    run_until(&g.calls);
    EXPECT(n_done == GUARD_WAITING_MAX + 1);
}

TEST(too_long_a_question)
{
    AUTO(free_p) char *big = xcalloc(1, GUARD_PAYLOAD_MAX + 1);
    static struct got g;

    join_both();
    g = (struct got){.fd = -1};
    guard_ask(&front, ASK_CA, TENANT_A, SANDBOX, big, GUARD_PAYLOAD_MAX + 1, on_done, &g);
    EXPECT(g.calls == 1 && g.r == -E2BIG);
    g = (struct got){.fd = -1};
    guard_ask(&front, ASK_CA, TENANT_A, SANDBOX, big, GUARD_PAYLOAD_MAX, on_done, &g);
    run_until(&g.calls);
    EXPECT(g.r == -EINVAL);
}

/* Either end drops the other for bytes that are no message. */
TEST(what_is_no_message)
{
    struct ask good = {.magic = GUARD_MAGIC, .what = ASK_PUBLIC, .seq = 1};
    struct ask wrong[] = {good, good};
    char short_one[8] = "x", c;

    wrong[0].magic++;
    wrong[1].len = 7;
    for (size_t i = 0; i < ARRAY_SIZE(wrong) + 1; i++) {
        const void *p = i < ARRAY_SIZE(wrong) ? (void *)&wrong[i] : short_one;
        size_t len = i < ARRAY_SIZE(wrong) ? sizeof(wrong[i]) : sizeof(short_one);
        static struct got g;
        int pair[2];

        make_pair(pair);
        front_link_set(&guard, pair[0]);
        EXPECT(ipc_send(pair[1], p, len, NULL, 0) == 0);
        turns(3);
        EXPECT(recv(pair[1], &c, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
        close(pair[1]);

        make_pair(pair);
        guard_set_socket(&front, pair[0]);
        g = (struct got){.fd = -1};
        guard_ask(&front, ASK_PUBLIC, NULL, NULL, NULL, 0, on_done, &g);
        EXPECT(ipc_send(pair[1], p, len, NULL, 0) == 0);
        run_until(&g.calls);
        EXPECT(g.r == -EAGAIN);
        close(pair[1]);
    }
    /* One of an unknown kind is only not answered. */
    struct ask unknown = good;
    int pair[2];
    make_pair(pair);
    front_link_set(&guard, pair[0]);
    unknown.what = 77;
    EXPECT(ipc_send(pair[1], &unknown, sizeof(unknown), NULL, 0) == 0 &&
           ipc_send(pair[1], &good, sizeof(good), NULL, 0) == 0);
    turns(3);
    struct {
        struct ask ask;
        uint8_t key[GUARD_PUBLIC_LEN];
    } answer;
    EXPECT(recv(pair[1], &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer.ask) + 32);
    close(pair[1]);
    turns(3);
    front_link_set(&guard, -1);
    guard_set_socket(&front, -1);
}
