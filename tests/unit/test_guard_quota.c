/* What a sandbox may use of the network. */
#include "lib/base/clock.h"
#include "guard/flow.h"
#include "guard/policy.h"
#include "tap.h"

TAP_MAIN

#define SECOND 1000000000ull

static uint64_t now_ns = 1000 * SECOND;
static char told[512];

uint64_t clock_ns(void)
{
    return now_ns;
}

void record_decision(struct sandbox *s, const struct decision *d)
{
    (void)s;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s: %s\n", d->kind, d->rule);
}

static struct guard guard;

static void begin(struct sandbox *s, const char *limits)
{
    char text[256];
    struct sg_error e;

    guard = (struct guard){.max_pairs = 1000};
    told[0] = '\0';
    *s = (struct sandbox){.guard = &guard};
    snprintf(text, sizeof(text), "{\"default\":\"allow\",%s}", limits);
    EXPECT(policy_parse(text, strlen(text), NULL, &s->policy, &e) == 0);
}

static unsigned taken(struct sandbox *s, unsigned tries)
{
    unsigned n = 0;

    while (tries-- > 0)
        n += quota_take_flow(s);
    return n;
}

TEST(connections_at_a_time)
{
    struct sandbox s;

    begin(&s, "\"flows\":3");
    EXPECT(taken(&s, 10) == 3 && guard.n_flows == 3);
    EXPECT(!quota_take_flow(&s) && s.quota.told_flows);
    quota_give_flow(&s);
    EXPECT(taken(&s, 10) == 1);
    EXPECT_STR(told, "quota: connections at a time\n");
    policy_unref(s.policy);
}

TEST(new_ones_in_a_second)
{
    struct sandbox s;

    begin(&s, "\"flowRate\":10");
    EXPECT(taken(&s, 100) == 11); /* a second's worth, and the one of this moment */
    EXPECT(!quota_take_flow(&s) && s.quota.told_rate);
    now_ns += SECOND / 2;
    EXPECT(taken(&s, 100) == 5);
    now_ns += 100 * SECOND; /* what is not used is not saved */
    EXPECT(taken(&s, 100) == 11);
    policy_unref(s.policy);
}

TEST(bytes_are_for_life)
{
    struct sandbox s;

    begin(&s, "\"bytes\":1000");
    EXPECT(quota_count(&s, 600) && quota_count(&s, 400));
    EXPECT(!quota_take_flow(&s) && s.quota.told_bytes);
    EXPECT(!quota_count(&s, 1));
    now_ns += 1000 * SECOND;
    EXPECT(!quota_count(&s, 0));
    EXPECT(guard.n_flows == 0);
    policy_unref(s.policy);
}

TEST(no_limit_is_none)
{
    struct sandbox s;

    begin(&s, "\"flows\":0,\"flowRate\":0,\"bytes\":0");
    EXPECT(taken(&s, 800) == 800);
    EXPECT(quota_count(&s, UINT64_MAX / 2));
    EXPECT_STR(told, "");
    policy_unref(s.policy);
}

TEST(descriptors_are_for_all)
{
    struct sandbox s;

    begin(&s, "\"flows\":0");
    guard.n_sandboxes = 990;
    EXPECT(taken(&s, 100) == 10);
    EXPECT(!quota_take_flow(&s) && s.quota.told_guard);
    EXPECT_STR(told, "quota: connections of all sandboxes at a time\n");
    policy_unref(s.policy);
}

TEST(connections_leave_room_for_new_sandboxes)
{
    struct sandbox s;

    begin(&s, "\"flows\":0");
    EXPECT(taken(&s, 1000) == 875);
    EXPECT(!quota_take_flow(&s) && s.quota.told_guard);
    policy_unref(s.policy);
}

TEST(a_flood_is_told_once_a_minute)
{
    struct sandbox s;

    begin(&s, "\"flows\":1");
    for (int i = 0; i < 180; i++) {
        taken(&s, 100);
        now_ns += SECOND;
    }
    EXPECT(strlen(told) == 3 * strlen("quota: connections at a time\n"));
    policy_unref(s.policy);
}

/* One tenant with many sandboxes leaves room for the next. */
TEST(each_tenant_has_a_share_of_the_connections)
{
    struct sandbox noisy[3], quiet;
    struct guard g = {.max_pairs = 1000};
    unsigned n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(noisy); i++) {
        begin(&noisy[i], "\"flows\":0");
        noisy[i].guard = &g;
        snprintf(noisy[i].tenant, sizeof(noisy[i].tenant), "noisy000000000000000");
    }
    begin(&quiet, "\"flows\":0");
    quiet.guard = &g;
    snprintf(quiet.tenant, sizeof(quiet.tenant), "quiet000000000000000");
    for (size_t i = 0; i < 3000; i++)
        n += quota_take_flow(&noisy[i % 3]);
    EXPECT(n == 800);
    EXPECT(strstr(told, "connections of the tenant's sandboxes at a time") != NULL);
    EXPECT(taken(&quiet, 50) == 50);
    /* What it gives back it can have again, as far as others leave it. */
    for (size_t i = 0; i < 300; i++)
        quota_give_flow(&noisy[i % 3]);
    EXPECT(taken(&noisy[0], 1000) == 260);
    for (size_t i = 0; i < ARRAY_SIZE(noisy); i++)
        policy_unref(noisy[i].policy);
    policy_unref(quiet.policy);
    LIST_EACH(struct account, a, &g.accounts, link)
        free(a);
}
