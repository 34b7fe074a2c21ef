/* What a sandbox gets for its questions: by its policy, within its budgets, and what is on record.
 */
#include "guard_upstream.h"
#include "guard/dns.h"
#include "guard/dns_budget.h"
#include "guard/learned.h"
#include "tap.h"

TAP_MAIN

/* ---- the guard around it --------------------------------------------------------------------- */

struct told {
    bool allowed;
    char rule[128], name[256], detail[64];
};
static struct told told[512];
static unsigned n_told;

void record_decision(struct sandbox *s, const struct decision *d)
{
    struct told *t = &told[n_told < ARRAY_SIZE(told) ? n_told : 0];

    (void)s;
    EXPECT(strcmp(d->kind, "dns") == 0 && strcmp(d->protocol, "dns") == 0);
    t->allowed = d->allowed;
    snprintf(t->rule, sizeof(t->rule), "%s", d->rule);
    snprintf(t->name, sizeof(t->name), "%s", d->name ? d->name : "");
    snprintf(t->detail, sizeof(t->detail), "%s", d->detail ? d->detail : "");
    n_told++;
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    s->refs++;
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    s->refs--;
}

static unsigned count_told(bool allowed, const char *rule, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_told && i < ARRAY_SIZE(told); i++)
        n += told[i].allowed == allowed && strstr(told[i].rule, rule) &&
             (!name || strcmp(told[i].name, name) == 0);
    return n;
}

struct bed {
    uv_loop_t loop;
    struct guard *guard;
    struct upstream_rig up;
    struct sandbox *s;
};

static struct policy *parse(const char *document)
{
    struct policy *p = NULL;
    struct sg_error e = {0};

    if (policy_parse(document, strlen(document), NULL, &p, &e) < 0)
        printf("# %s\n", e.message);
    assert(p);
    return p;
}

static void bed_start(struct bed *t, const char *document)
{
    char servers[64];

    *t = (struct bed){0};
    uv_loop_init(&t->loop);
    rig_v4 = rig_v6 = true;
    rig_start(&t->up, &t->loop);
    t->guard = xcalloc(1, sizeof(*t->guard));
    t->guard->loop = &t->loop;
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", t->up.port);
    int r = resolver_new(t->guard, servers, &t->guard->resolver, NULL);
    assert(r == 0);
    t->s = xcalloc(1, sizeof(*t->s));
    t->s->guard = t->guard;
    t->s->refs = 1;
    t->s->policy = parse(document);
    n_told = 0;
}

static void bed_stop(struct bed *t)
{
    EXPECT(t->s->refs == 1 && t->s->dns.pending == 0);
    policy_unref(t->s->policy);
    fakes_free(t->s->fakes);
    learned_free(t->s->learned);
    free(t->s);
    resolver_free(t->guard->resolver);
    deny_set_free(t->guard->deny);
    free(t->guard);
    rig_stop(&t->up);
    rig_end_loop(&t->loop);
}

struct answered {
    bool done;
    unsigned times;
    uint8_t p[DNS_MESSAGE_MAX];
    size_t len;
    int rcode;
    unsigned n;
};

static void on_reply(void *arg, const uint8_t *p, size_t len)
{
    struct answered *a = arg;

    a->done = true;
    a->times++;
    memcpy(a->p, p, len);
    a->len = len;
    a->rcode = p[3] & 0xf;
    a->n = dns_get16(p + 6);
}

static struct answered a; /* of the last question */

static struct dns_pending *serve(struct bed *t, const char *name, unsigned type, bool tcp)
{
    AUTO(strbuf_done) struct strbuf q = {0};

    strbuf_init(&q, 512);
    dns_query_write(0x1234, name, (uint16_t)type, &q);
    memset(&a, 0, sizeof(a));
    return dns_serve(t->s, (const uint8_t *)q.buf, q.len, tcp, on_reply, &a);
}

static int ask(struct bed *t, const char *name, unsigned type)
{
    struct dns_pending *d;

    t->s->dns.asked = 0; /* the budget has tests of its own */
    d = serve(t, name, type, false);
    EXPECT(!d == a.done);
    rig_run(&t->loop, &a.done, 7);
    EXPECT(a.times == 1 && a.len >= 12 && dns_get16(a.p) == 0x1234);
    return a.times == 1 ? a.rcode : -1;
}

/* The data of the last answer's n-th record, which has the question's name. */
static const uint8_t *data(unsigned n, unsigned *ret_ttl, unsigned *ret_len)
{
    size_t at = 12;

    while (a.p[at])
        at += 1u + a.p[at];
    at += 5;
    for (;; n--) {
        EXPECT(dns_get16(a.p + at) == 0xc00c);
        *ret_ttl = dns_get32(a.p + at + 6);
        *ret_len = dns_get16(a.p + at + 10);
        if (n == 0)
            return a.p + at + 12;
        at += 12u + *ret_len;
    }
}

static bool is_v4(unsigned n, const uint8_t ip[4])
{
    unsigned ttl, len;
    const uint8_t *p = data(n, &ttl, &len);

    return len == 4 && memcmp(p, ip, 4) == 0;
}

#define OPEN "{\"default\":\"allow\"}"
#define LIST "{\"default\":\"deny\",\"allow\":[\"ok.test\",\"rebind.test\",\"*.wild.test\"]}"
#define FAKES                                                                   \
    "{\"default\":\"deny\",\"fakeIp\":true,\"allow\":[\"ok.test\",\"nx.test\"," \
    "\"rebind.test\",\"v6only.test\",\"chain.test\",\"93.184.216.35\"]}"

/* ---- the policy ------------------------------------------------------------------------------ */

TEST(an_open_policy_answers)
{
    struct bed t;
    unsigned ttl, len;

    bed_start(&t, OPEN);
    EXPECT(ask(&t, "Ok.TEST", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(is_v4(0, V4(93, 184, 216, 34)));
    data(0, &ttl, &len);
    EXPECT(ttl == 77);
    EXPECT(memcmp(a.p + 12, "\2Ok\4TEST", 8) == 0);
    EXPECT(ask(&t, "ok.test", DNS_AAAA) == DNS_NOERROR && a.n == 1);
    EXPECT(ask(&t, "nx.test", DNS_A) == DNS_NXDOMAIN && a.n == 0);
    EXPECT(ask(&t, "empty.test", DNS_A) == DNS_NOERROR && a.n == 0);
    EXPECT(ask(&t, "servfail.test", DNS_A) == DNS_SERVFAIL);
    EXPECT(ask(&t, "chain.test", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(is_v4(0, V4(93, 184, 216, 35)));
    EXPECT(count_told(true, "allow", "ok.test") == 1);
    bed_stop(&t);
}

TEST(a_list_answers_what_is_on_it_and_asks_for_nothing_else)
{
    struct bed t;

    bed_start(&t, LIST);
    EXPECT(ask(&t, "evil.test", DNS_A) == DNS_REFUSED);
    EXPECT(ask(&t, "secret.data.evil.test", DNS_TXT) == DNS_REFUSED);
    EXPECT(ask(&t, "wild.test", DNS_A) == DNS_REFUSED);
    EXPECT(ask(&t, "xok.test", DNS_A) == DNS_REFUSED);
    EXPECT(ask(&t, "ok.test.evil.test", DNS_A) == DNS_REFUSED);
    EXPECT(t.up.asked == 0);
    EXPECT(count_told(false, "", "evil.test") == 1);
    EXPECT(count_told(false, "", "secret.data.evil.test") == 1);
    EXPECT(ask(&t, "ok.test", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(ask(&t, "x.wild.test", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(count_told(true, "allow ok.test", "ok.test") == 1);
    bed_stop(&t);
}

TEST(the_operators_list_is_stronger)
{
    struct bed t;

    bed_start(&t, LIST);
    EXPECT(deny_set_new("*.wild.test", &t.guard->deny, NULL) == 0);
    EXPECT(ask(&t, "x.wild.test", DNS_A) == DNS_REFUSED && t.up.asked == 0);
    EXPECT(count_told(false, "server denies", "x.wild.test") == 1);
    bed_stop(&t);
}

TEST(names_that_point_inside_have_no_answer)
{
    struct bed t;

    bed_start(&t, LIST);
    EXPECT(ask(&t, "rebind.test", DNS_A) == DNS_NOERROR && a.n == 0);
    EXPECT(ask(&t, "rebind.test", DNS_AAAA) == DNS_NOERROR && a.n == 0);
    EXPECT(count_told(false, "", "rebind.test") > 0);
    bed_stop(&t);
    bed_start(&t, OPEN);
    EXPECT(ask(&t, "mixed.test", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(is_v4(0, V4(93, 184, 216, 34)));
    bed_stop(&t);
}

TEST(types_are_a_short_list)
{
    static const uint16_t refused[] = {0, 3, 10, 13, 24, 43, 46, 48, 99, 251, 252, 253, 255, 65280};
    struct bed t;
    unsigned ttl, len;

    bed_start(&t, OPEN);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        EXPECT(ask(&t, "ok.test", refused[i]) == DNS_REFUSED);
    EXPECT(t.up.asked == 0 && count_told(false, "question type", "ok.test") == 1);
    EXPECT(ask(&t, "ok.test", DNS_TXT) == DNS_NOERROR && a.n == 1);
    EXPECT(ask(&t, "ok.test", DNS_HTTPS) == DNS_NOERROR && a.n == 1);
    EXPECT(memcmp(data(0, &ttl, &len), "\0\1\0\0\1\0\3\2h2", 10) == 0 && len == 10);
    bed_stop(&t);
}

TEST(what_is_no_name_is_refused)
{
    static const char *const names[] = {"",          "1.2.3.4",  "a*.test",
                                        "*.ok.test", "a/b.test", "a@b.test"};
    struct bed t;

    bed_start(&t, OPEN);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        EXPECT(ask(&t, names[i], DNS_A) == DNS_REFUSED);
    EXPECT(t.up.asked == 0 && count_told(false, "not an internet name", NULL) == 6);
    bed_stop(&t);
}

TEST(malformed_questions_are_answered_or_dropped)
{
    struct bed t;
    uint8_t q[64] = {0x12, 0x34, 1, 0, 0, 2};

    bed_start(&t, OPEN);
    memset(&a, 0, sizeof(a));
    EXPECT(dns_serve(t.s, q, 5, false, on_reply, &a) == NULL && a.times == 0);
    EXPECT(dns_serve(t.s, q, 12, false, on_reply, &a) == NULL);
    EXPECT(a.times == 1 && a.rcode == DNS_FORMERR && a.len == 12);
    q[2] = 5 << 3;
    EXPECT(dns_serve(t.s, q, 12, false, on_reply, &a) == NULL);
    EXPECT(a.times == 2 && a.rcode == DNS_NOTIMP && a.len == 12);
    bed_stop(&t);
}

TEST(a_policy_that_changes_meanwhile_counts)
{
    struct bed t;
    struct policy *old;

    bed_start(&t, OPEN);
    EXPECT(serve(&t, "held.test", DNS_A, false) != NULL);
    for (int i = 0; i < 100 && t.up.asked == 0; i++)
        uv_run(&t.loop, UV_RUN_ONCE);
    EXPECT(t.up.asked == 1 && !a.done);
    old = t.s->policy;
    t.s->policy = parse(LIST);
    policy_unref(old);
    rig_send(&t.up, &t.up.held_to, &t.up.held);
    rig_run(&t.loop, &a.done, 5);
    EXPECT(a.rcode == DNS_REFUSED && a.n == 0);
    bed_stop(&t);
}

TEST(a_question_can_be_given_up)
{
    struct bed t;
    struct dns_pending *d;
    bool never = false;

    bed_start(&t, OPEN);
    d = serve(&t, "ok.test", DNS_A, false);
    EXPECT(d != NULL && t.s->refs == 2);
    dns_cancel(d);
    rig_run(&t.loop, &never, 1);
    EXPECT(a.times == 0);
    bed_stop(&t);
}

TEST(many_addresses_are_cut_for_datagrams_alone)
{
    struct bed t;

    bed_start(&t, OPEN);
    EXPECT(ask(&t, "cut.test", DNS_A) == DNS_NOERROR);
    EXPECT(a.n == RESOLVER_ADDRS && a.len <= DNS_UDP_MAX && !(a.p[2] & 2));
    serve(&t, "cut.test", DNS_A, true);
    EXPECT(a.times == 1 && a.n == RESOLVER_ADDRS);
    bed_stop(&t);
}

/* ---- budgets --------------------------------------------------------------------------------- */

TEST(random_labels_are_counted)
{
    struct bed t;
    char name[64];
    unsigned answered = 0, refused = 0;

    bed_start(&t, LIST);
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "nx-%08x.wild.test", (unsigned)i * 2654435761u);
        int rcode = ask(&t, name, DNS_A);
        answered += rcode != DNS_REFUSED;
        refused += rcode == DNS_REFUSED;
    }
    EXPECT(answered == DNS_NAMES_PER_MINUTE && refused == 400);
    EXPECT(t.up.asked == DNS_NAMES_PER_MINUTE);
    EXPECT(count_told(false, "dns budget", NULL) == 1);
    /* Names that are on the list as they are, and those that were asked for, still work. */
    EXPECT(ask(&t, "ok.test", DNS_A) == DNS_NOERROR);
    snprintf(name, sizeof(name), "nx-%08x.wild.test", 0u);
    EXPECT(ask(&t, name, DNS_AAAA) != DNS_REFUSED);
    bed_stop(&t);
}

TEST(questions_of_a_second_are_counted)
{
    struct bed t;
    unsigned refused = 0, n = 0;

    bed_start(&t, LIST);
    EXPECT(ask(&t, "ok.test", DNS_A) == DNS_NOERROR);
    /* Within one second, whenever it begins. */
    for (int tries = 0; tries < 5 && n < 200; tries++) {
        uint64_t second = 0;

        refused = 0;
        for (n = 0; n < 200 && (n == 0 || t.s->dns.second == second); n++) {
            serve(&t, "ok.test", DNS_A, false);
            EXPECT(a.times == 1);
            refused += a.rcode == DNS_REFUSED;
            second = n == 0 ? t.s->dns.second : second;
        }
        n = t.s->dns.second == second ? n : 0;
    }
    EXPECT(refused >= 200 - DNS_PER_SECOND);
    EXPECT(count_told(false, "dns budget", NULL) == 1);
    EXPECT_STR(told[n_told - 1].detail, "questions per second");
    bed_stop(&t);
}

TEST(budgets_come_back)
{
    struct dns_budget b = {0};
    uint64_t s = 1000000000ull, now = 100 * s;
    char name[32];

    for (int i = 0; i < DNS_PER_SECOND; i++)
        EXPECT(dns_budget_question(&b, now));
    EXPECT(!dns_budget_question(&b, now + s - 1));
    EXPECT(dns_budget_question(&b, now + s));
    /* In every minute, not only in those of the clock. */
    for (int i = 0; i < DNS_NAMES_PER_MINUTE; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        EXPECT(dns_budget_name(&b, name, now + (i < 100 ? 0 : 50 * s)));
    }
    EXPECT(!dns_budget_name(&b, "more.test", now + 59 * s));
    EXPECT(dns_budget_name(&b, "n0.test", now + 59 * s));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "m%d.test", i);
        EXPECT(dns_budget_name(&b, name, now + 62 * s));
    }
    EXPECT(!dns_budget_name(&b, "more.test", now + 62 * s));
}

TEST(the_record_has_each_name_once_in_a_minute)
{
    struct dns_budget b = {0};
    uint64_t s = 1000000000ull, now = 100 * s;

    EXPECT(dns_budget_tells(&b, "allow a.test", "a.test", now));
    EXPECT(!dns_budget_tells(&b, "allow a.test", "a.test", now + 59 * s));
    EXPECT(dns_budget_tells(&b, "default deny", "a.test", now));
    EXPECT(dns_budget_tells(&b, "allow a.test", "a.test", now + 61 * s));
}

TEST(questions_at_once_are_bounded)
{
    struct bed t;
    static struct dns_pending *d[DNS_PENDING_MAX];
    char name[64];
    unsigned pending = 0;

    bed_start(&t, OPEN);
    for (int i = 0; i < DNS_PENDING_MAX; i++) {
        snprintf(name, sizeof(name), "silent-%d.test", i);
        t.s->dns.asked = 0;
        d[i] = serve(&t, name, DNS_A, false);
        pending += d[i] != NULL;
    }
    EXPECT(pending == DNS_PENDING_MAX);
    t.s->dns.asked = 0;
    EXPECT(serve(&t, "one.more.test", DNS_A, false) == NULL && a.rcode == DNS_SERVFAIL);
    for (int i = 0; i < DNS_PENDING_MAX; i++)
        dns_cancel(d[i]);
    bed_stop(&t);
}

/* ---- addresses that stand for names ---------------------------------------------------------- */

static bool answer_stands_for(struct bed *t, const char *name)
{
    unsigned ttl, len;
    const uint8_t *p = data(0, &ttl, &len);
    struct net_addr x;

    net_addr_v4(p, 0, &x);
    const char *is = fake_name(t->s, &x);
    return a.n == 1 && len == 4 && ttl <= 60 && fake_is(&x) && is && strcmp(is, name) == 0;
}

TEST(a_name_on_the_list_gets_an_address_that_stands_for_it)
{
    struct bed t;

    bed_start(&t, FAKES);
    EXPECT(ask(&t, "ok.test", DNS_A) == DNS_NOERROR && answer_stands_for(&t, "ok.test"));
    EXPECT(ask(&t, "ok.test", DNS_AAAA) == DNS_NOERROR && a.n == 0);
    EXPECT(ask(&t, "v6only.test", DNS_A) == DNS_NOERROR && answer_stands_for(&t, "v6only.test"));
    EXPECT(ask(&t, "ok.test", DNS_HTTPS) == DNS_NOERROR && a.n == 1 && a.len < 80);
    bed_stop(&t);
}

TEST(what_cannot_be_reached_gets_none)
{
    struct bed t;

    bed_start(&t, FAKES);
    EXPECT(ask(&t, "nx.test", DNS_A) == DNS_NXDOMAIN);
    EXPECT(ask(&t, "rebind.test", DNS_A) == DNS_NOERROR && a.n == 0);
    EXPECT(ask(&t, "evil.test", DNS_A) == DNS_REFUSED);
    EXPECT(t.s->fakes == NULL);
    bed_stop(&t);
}

TEST(an_address_that_is_allowed_by_itself_stays)
{
    struct bed t;

    bed_start(&t, FAKES);
    EXPECT(ask(&t, "chain.test", DNS_A) == DNS_NOERROR && a.n == 1);
    EXPECT(is_v4(0, V4(93, 184, 216, 35)));
    bed_stop(&t);
    bed_start(&t, "{\"default\":\"allow\",\"fakeIp\":true,\"deny\":[\"93.184.216.34\"],"
                  "\"allow\":[\"ok.test\"]}");
    EXPECT(ask(&t, "chain.test", DNS_A) == DNS_NOERROR && is_v4(0, V4(93, 184, 216, 35)));
    EXPECT(ask(&t, "ok.test", DNS_A) == DNS_NOERROR && answer_stands_for(&t, "ok.test"));
    /* Only its address is denied, and the name is not allowed: it stays out of reach. */
    EXPECT(ask(&t, "okay.test", DNS_A) == DNS_NOERROR && is_v4(0, V4(93, 184, 216, 34)));
    bed_stop(&t);
}

TEST(the_name_of_an_address_that_stands_for_one)
{
    struct bed t;
    unsigned ttl, len;
    char name[64];

    bed_start(&t, FAKES);
    ask(&t, "ok.test", DNS_A);
    const uint8_t *p = data(0, &ttl, &len);
    snprintf(name, sizeof(name), "%u.%u.%u.%u.in-addr.arpa", p[3], p[2], p[1], p[0]);
    unsigned asked = t.up.asked;
    EXPECT(ask(&t, name, DNS_PTR) == DNS_NOERROR && a.n == 1);
    EXPECT(memcmp(data(0, &ttl, &len), "\2ok\4test", 9) == 0 && len == 9);
    EXPECT(ask(&t, "254.255.19.198.in-addr.arpa", DNS_PTR) == DNS_NXDOMAIN);
    EXPECT(ask(&t, "34.216.184.93.in-addr.arpa", DNS_PTR) == DNS_REFUSED);
    EXPECT(t.up.asked == asked);
    bed_stop(&t);
}

TEST(names_of_inner_addresses_are_not_asked_for)
{
    struct bed t;

    bed_start(&t, OPEN);
    EXPECT(ask(&t, "9.9.9.10.in-addr.arpa", DNS_PTR) == DNS_NXDOMAIN);
    EXPECT(ask(&t, "1.0.0.127.in-addr.arpa", DNS_PTR) == DNS_NXDOMAIN);
    EXPECT(ask(&t, "254.169.254.169.in-addr.arpa", DNS_TXT) == DNS_NXDOMAIN);
    EXPECT(t.up.asked == 0);
    EXPECT(ask(&t, "34.216.184.93.in-addr.arpa", DNS_PTR) == DNS_NOERROR && a.n == 1);
    EXPECT(t.up.asked == 1);
    bed_stop(&t);
}
