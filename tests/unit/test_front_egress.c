/* From E2B's network fields to what the guard decides: the document that the front writes, read by
 * the guard's own policy. */
#include <string.h>

#include "lib/base/fd.h"
#include "front/e2b/network.h"
#include "front/core/egress.h"
#include "guard/policy.h"
#include "tap.h"

static struct front front;

__attribute__((constructor)) static void set_up(void)
{
    settings_init(&front.settings);
}

/* The policy of a sandbox with this network, as JSON, or NULL if nothing goes out. */
static struct policy *policy_for(const char *network, int internet, bool own)
{
    AUTO(close_p) int fd = -1;
    AUTO(free_p) char *text = NULL;
    struct policy *p = NULL;
    struct sandbox_spec s;
    struct sg_error e = {0};
    size_t len = 0;
    json_t *given = network ? json_loads(network, 0, NULL) : NULL;

    sandbox_spec_init(&s);
    snprintf(s.tenant, sizeof(s.tenant), "tttttttttttttttttttt");
    s.allow_internet = internet;
    EXPECT(!given || network_parse(given, own, &s.network, &e) == 0);
    if (own)
        network_close(&s.allow_internet, s.network);
    EXPECT(egress_document(&front, "ssssssssssssssssssss", &s, &fd, &e) == 0);
    json_decref(given);
    sandbox_spec_done(&s);
    if (fd < 0)
        return NULL;
    EXPECT(lseek(fd, 0, SEEK_SET) == 0);
    EXPECT(fd_read_all(fd, 1 << 20, &text, &len) == 0);
    EXPECT(policy_parse(text, len, NULL, &p, &e) == 0);
    return p;
}

static enum verdict by_address(const struct policy *p, const char *address)
{
    struct judgement j = {0}, fallback = {0};
    struct net_addr a = {0};

    EXPECT(net_addr_parse(address, &a) == 0);
    policy_judge_address(p, &a, &j, &fallback);
    return j.verdict == VERDICT_NAME ? fallback.verdict : j.verdict;
}

static enum verdict by_name(const struct policy *p, const char *name)
{
    struct judgement j = {0};

    policy_judge_name(p, name, NULL, &j);
    return j.verdict;
}

TEST(nothing_said)
{
    struct policy *p = policy_for(NULL, -1, false);

    EXPECT(p && by_address(p, "93.184.216.34") == VERDICT_ALLOW);
    EXPECT(p && by_address(p, "2606:2800::1") == VERDICT_ALLOW);
    policy_unref(p);
    front.settings.egress_e2b_default = EGRESS_BLOCK;
    EXPECT(policy_for(NULL, -1, false) == NULL);
    EXPECT(policy_for("{}", -1, false) == NULL);
    p = policy_for(NULL, 1, false);
    EXPECT(p && by_address(p, "93.184.216.34") == VERDICT_ALLOW);
    policy_unref(p);
    settings_init(&front.settings);
}

TEST(no_internet)
{
    EXPECT(policy_for(NULL, 0, false) == NULL);
    EXPECT(policy_for("{\"denyOut\":[\"0.0.0.0/0\"]}", -1, false) == NULL);
    EXPECT(policy_for("{\"denyOut\":[\"0.0.0.0/0\"]}", 1, false) == NULL);
    /* What is allowed is still allowed. */
    struct policy *p = policy_for("{\"allowOut\":[\"93.184.216.34\"]}", 0, false);
    EXPECT(p && by_address(p, "93.184.216.34") == VERDICT_ALLOW);
    EXPECT(p && by_address(p, "93.184.216.35") == VERDICT_DENY);
    EXPECT(p && by_address(p, "2606:2800::1") == VERDICT_DENY);
    policy_unref(p);
}

TEST(allow_beats_deny)
{
    struct policy *p = policy_for(
        "{\"allowOut\":[\"93.184.0.0/16\"],\"denyOut\":[\"93.184.216.0/24\",\"198.41.0.0/16\"]}",
        -1, false);

    EXPECT(by_address(p, "93.184.216.34") == VERDICT_ALLOW);
    EXPECT(by_address(p, "198.41.0.4") == VERDICT_DENY);
    EXPECT(by_address(p, "8.8.8.8") == VERDICT_ALLOW);
    policy_unref(p);
}

TEST(names)
{
    struct policy *p = policy_for(
        "{\"allowOut\":[\"a.test\",\"*.b.test\"],\"denyOut\":[\"0.0.0.0/0\"]}", -1, false);

    EXPECT(by_name(p, "a.test") == VERDICT_ALLOW);
    EXPECT(by_name(p, "x.b.test") == VERDICT_ALLOW);
    EXPECT(by_name(p, "b.test") == VERDICT_DENY);
    EXPECT(by_address(p, "93.184.216.34") == VERDICT_DENY);
    EXPECT(p->fake_ip);
    policy_unref(p);
    front.settings.egress_fake_ip = FAKE_NO;
    p = policy_for("{\"allowOut\":[\"a.test\"],\"denyOut\":[\"0.0.0.0/0\"]}", -1, false);
    EXPECT(!p->fake_ip);
    policy_unref(p);
    settings_init(&front.settings);
}

TEST(all_traffic_allowed_again)
{
    struct policy *p =
        policy_for("{\"allowOut\":[\"0.0.0.0/0\"],\"denyOut\":[\"0.0.0.0/0\"]}", -1, false);

    EXPECT(p && by_address(p, "8.8.8.8") == VERDICT_ALLOW);
    policy_unref(p);
}

TEST(own_surface)
{
    /* Contexts: nothing goes out that is not named. */
    EXPECT(policy_for(NULL, -1, true) == NULL);
    struct policy *p = policy_for("{\"allowOut\":[\"a.test\"]}", -1, true);
    EXPECT(p && by_name(p, "a.test") == VERDICT_ALLOW && by_name(p, "c.test") == VERDICT_DENY);
    policy_unref(p);
    p = policy_for("{\"denyOut\":[\"*.ads.test\"]}", -1, true);
    EXPECT(p && by_name(p, "x.ads.test") == VERDICT_DENY && by_name(p, "c.test") == VERDICT_ALLOW);
    policy_unref(p);
}

TEST(rules)
{
    struct policy *p = policy_for(
        "{\"rules\":{\"api.test\":[{\"transform\":{\"headers\":{\"X-Key\":\"v\"}}}]}}", -1, false);
    const struct policy_rule *rule = policy_rule(p, "api.test");

    EXPECT(policy_inspects(p, "api.test") && !policy_inspects(p, "a.test"));
    EXPECT(rule && rule->n_headers == 1);
    EXPECT_STR(rule->headers[0].value, "v");
    policy_unref(p);
    /* A rule does not allow what is denied. */
    EXPECT(policy_for("{\"denyOut\":[\"0.0.0.0/0\"],\"rules\":{\"api.test\":[]}}", -1, false) ==
           NULL);
}

TEST(proxy)
{
    struct policy *p = policy_for("{\"egressProxy\":{\"address\":\"proxy.test:1080\","
                                  "\"username\":\"me\",\"password\":\"word\"}}",
                                  -1, false);

    EXPECT(p->proxy && p->proxy->port == 1080);
    EXPECT(p->proxy->password.len == 4);
    policy_unref(p);
}

TAP_MAIN
