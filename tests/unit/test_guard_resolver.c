/* The resolver against a server on loopback that answers, lies, is late and is silent. */
#include "guard_upstream.h"
#include "guard/resolver_cache.h"
#include "tap.h"

TAP_MAIN

struct bed {
    uv_loop_t loop;
    struct guard *guard;
    struct resolver *resolver;
    struct upstream_rig a, b;
};

static void bed_start(struct bed *t, bool two)
{
    char servers[64];
    struct sg_error e = {0};

    *t = (struct bed){0};
    uv_loop_init(&t->loop);
    t->guard = xcalloc(1, sizeof(*t->guard));
    t->guard->loop = &t->loop;
    rig_v4 = rig_v6 = true;
    rig_start(&t->a, &t->loop);
    rig_start(&t->b, &t->loop);
    if (two)
        snprintf(servers, sizeof(servers), "127.0.0.1:%u,127.0.0.1:%u", t->a.port, t->b.port);
    else
        snprintf(servers, sizeof(servers), "127.0.0.1:%u", t->a.port);
    int r = resolver_new(t->guard, servers, &t->resolver, &e);
    if (r < 0)
        printf("# %s\n", e.message);
    assert(r == 0);
}

static void bed_stop(struct bed *t)
{
    resolver_free(t->resolver);
    rig_stop(&t->a);
    rig_stop(&t->b);
    free(t->guard);
    rig_end_loop(&t->loop);
}

struct outcome {
    bool done;
    unsigned times;
    struct resolved res;
    int r;
    size_t n;
    uint8_t rcode;
    uint8_t first[64];
    uint16_t first_len;
};

static void on_resolved(void *arg, const struct resolved *res)
{
    struct outcome *o = arg;

    o->done = true;
    o->times++;
    o->res = *res;
}

static void on_raw(void *arg, int r, const struct dns_answer *a)
{
    struct outcome *o = arg;

    o->done = true;
    o->times++;
    o->r = r;
    if (!a)
        return;
    o->n = a->n;
    o->rcode = a->rcode;
    if (a->n > 0) {
        o->first_len = a->records[0].len;
        memcpy(o->first, a->records[0].data, o->first_len < 64 ? o->first_len : 64);
    }
}

static struct outcome look(struct bed *t, const char *name, unsigned seconds)
{
    struct outcome o = {0};
    struct resolver_query *q = resolver_lookup(t->resolver, name, on_resolved, &o);

    rig_run(&t->loop, &o.done, seconds);
    EXPECT(o.times == 1);
    if (!o.done && q)
        resolver_cancel(q);
    return o;
}

static bool has(const struct resolved *res, const char *text)
{
    char is[NET_ADDR_TEXT_MAX];

    for (size_t i = 0; i < res->n; i++) {
        net_addr_text(&res->addrs[i], is);
        if (strcmp(is, text) == 0)
            return true;
    }
    return false;
}

TEST(a_name_has_addresses_of_both_families)
{
    struct bed t;

    bed_start(&t, false);
    struct outcome o = look(&t, "ok.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == 2 && !o.res.dropped && o.res.ttl == 77);
    EXPECT(has(&o.res, "93.184.216.34") && has(&o.res, "2606:2800::1"));
    EXPECT(t.a.asked == 2);
    bed_stop(&t);
}

TEST(families_without_a_way_out_are_not_asked_for)
{
    struct bed t;

    bed_start(&t, false);
    rig_v6 = false;
    struct outcome o = look(&t, "ok.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == 1 && has(&o.res, "93.184.216.34") && t.a.asked == 1);
    o = look(&t, "v6only.test", 5);
    EXPECT(o.res.r == -ENODATA);
    rig_v4 = false;
    rig_v6 = true;
    o = look(&t, "v6only.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == 1 && has(&o.res, "2606:2800::1"));
    rig_v6 = false;
    o = look(&t, "ok.test", 5);
    EXPECT(o.res.n == 2);
    bed_stop(&t);
}

TEST(what_there_is_not)
{
    struct bed t;

    bed_start(&t, false);
    EXPECT(look(&t, "nx.test", 5).res.r == -ENOENT);
    EXPECT(look(&t, "empty.test", 5).res.r == -ENODATA);
    EXPECT(look(&t, "servfail.test", 5).res.r == -EIO);
    EXPECT(look(&t, "loop.test", 5).res.r == -EIO);
    bed_stop(&t);
}

TEST(names_that_point_inside_have_no_address)
{
    struct bed t;

    bed_start(&t, false);
    struct outcome o = look(&t, "rebind.test", 5);
    EXPECT(o.res.r == -EACCES && o.res.n == 0 && o.res.dropped);
    o = look(&t, "mixed.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == 2 && o.res.dropped);
    EXPECT(has(&o.res, "93.184.216.34") && has(&o.res, "2606:2800::1"));
    bed_stop(&t);
}

TEST(cnames_lead_to_the_address)
{
    struct bed t;

    bed_start(&t, false);
    struct outcome o = look(&t, "chain.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == 1 && has(&o.res, "93.184.216.35"));
    bed_stop(&t);
}

TEST(lies_before_the_answer_are_passed_over)
{
    struct bed t;

    bed_start(&t, false);
    struct outcome o = look(&t, "between.test", 1);
    EXPECT(o.res.r == 0 && o.res.n == 2 && has(&o.res, "93.184.216.34"));
    EXPECT(t.a.asked == 2);
    bed_stop(&t);
}

TEST(lies_alone_end_at_the_deadline)
{
    struct bed t;
    uint64_t begin = clock_ns();

    bed_start(&t, false);
    struct outcome o = look(&t, "lies.test", 8);
    uint64_t took = clock_ns() - begin;
    EXPECT(o.res.r == -ETIMEDOUT && o.res.n == 0);
    EXPECT(took > 4500000000ull && took < 7000000000ull);
    EXPECT(t.a.asked == 8); /* each family four times, from another port each */
    /* It is remembered for a while. */
    EXPECT(look(&t, "lies.test", 1).res.r == -ETIMEDOUT && t.a.asked == 8);
    bed_stop(&t);
}

TEST(each_question_has_its_own_port_id_and_case)
{
    struct bed t;
    unsigned same_port = 0, same_id = 0, same_case = 0, wrong = 0;
    struct outcome o = {0};
    char name[128];

    bed_start(&t, false);
    rig_v6 = false;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "ok-%02d-abcdefghijklmnopqrstuvwxyz.test", i);
        o.done = false;
        resolver_ask(t.resolver, name, DNS_A, on_raw, &o);
        rig_run(&t.loop, &o.done, 5);
        wrong += o.r != 0 || strcasecmp(t.a.names[i], name) != 0;
    }
    for (int i = 1; i < 40; i++) {
        same_port += t.a.ports[i] == t.a.ports[i - 1];
        same_id += t.a.ids[i] == t.a.ids[i - 1];
        same_case += strcmp(t.a.names[i] + 6, t.a.names[i - 1] + 6) == 0;
    }
    EXPECT(wrong == 0 && same_port < 3 && same_id < 3 && same_case == 0);
    bed_stop(&t);
}

TEST(the_next_server_is_asked_when_one_is_silent)
{
    struct bed t;

    bed_start(&t, true);
    t.a.silent = true;
    struct outcome o = look(&t, "ok.test", 4);
    EXPECT(o.res.r == 0 && o.res.n == 2 && t.a.asked == 2 && t.b.asked == 2);
    /* And first from then on. */
    o = look(&t, "ok2.test", 1);
    EXPECT(o.res.r == 0 && t.a.asked == 2 && t.b.asked == 4);
    bed_stop(&t);
}

TEST(the_next_server_is_asked_at_once_when_one_refuses)
{
    struct bed t;

    bed_start(&t, true);
    watch_drop(&t.a.udp_watch);
    close(t.a.udp);
    t.a.udp = -1;
    struct outcome o = look(&t, "ok.test", 1);
    EXPECT(o.res.r == 0 && o.res.n == 2 && t.b.asked == 2);
    watch_drop(&t.b.udp_watch);
    close(t.b.udp);
    t.b.udp = -1;
    o = look(&t, "other.test", 1);
    EXPECT(o.res.r == -EIO);
    bed_stop(&t);
}

/* The first server answers after the second was asked, which is silent. */
TEST(a_late_answer_counts)
{
    struct bed t;
    struct outcome o = {0};
    uint64_t end = clock_ns() + 4000000000ull;
    uv_timer_t *tick;

    bed_start(&t, true);
    t.b.silent = true;
    tick = alarm_new(&t.loop, NULL);
    resolver_ask(t.resolver, "held.test", DNS_A, on_raw, &o);
    while (t.b.asked == 0 && clock_ns() < end) {
        alarm_set(tick, 50000000, rig_tick);
        uv_run(&t.loop, UV_RUN_ONCE);
    }
    EXPECT(t.b.asked == 1 && !o.done);
    rig_send(&t.a, &t.a.held_to, &t.a.held);
    rig_run(&t.loop, &o.done, 1);
    EXPECT(o.done && o.r == 0 && o.n == 1);
    alarm_drop(&tick);
    bed_stop(&t);
}

TEST(a_cut_answer_is_had_over_tcp)
{
    struct bed t;

    bed_start(&t, false);
    rig_v6 = false;
    struct outcome o = look(&t, "cut.test", 5);
    EXPECT(o.res.r == 0 && o.res.n == RESOLVER_ADDRS && t.a.asked_tcp == 1);
    EXPECT(has(&o.res, "93.184.0.0"));
    o = look(&t, "cutcut.test", 5);
    EXPECT(o.res.r == -EIO && t.a.asked_tcp == 2);
    bed_stop(&t);
}

TEST(the_cache_answers_at_once)
{
    struct bed t;
    struct outcome o = {0};

    bed_start(&t, false);
    look(&t, "ok.test", 5);
    EXPECT(resolver_lookup(t.resolver, "ok.test", on_resolved, &o) == NULL);
    EXPECT(o.done && o.res.n == 2 && o.res.ttl <= 77 && o.res.ttl >= 75 && t.a.asked == 2);
    look(&t, "nx.test", 5);
    o.done = false;
    EXPECT(resolver_lookup(t.resolver, "nx.test", on_resolved, &o) == NULL);
    EXPECT(o.done && o.res.r == -ENOENT && t.a.asked == 4);
    bed_stop(&t);
}

TEST(equal_questions_are_one)
{
    struct bed t;
    struct outcome o[5] = {{0}};
    struct resolver_query *q[5];

    bed_start(&t, false);
    rig_v6 = false;
    for (int i = 0; i < 4; i++)
        q[i] = resolver_lookup(t.resolver, "ok.test", on_resolved, &o[i]);
    q[4] = resolver_ask(t.resolver, "ok.test", DNS_A, on_raw, &o[4]);
    EXPECT(q[0] && q[4]);
    resolver_cancel(q[1]);
    rig_run(&t.loop, &o[4].done, 5);
    rig_run(&t.loop, &o[0].done, 5);
    EXPECT(t.a.asked == 1);
    EXPECT(o[0].times == 1 && o[1].times == 0 && o[2].times == 1 && o[3].times == 1);
    EXPECT(o[4].times == 1 && o[4].n == 1);
    bed_stop(&t);
}

TEST(a_cancelled_question_says_nothing)
{
    struct bed t;
    struct outcome o = {0}, later = {0};
    struct resolver_query *q;

    bed_start(&t, false);
    q = resolver_lookup(t.resolver, "ok.test", on_resolved, &o);
    resolver_cancel(q);
    rig_run(&t.loop, &later.done, 1);
    EXPECT(o.times == 0);
    bed_stop(&t);
}

/* One who waits makes another go while both are told. */
static struct resolver_query *victim;

static void on_resolved_cancel(void *arg, const struct resolved *res)
{
    on_resolved(arg, res);
    if (victim)
        resolver_cancel(victim);
    victim = NULL;
}

TEST(questions_may_be_cancelled_while_others_are_told)
{
    struct bed t;
    struct outcome o[3] = {{0}};

    bed_start(&t, false);
    rig_v6 = false;
    victim = resolver_lookup(t.resolver, "ok.test", on_resolved, &o[0]);
    resolver_lookup(t.resolver, "ok.test", on_resolved_cancel, &o[1]);
    rig_run(&t.loop, &o[1].done, 5);
    EXPECT(o[0].times == 0 && o[1].times == 1 && !victim);
    bed_stop(&t);
}

TEST(a_resolver_that_is_replaced_ends_its_questions)
{
    struct bed t;
    struct outcome o = {0};

    bed_start(&t, false);
    EXPECT(resolver_lookup(t.resolver, "ok.test", on_resolved, &o) != NULL);
    resolver_free(t.resolver);
    t.resolver = NULL;
    rig_run(&t.loop, &o.done, 5);
    EXPECT(o.times == 1 && o.res.n == 2);
    bed_stop(&t);
}

TEST(one_family_does_not_wait_long_for_the_other)
{
    struct bed t;

    bed_start(&t, false);
    struct outcome o = look(&t, "slow6.test", 3);
    EXPECT(o.res.r == 0 && o.res.n == 1 && has(&o.res, "93.184.216.34"));
    bed_stop(&t);
}

TEST(any_other_question)
{
    struct bed t;
    struct outcome o = {0};

    bed_start(&t, false);
    resolver_ask(t.resolver, "ok.test", DNS_TXT, on_raw, &o);
    rig_run(&t.loop, &o.done, 5);
    EXPECT(o.r == 0 && o.n == 1 && memcmp(o.first, "\5hello", 6) == 0);
    o = (struct outcome){0};
    resolver_ask(t.resolver, "ok.test", DNS_HTTPS, on_raw, &o);
    rig_run(&t.loop, &o.done, 5);
    EXPECT(o.r == 0 && o.n == 1 && o.first_len == 10);
    EXPECT(memcmp(o.first, "\0\1\0\0\1\0\3\2h2", 10) == 0);
    o = (struct outcome){0};
    resolver_ask(t.resolver, "nx.test", DNS_MX, on_raw, &o);
    rig_run(&t.loop, &o.done, 5);
    EXPECT(o.r == 0 && o.n == 0 && o.rcode == DNS_NXDOMAIN);
    bed_stop(&t);
}

/* Names that nobody answers do not keep others out. */
TEST(questions_under_way_are_bounded)
{
    struct bed t;
    static struct outcome o[1100];
    char name[32];
    unsigned failed = 0, waiting = 0;

    bed_start(&t, false);
    t.a.silent = true;
    memset(o, 0, sizeof(o));
    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "silent-%d.test", i);
        if (!resolver_ask(t.resolver, name, DNS_A, on_raw, &o[i]))
            failed++;
    }
    EXPECT(failed == 1100 - 1024);
    /* Those that have waited longest give up, and there is room again. */
    rig_run(&t.loop, &o[200].done, 1);
    EXPECT(o[0].done && o[200].done && o[0].r == -ETIMEDOUT);
    t.a.silent = false;
    struct outcome ok = look(&t, "ok.test", 3);
    EXPECT(ok.res.r == 0);
    for (int i = 0; i < 1100; i++)
        waiting += !o[i].done;
    EXPECT(waiting > 500);
    for (int i = 0; i < 1100; i++)
        rig_run(&t.loop, &o[i].done, 8);
    bed_stop(&t);
}

TEST(servers_are_read_strictly)
{
    static const char *const bad[] = {
        "",          "nine",          "1.2.3",
        "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:",
        "[::1",      "[::1]53",       "[::1]:x",
        "a.test:53", "1.2.3.4,,x",    "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1",
        "fe80::1%lo"};
    static const char *const good[] = {"1.2.3.4",  "1.2.3.4:5353",     "::1", "[::1]",
                                       "[::1]:53", "1.2.3.4, 2606::1", "auto"};
    struct guard *g = xcalloc(1, sizeof(*g));

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct resolver *r = NULL;
        struct sg_error e = {0};

        EXPECT(resolver_new(g, bad[i], &r, &e) == -EINVAL && !r && strstr(e.message, "egress_dns"));
    }
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct resolver *r = NULL;

        EXPECT(resolver_new(g, good[i], &r, NULL) == 0);
        resolver_free(r);
    }
    free(g);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static struct dns_answer answer_of(uint32_t ttl)
{
    struct dns_answer a = {.n = 1};

    a.records[0] = (struct dns_record){.type = DNS_A, .ttl = ttl, .len = 4, .data = a.store};
    snprintf(a.records[0].name, sizeof(a.records[0].name), "a.test");
    return a;
}

TEST(the_cache_keeps_times_and_forgets)
{
    struct resolver_cache *c = resolver_cache_new();
    struct dns_answer a = answer_of(3600), got;
    uint64_t s = 1000000000ull;
    int r = -1;

    a.records[0].data = a.store;
    resolver_cache_put(c, "a.test", DNS_A, 0, &a, 0);
    EXPECT(resolver_cache_get(c, "a.test", DNS_A, 100 * s, &r, &got) && r == 0);
    EXPECT(got.n == 1 && got.records[0].ttl == 200);
    EXPECT(!resolver_cache_get(c, "a.test", DNS_AAAA, 0, &r, &got));
    EXPECT(!resolver_cache_get(c, "a.test", DNS_A, 300 * s, &r, &got));
    a.records[0].ttl = 0;
    resolver_cache_put(c, "a.test", DNS_A, 0, &a, 0);
    EXPECT(resolver_cache_get(c, "a.test", DNS_A, 4 * s, &r, &got));
    EXPECT(!resolver_cache_get(c, "a.test", DNS_A, 5 * s, &r, &got));
    resolver_cache_put(c, "a.test", DNS_A, -EIO, NULL, 0);
    EXPECT(resolver_cache_get(c, "a.test", DNS_A, 4 * s, &r, &got) && r == -EIO && got.n == 0);
    EXPECT(!resolver_cache_get(c, "a.test", DNS_A, 5 * s, &r, &got));
    resolver_cache_free(c);
    resolver_cache_free(NULL);
}

TEST(the_cache_is_bounded_and_keeps_what_is_used)
{
    struct resolver_cache *c = resolver_cache_new();
    struct dns_answer a = answer_of(300), got;
    char name[64];
    unsigned there = 0;
    int r;

    a.records[0].data = a.store;
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        resolver_cache_put(c, name, DNS_A, 0, &a, 0);
        EXPECT(resolver_cache_get(c, "n0.test", DNS_A, 1, &r, &got));
    }
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        there += resolver_cache_get(c, name, DNS_A, 1, &r, &got);
    }
    EXPECT(there == RESOLVER_CACHE_ENTRIES);
    /* Large ones push out more. */
    a.n = 2;
    a.records[0].type = a.records[1].type = DNS_TXT;
    a.records[0].len = a.records[1].len = DNS_RDATA_MAX;
    a.records[1].ttl = 300;
    a.records[1].data = a.store + DNS_RDATA_MAX;
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "t%d.test", i);
        resolver_cache_put(c, name, DNS_TXT, 0, &a, 0);
    }
    there = 0;
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "t%d.test", i);
        there += resolver_cache_get(c, name, DNS_TXT, 1, &r, &got);
    }
    EXPECT(there > 500 && there <= RESOLVER_CACHE_BYTES / (2 * DNS_RDATA_MAX));
    resolver_cache_free(c);
}
