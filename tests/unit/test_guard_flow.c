/* Connections of a sandbox, from accept to end: what is dialled, what goes there, and what a change
 * of policy does in each state. The sandbox's listener is one on loopback; who dials and who
 * resolves is this test. */
#include "lib/base/fd.h"
#include "guard/dial.h"
#include "guard/dns.h"
#include "guard/dns_tcp.h"
#include "guard/flow_impl.h"
#include "lib/uv/handle.h"
#include "guard_ends.h"

TAP_MAIN

/* ---- what the guard's other files would do --------------------------------------------------- */

struct dial {
    dial_done done;
    void *arg;
    struct net_addr to;
};

static struct {
    struct dial *dial; /* under way */
    unsigned n_dialled, n_cancelled;
    struct net_addr last;
    char records[1024]; /* "allow|deny rule [detail]\n" */
} seen;

struct dial *dial_new(struct guard *g, const struct net_addr *addrs, size_t n, dial_done done,
                      void *arg)
{
    (void)g, (void)n;
    assert(!seen.dial);
    seen.dial = xcalloc(1, sizeof(*seen.dial));
    *seen.dial = (struct dial){done, arg, addrs[0]};
    seen.last = addrs[0];
    seen.n_dialled++;
    return seen.dial;
}

void dial_cancel(struct dial *d)
{
    assert(d == seen.dial);
    free(d);
    seen.dial = NULL;
    seen.n_cancelled++;
}

const char *guard_refuses(const struct guard *g, const struct net_addr *a)
{
    return deny_set_address(g->deny, a);
}

int dial_udp(struct guard *g, const struct net_addr *a, const char **ret_why)
{
    (void)g, (void)a, (void)ret_why;
    return -ENOSYS;
}

/* Every name is at 127.7.7.7. */
struct resolver_query *resolver_lookup(struct resolver *r, const char *name, resolver_done done,
                                       void *arg)
{
    struct resolved res = {.n = 1};

    (void)r, (void)name;
    net_addr_parse("127.7.7.7", &res.addrs[0]);
    done(arg, &res);
    return NULL;
}

void resolver_cancel(struct resolver_query *q)
{
    (void)q;
}

/* 127.9.9.9 stands for a.test. */
bool fake_is(const struct net_addr *a)
{
    return a->ip[13] == 9;
}

const char *fake_name(struct sandbox *s, const struct net_addr *a)
{
    (void)s, (void)a;
    return "a.test";
}

struct dns_tcp *dns_tcp_new(struct sandbox *s, int fd, void (*done)(void *arg, const char *error),
                            void *arg)
{
    (void)s, (void)fd, (void)done, (void)arg;
    abort();
}

void dns_tcp_free(struct dns_tcp *d)
{
    (void)d;
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

void record_decision(struct sandbox *s, const struct decision *d)
{
    size_t at = strlen(seen.records);

    (void)s;
    snprintf(seen.records + at, sizeof(seen.records) - at, "%s %s [%s]\n",
             d->allowed ? "allow" : "deny", d->rule ? d->rule : "-", d->detail ? d->detail : "");
}

/* ---- the bed --------------------------------------------------------------------------------- */

#define OPEN  "{\"default\":\"allow\"}"
#define NAMES "{\"default\":\"deny\",\"allow\":[\"a.test\"]}"
#define NONE  "{\"default\":\"deny\"}"

struct bed {
    uv_loop_t loop;
    struct guard *guard;
    struct sandbox sandbox;
    uint16_t port;
    int client, server; /* the sandbox's end, and the end of whoever was dialled */
    char got[4096];     /* by the end that was read last */
    size_t len;
    int end;
};

static struct policy *policy_of(const char *text)
{
    struct policy *p = NULL;
    struct sg_error e = {0};

    if (policy_parse(text, strlen(text), NULL, &p, &e) < 0)
        printf("# %s\n", e.message);
    assert(p);
    return p;
}

static void bed_start(struct bed *t, const char *policy)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);

    memset(&seen, 0, sizeof(seen));
    *t = (struct bed){.client = -1, .server = -1};
    uv_loop_init(&t->loop);
    t->guard = xcalloc(1, sizeof(*t->guard));
    t->guard->loop = &t->loop;
    t->guard->max_pairs = 100;
    t->sandbox = (struct sandbox){.guard = t->guard,
                                  .path = PATH_SK_LOOKUP,
                                  .policy = policy_of(policy),
                                  .refs = 1,
                                  .tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
    assert(bind(t->sandbox.tcp, (struct sockaddr *)&a, sizeof(a)) == 0 &&
           listen(t->sandbox.tcp, 8) == 0 &&
           getsockname(t->sandbox.tcp, (struct sockaddr *)&a, &len) == 0);
    t->port = ntohs(a.sin_port);
}

/* A connection of the sandbox to there, which is accepted. */
static bool go_to(struct bed *t, const char *address)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(t->port)};

    inet_pton(AF_INET, address, &a.sin_addr);
    t->client = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(t->client, (struct sockaddr *)&a, sizeof(a)) == 0);
    fcntl(t->client, F_SETFL, O_NONBLOCK);
    return flows_accept(&t->sandbox);
}

/* Whoever was dialled answers. */
static void answer_dial(struct bed *t)
{
    struct dial *d = seen.dial;
    int pair[2];

    assert(d);
    seen.dial = NULL;
    tcp_pair(pair);
    t->server = pair[0];
    d->done(d->arg, pair[1], &d->to, NULL);
    free(d);
}

static void say(struct bed *t, int fd, const char *text)
{
    (void)t;
    EXPECT(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

struct wait {
    struct bed *t;
    int fd;
    const char *want; /* NULL: the end */
};

static bool has_come(void *arg)
{
    struct wait *w = arg;

    w->t->end = take_bytes(w->fd, w->t->got, sizeof(w->t->got) - 1, &w->t->len);
    w->t->got[w->t->len] = '\0';
    return w->t->end <= 0 || (w->want && strstr(w->t->got, w->want));
}

/* What an end reads until there is `want`, or the end. */
static bool hears(struct bed *t, int fd, const char *want)
{
    t->len = 0;
    return turns_until(&t->loop, has_come, &(struct wait){t, fd, want}) &&
           (!want || strstr(t->got, want));
}

static void change(struct bed *t, const char *policy)
{
    struct policy *old = t->sandbox.policy;

    t->sandbox.policy = policy_of(policy);
    flows_judge_again(&t->sandbox);
    policy_unref(old);
}

static void bed_stop(struct bed *t)
{
    flows_reset_all(&t->sandbox, "over");
    EXPECT(t->sandbox.refs == 1 && t->sandbox.quota.flows == 0 && t->guard->n_flows == 0);
    EXPECT(!seen.dial);
    close_p(&t->client);
    close_p(&t->server);
    close(t->sandbox.tcp);
    policy_unref(t->sandbox.policy);
    deny_set_free(t->guard->deny);
    uv_run(&t->loop, UV_RUN_NOWAIT);
    EXPECT(uv_loop_close(&t->loop) == 0);
    free(t->guard);
}

#define GET(host) "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"

/* ---- cases ----------------------------------------------------------------------------------- */

TEST(an_address_that_is_allowed)
{
    struct bed t;

    bed_start(&t, OPEN);
    EXPECT(go_to(&t, "127.1.1.1"));
    EXPECT(seen.n_dialled == 1 && seen.last.ip[13] == 1 && seen.last.port == t.port);
    answer_dial(&t);
    say(&t, t.client, "question");
    EXPECT(hears(&t, t.server, "question"));
    say(&t, t.server, "answer");
    EXPECT(hears(&t, t.client, "answer"));
    close(t.client);
    t.client = -1;
    EXPECT(hears(&t, t.server, NULL) && t.end == 0);
    bed_stop(&t);
    EXPECT_STR(seen.records, "allow default allow [over]\n");
}

TEST(an_address_that_is_not)
{
    struct bed t;

    bed_start(&t, NONE);
    go_to(&t, "127.1.1.1");
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    EXPECT(seen.n_dialled == 0);
    bed_stop(&t);
    EXPECT_STR(seen.records, "deny default deny []\n");
}

TEST(an_address_that_stands_for_a_name)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    EXPECT(seen.n_dialled == 1 && seen.last.ip[13] == 7); /* before a word was said */
    answer_dial(&t);
    say(&t, t.client, "\x03\x04 no name in it");
    EXPECT(hears(&t, t.server, "no name in it"));
    bed_stop(&t);
}

TEST(such_a_server_may_speak_first)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    EXPECT(is_quiet(&t.loop, 20));
    say(&t, t.server, "220 welcome\r\n");
    EXPECT(hears(&t, t.client, "welcome"));
    say(&t, t.client, "EHLO x\r\n");
    EXPECT(hears(&t, t.server, "EHLO"));
    bed_stop(&t);
}

TEST(such_an_address_opens_no_other_name)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    say(&t, t.client, GET("evil.test"));
    EXPECT(hears(&t, t.client, "403 Forbidden"));
    EXPECT(hears(&t, t.server, NULL) && t.end == 0 && t.len == 0);
    bed_stop(&t);
    EXPECT_STR(seen.records, "deny the name is not the one that the fake address belongs to []\n");
}

TEST(not_even_bit_by_bit)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    say(&t, t.client, "GET / HT");
    EXPECT(is_quiet(&t.loop, 20));
    say(&t, t.server, "what?"); /* which does not make it pass either */
    EXPECT(is_quiet(&t.loop, 20));
    say(&t, t.client, "TP/1.1\r\nHost: evil.test\r\n\r\n");
    EXPECT(hears(&t, t.client, "403 Forbidden"));
    EXPECT(hears(&t, t.server, NULL) && t.len == 0);
    bed_stop(&t);
}

TEST(what_ends_before_a_word_is_passed_on)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    shutdown(t.client, SHUT_WR);
    EXPECT(hears(&t, t.server, NULL) && t.end == 0);
    say(&t, t.server, "12:00");
    EXPECT(hears(&t, t.client, "12:00"));
    bed_stop(&t);
}

TEST(a_name_is_waited_for)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.1.1.1");
    EXPECT(seen.n_dialled == 0);
    say(&t, t.client, GET("a.test"));
    for (int i = 0; i < 100 && !seen.dial; i++)
        uv_run(&t.loop, UV_RUN_NOWAIT);
    EXPECT(seen.n_dialled == 1 && seen.last.ip[13] == 7);
    bed_stop(&t);
    EXPECT(seen.n_cancelled == 1);
}

TEST(the_operator_denies_a_name_that_comes_late)
{
    struct bed t;
    struct sg_error e;

    bed_start(&t, OPEN);
    EXPECT(deny_set_new("evil.test", &t.guard->deny, &e) == 0);
    go_to(&t, "127.1.1.1");
    for (uint64_t until = clock_ns() + ENDS_NS; !seen.dial && clock_ns() < until;)
        uv_run(&t.loop, UV_RUN_NOWAIT); /* silent for a while, and so it is dialled */
    answer_dial(&t);
    say(&t, t.client, GET("evil.test"));
    EXPECT(hears(&t, t.client, "403 Forbidden"));
    EXPECT(hears(&t, t.server, NULL) && t.len == 0);
    bed_stop(&t);
    EXPECT_STR(seen.records, "deny server denies evil.test []\n");
}

TEST(another_policy_while_it_is_dialled)
{
    struct bed t;

    bed_start(&t, OPEN);
    go_to(&t, "127.1.1.1");
    change(&t, "{\"default\":\"deny\",\"allow\":[\"127.1.1.1\"]}");
    EXPECT(seen.n_dialled == 2 && seen.n_cancelled == 1); /* it begins anew */
    change(&t, NONE);
    EXPECT(seen.n_cancelled == 2 && !seen.dial);
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    bed_stop(&t);
    EXPECT_STR(seen.records, "deny default deny []\n");
}

TEST(another_policy_while_it_is_open)
{
    struct bed t;

    bed_start(&t, OPEN);
    go_to(&t, "127.1.1.1");
    answer_dial(&t);
    change(&t, "{\"default\":\"deny\",\"allow\":[\"127.1.0.0/16\"]}");
    say(&t, t.client, "still here");
    EXPECT(hears(&t, t.server, "still here"));
    change(&t, NONE);
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    bed_stop(&t);
    EXPECT_STR(seen.records, "allow allow 127.1.0.0/16 [policy changed]\n");
}

/* Where the name was found to be is in a network that is denied now. */
TEST(another_policy_for_where_a_name_is)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    say(&t, t.client, "\x01hello");
    EXPECT(hears(&t, t.server, "hello"));
    change(&t, "{\"default\":\"allow\",\"deny\":[\"10.0.0.0/8\"]}");
    say(&t, t.client, "again");
    EXPECT(hears(&t, t.server, "again"));
    change(&t, "{\"default\":\"allow\",\"deny\":[\"127.7.0.0/16\"]}");
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    bed_stop(&t);
}

TEST(another_policy_while_nothing_was_said)
{
    struct bed t;

    bed_start(&t, NAMES);
    go_to(&t, "127.9.9.9");
    answer_dial(&t);
    change(&t, "{\"default\":\"deny\",\"allow\":[\"*.test\"]}");
    say(&t, t.client, "\x01hello");
    EXPECT(hears(&t, t.server, "hello"));
    change(&t, "{\"default\":\"deny\",\"allow\":[\"b.test\"]}");
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    bed_stop(&t);
}

TEST(more_than_it_may_have)
{
    struct bed t;

    bed_start(&t, "{\"default\":\"allow\",\"flows\":1}");
    EXPECT(go_to(&t, "127.1.1.1"));
    answer_dial(&t);
    int first = t.client;
    EXPECT(!go_to(&t, "127.1.1.1")); /* whoever listens is to wait */
    EXPECT(hears(&t, t.client, NULL) && t.end == -ECONNRESET);
    say(&t, first, "I am");
    EXPECT(hears(&t, t.server, "I am"));
    close(first);
    bed_stop(&t);
}
