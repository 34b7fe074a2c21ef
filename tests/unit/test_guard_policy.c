/* Policies: what a document lets out, what it does to requests, and which documents are refused. */
#include <openssl/sha.h>

#include "wire/policy_document.h"
#include "wire/guard.h"
#include "guard/policy.h"
#include "tap.h"

static struct policy *policy(const char *document)
{
    struct policy *p = NULL;
    struct sg_error e = {0};

    if (policy_parse(document, strlen(document), NULL, &p, &e) < 0) {
        printf("# refused: %s\n", e.message);
        tap_failures++;
        exit(1);
    }
    return p;
}

static struct net_addr addr(const char *text)
{
    struct net_addr a = {0};

    EXPECT(net_addr_parse(text, &a) == 0);
    return a;
}

static const char *const verdicts[] = {"deny", "allow", "name"};

/* "allow: default allow", "name, else deny: default deny". */
static const char *by_address(const struct policy *p, const char *address)
{
    static char text[400];
    struct net_addr a = addr(address);
    struct judgement j, fallback;

    policy_judge_address(p, &a, &j, &fallback);
    if (j.verdict == VERDICT_NAME)
        snprintf(text, sizeof(text), "name, else %s: %s", verdicts[fallback.verdict],
                 fallback.rule);
    else
        snprintf(text, sizeof(text), "%s: %s", verdicts[j.verdict], j.rule);
    EXPECT(fallback.verdict != VERDICT_NAME);
    return text;
}

static const char *by_name(const struct policy *p, const char *name, const char *address)
{
    static char text[400];
    struct net_addr a = address ? addr(address) : (struct net_addr){0};
    struct judgement j, q;

    policy_judge_name(p, name, address ? &a : NULL, &j);
    snprintf(text, sizeof(text), "%s: %s", verdicts[j.verdict], j.rule);
    if (!address) {
        policy_judge_name(p, name, NULL, &q);
        EXPECT(q.verdict == j.verdict && strcmp(q.rule, j.rule) == 0);
    }
    return text;
}

/* ---- what goes out --------------------------------------------------------------------------- */

TEST(open)
{
    struct policy *p = policy("{\"default\":\"allow\"}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "allow: default allow");
    EXPECT_STR(by_address(p, "2606:2800::1"), "allow: default allow");
    EXPECT_STR(by_name(p, "a.test", NULL), "allow: default allow");
    policy_unref(p);
}

TEST(nothing)
{
    struct policy *p = policy("{\"default\":\"deny\",\"allow\":[],\"deny\":[]}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "deny: default deny");
    EXPECT_STR(by_address(p, "2606:2800::1"), "deny: default deny");
    EXPECT_STR(by_name(p, "a.test", NULL), "deny: default deny");
    EXPECT_STR(by_name(p, "a.test", "93.184.216.34"), "deny: default deny");
    policy_unref(p);
}

/* E2B's ALL_TRAFFIC: IPv6 and names are in it. */
TEST(all_traffic)
{
    struct policy *p = policy("{\"default\":\"allow\",\"deny\":[\"0.0.0.0/0\"]}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "deny: deny 0.0.0.0/0");
    EXPECT_STR(by_address(p, "2606:2800::1"), "deny: deny 0.0.0.0/0");
    EXPECT_STR(by_name(p, "a.test", NULL), "deny: deny 0.0.0.0/0");
    policy_unref(p);

    p = policy("{\"default\":\"deny\",\"allow\":[\"0.0.0.0/0\"],\"deny\":[\"93.184.216.34\","
               "\"a.test\"]}");
    EXPECT_STR(by_address(p, "93.184.216.34"), "allow: allow 0.0.0.0/0");
    EXPECT_STR(by_address(p, "2606:2800::1"), "allow: allow 0.0.0.0/0");
    EXPECT_STR(by_name(p, "a.test", NULL), "allow: allow 0.0.0.0/0");
    policy_unref(p);
}

TEST(allow_beats_deny_whatever_the_length)
{
    struct policy *p =
        policy("{\"default\":\"allow\",\"allow\":[\"93.0.0.0/8\",\"93.184.0.0/16\",\"2606::/16\"],"
               "\"deny\":[\"93.184.216.34\",\"93.0.0.0/8\",\"94.1.0.0/16\",\"94.1.2.0/24\","
               "\"2606:2800::1\",\"2607::/16\"]}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "allow: allow 93.184.0.0/16");
    EXPECT_STR(by_address(p, "93.1.1.1"), "allow: allow 93.0.0.0/8");
    EXPECT_STR(by_address(p, "94.1.2.3"), "deny: deny 94.1.2.0/24");
    EXPECT_STR(by_address(p, "94.1.3.3"), "deny: deny 94.1.0.0/16");
    EXPECT_STR(by_address(p, "95.1.1.1"), "allow: default allow");
    EXPECT_STR(by_address(p, "2606:2800::1"), "allow: allow 2606::/16");
    EXPECT_STR(by_address(p, "2607::1"), "deny: deny 2607::/16");
    EXPECT_STR(by_address(p, "::ffff:94.1.2.3"), "deny: deny 94.1.2.0/24");
    policy_unref(p);
}

TEST(names_in_a_list)
{
    struct policy *p =
        policy("{\"default\":\"allow\",\"allow\":[\"A.test\",\"*.b.test\",\"93.184.216.0/24\"],"
               "\"deny\":[\"0.0.0.0/0\"]}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "allow: allow 93.184.216.0/24");
    EXPECT_STR(by_address(p, "198.41.0.4"), "name, else deny: deny 0.0.0.0/0");
    EXPECT_STR(by_address(p, "2606:2800::1"), "name, else deny: deny 0.0.0.0/0");
    EXPECT_STR(by_name(p, "a.test", "198.41.0.4"), "allow: allow A.test");
    EXPECT_STR(by_name(p, "a.test", NULL), "allow: allow A.test");
    EXPECT_STR(by_name(p, "x.y.b.test", "198.41.0.4"), "allow: allow *.b.test");
    EXPECT_STR(by_name(p, "b.test", "198.41.0.4"), "deny: deny 0.0.0.0/0");
    EXPECT_STR(by_name(p, "evil.test", "198.41.0.4"), "deny: deny 0.0.0.0/0");
    /* It may go there by its address; its name is not asked for anywhere. */
    EXPECT_STR(by_name(p, "evil.test", "93.184.216.34"), "allow: allow 93.184.216.0/24");
    EXPECT_STR(by_name(p, "evil.test", NULL), "deny: deny 0.0.0.0/0");
    policy_unref(p);
}

TEST(names_that_are_denied)
{
    struct policy *p =
        policy("{\"default\":\"allow\",\"allow\":[\"good.ads.test\",\"93.184.216.34\"],"
               "\"deny\":[\"*.ads.test\",\"ads.test\",\"198.41.0.0/24\"]}");

    EXPECT_STR(by_address(p, "93.184.216.34"), "allow: allow 93.184.216.34");
    EXPECT_STR(by_address(p, "1.2.3.4"), "name, else allow: default allow");
    EXPECT_STR(by_address(p, "198.41.0.4"), "name, else deny: deny 198.41.0.0/24");
    EXPECT_STR(by_name(p, "x.ads.test", "1.2.3.4"), "deny: deny *.ads.test");
    EXPECT_STR(by_name(p, "ads.test", NULL), "deny: deny ads.test");
    EXPECT_STR(by_name(p, "good.ads.test", "1.2.3.4"), "allow: allow good.ads.test");
    EXPECT_STR(by_name(p, "x.ads.test", "93.184.216.34"), "allow: allow 93.184.216.34");
    EXPECT_STR(by_name(p, "other.test", "1.2.3.4"), "allow: default allow");
    /* Found to be in a network that is denied. */
    EXPECT_STR(by_name(p, "other.test", "198.41.0.4"), "deny: deny 198.41.0.0/24");
    EXPECT_STR(by_name(p, "good.ads.test", "198.41.0.4"), "allow: allow good.ads.test");
    policy_unref(p);
}

/* Only where a name could change something is it waited for. */
TEST(when_a_name_is_needed)
{
    static const struct {
        const char *document, *judgement;
    } cases[] = {
        {"{\"default\":\"deny\",\"deny\":[\"a.test\"]}", "deny: default deny"},
        {"{\"default\":\"deny\",\"allow\":[\"a.test\"]}", "name, else deny: default deny"},
        {"{\"default\":\"allow\",\"allow\":[\"a.test\"]}", "allow: default allow"},
        {"{\"default\":\"allow\",\"deny\":[\"a.test\"]}", "name, else allow: default allow"},
        {"{\"default\":\"deny\",\"rules\":[{\"domain\":\"a.test\"}]}", "deny: default deny"},
        {"{\"default\":\"allow\",\"rules\":[{\"domain\":\"a.test\"}]}",
         "name, else allow: default allow"},
        {"{\"default\":\"deny\",\"allow\":[\"1.2.3.4\"],\"rules\":[{\"domain\":\"a.test\"}]}",
         "name, else allow: allow 1.2.3.4"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct policy *p = policy(cases[i].document);

        EXPECT_STR(by_address(p, "1.2.3.4"), cases[i].judgement);
        policy_unref(p);
    }
}

/* Where the operator has a gateway to IPv4, it is no way around what is denied. */
TEST(addresses_that_carry_others)
{
    struct policy *p = policy("{\"default\":\"allow\",\"deny\":[\"93.184.216.34\"]}");

    EXPECT_STR(by_address(p, "64:ff9b::5db8:d822"), "deny: deny 93.184.216.34");
    EXPECT_STR(by_address(p, "2002:5db8:d822::1"), "deny: deny 93.184.216.34");
    EXPECT_STR(by_address(p, "64:ff9b::5db8:d823"), "allow: default allow");
    policy_unref(p);
}

TEST(thousands_of_entries)
{
    enum { N = POLICY_ENTRIES_MAX };
    AUTO(strbuf_done) struct strbuf s = {0};
    char name[64], rule[80];
    struct policy *p;

    strbuf_init(&s, GUARD_DOCUMENT_MAX);
    strbuf_addstr(&s, "{\"default\":\"deny\",\"allow\":[\"10.0.0.0/8\"");
    for (int i = 1; i < N; i++)
        if (i % 4 == 0)
            strbuf_addf(&s, ",\"44.%d.%d.0/24\"", i / 4 / 256, i / 4 % 256);
        else
            strbuf_addf(&s, ",\"%sn%d.test\"", i % 2 ? "*." : "", i);
    strbuf_addstr(&s, "]}");
    EXPECT(!s.truncated);
    p = policy(s.buf);
    for (int i = 1; i < N; i += 7) {
        if (i % 4 == 0) {
            snprintf(name, sizeof(name), "44.%d.%d.9", i / 4 / 256, i / 4 % 256);
            snprintf(rule, sizeof(rule), "allow: allow 44.%d.%d.0/24", i / 4 / 256, i / 4 % 256);
            EXPECT_STR(by_address(p, name), rule);
            continue;
        }
        snprintf(name, sizeof(name), "%sn%d.test", i % 2 ? "x.y." : "", i);
        snprintf(rule, sizeof(rule), "allow: allow %sn%d.test", i % 2 ? "*." : "", i);
        EXPECT_STR(by_name(p, name, NULL), rule);
        snprintf(name, sizeof(name), "xn%d.test", i);
        EXPECT_STR(by_name(p, name, NULL), "deny: default deny");
    }
    policy_unref(p);
}

/* ---- the rest of a document ------------------------------------------------------------------ */

TEST(what_the_command_line_prints_is_read)
{
    static const char *const allow[] = {"a.test", "93.184.216.34", NULL};
    struct egress_document d = {.tenant = "local",
                                .sandbox_id = "abc",
                                .default_deny = true,
                                .fake_ip = true,
                                .allow = allow,
                                .flows = 128,
                                .flow_rate = 100,
                                .bytes = 1ull << 40};
    AUTO(strbuf_done) struct strbuf s = {0};
    unsigned char sum[SHA256_DIGEST_LENGTH];
    char hash[2 * POLICY_HASH_LEN + 1];
    struct policy *p, *same;

    strbuf_init(&s, 64 * 1024);
    egress_document_print(&d, &s);
    p = policy(s.buf);
    EXPECT(p->fake_ip && p->sanitise == SANITISE_OFF && !p->proxy);
    EXPECT(p->quota.flows == 128 && p->quota.flow_rate == 100);
    EXPECT(p->quota.bytes == 1ull << 40);
    EXPECT_STR(by_name(p, "a.test", NULL), "allow: allow a.test");
    SHA256((unsigned char *)s.buf, s.len, sum);
    for (size_t i = 0; i < POLICY_HASH_LEN; i++)
        snprintf(hash + 2 * i, 3, "%02x", sum[i]);
    EXPECT_STR(p->hash, hash);

    /* It lives as long as somebody holds it. */
    same = policy_ref(p);
    policy_unref(p);
    EXPECT_STR(same->hash, hash);
    policy_unref(same);
    policy_unref(NULL);
}

TEST(what_is_not_said)
{
    struct policy *p = policy("{\"default\":\"deny\",\"something\":[{\"new\":1}]}");

    EXPECT(!p->fake_ip && p->sanitise == SANITISE_ENFORCE && !p->proxy);
    EXPECT(p->quota.flows == 0 && p->quota.bytes == 0);
    EXPECT(p->n_secrets == 0 && !policy_secret(p, "k", 1));
    EXPECT(!policy_inspects(p, "a.test") && !policy_rule(p, "a.test"));
    policy_unref(p);
}

TEST(rules)
{
    struct policy *p = policy(
        "{\"default\":\"allow\",\"rules\":["
        "{\"domain\":\"Api.test\",\"headers\":[[\"Authorization\",\"Bearer ${e2b.secrets.k}\"],"
        "[\"x-two\",\"\"]]},"
        "{\"domain\":\"*.api.test\",\"headers\":[]},{\"domain\":\"*.x.api.test\"}]}");
    const struct policy_rule *r = policy_rule(p, "api.test");

    EXPECT(r && r->n_headers == 2);
    if (r && r->n_headers == 2) {
        EXPECT_STR(r->domain, "api.test");
        EXPECT_STR(r->headers[0].name, "authorization");
        EXPECT_STR(r->headers[0].value, "Bearer ${e2b.secrets.k}");
        EXPECT_STR(r->headers[1].value, "");
    }
    r = policy_rule(p, "y.api.test");
    EXPECT(r && strcmp(r->domain, "*.api.test") == 0);
    r = policy_rule(p, "z.x.api.test");
    EXPECT(r && strcmp(r->domain, "*.x.api.test") == 0);
    EXPECT(policy_inspects(p, "api.test") && policy_inspects(p, "y.api.test"));
    EXPECT(!policy_inspects(p, "xapi.test") && !policy_rule(p, "test"));
    policy_unref(p);
}

/* ---- secrets --------------------------------------------------------------------------------- */

static void add_sealed(struct strbuf *s, const struct vault_key *k, const char *purpose,
                       const char *value)
{
    uint8_t public_key[VAULT_PUBLIC_LEN];
    struct sg_error e = {0};

    vault_key_public(k, public_key);
    EXPECT(vault_seal(public_key, purpose, value, strlen(value), s, &e) == 0);
}

static void secret_document(struct strbuf *s, const struct vault_key *k, const char *purpose)
{
    strbuf_addstr(s, "{\"tenant\":\"t1\",\"sandbox\":\"s1\",\"default\":\"allow\",\"secrets\":[");
    strbuf_addstr(s, "{\"name\":\"k\",\"placeholder\":\"sgph_1\",\"hosts\":[\"Api.test\","
                     "\"*.b.test\"],\"headers\":[\"Authorization\",\"x-api-key\"],\"sealed\":\"");
    add_sealed(s, k, purpose, "the real one");
    strbuf_addstr(s, "\"},{\"name\":\"only-rules\",\"hosts\":[\"c.test\"],\"sealed\":\"");
    add_sealed(s, k, "t1/only-rules", "");
    strbuf_addstr(s, "\"}],\"proxy\":{\"address\":\"proxy.test:1080\",\"username\":\"me\","
                     "\"password\":\"proxy word\"}}");
}

TEST(secrets)
{
    struct vault_key *k = vault_key_new();
    AUTO(strbuf_done) struct strbuf s = {0};
    const struct policy_secret *one;
    struct policy *p = NULL;
    struct sg_error e = {0};

    strbuf_init(&s, 64 * 1024);
    secret_document(&s, k, "t1/k");
    EXPECT(policy_parse(s.buf, s.len, k, &p, &e) == 0);
    if (!p) {
        printf("# %s\n", e.message);
        vault_key_free(k);
        return;
    }
    EXPECT(p->n_secrets == 2);
    one = policy_secret(p, "kxx", 1);
    EXPECT(one == &p->secrets[0] && !policy_secret(p, "kx", 2) && !policy_secret(p, "", 0));
    EXPECT(one->value.len == 12 && memcmp(one->value.bytes, "the real one", 12) == 0);
    EXPECT_STR(one->placeholder, "sgph_1");
    EXPECT(one->n_headers == 2 && strcmp(one->headers[0], "authorization") == 0);
    EXPECT(policy_secret_goes_to(one, "api.test") && policy_secret_goes_to(one, "x.b.test"));
    EXPECT(!policy_secret_goes_to(one, "b.test") && !policy_secret_goes_to(one, "evil.test"));
    EXPECT(!policy_secret_goes_to(one, "api.test.evil.test"));
    EXPECT(policy_inspects(p, "api.test") && policy_inspects(p, "x.b.test"));
    EXPECT(!policy_inspects(p, "c.test")); /* nothing is replaced there */
    EXPECT_STR(p->secrets[1].placeholder, "");
    EXPECT_STR(by_address(p, "1.2.3.4"), "name, else allow: default allow");

    EXPECT_STR(p->proxy->host, "proxy.test");
    EXPECT_STR(p->proxy->username, "me");
    EXPECT(p->proxy->port == 1080 && p->proxy->password.len == 10);
    policy_unref(p);
    vault_key_free(k);
}

/* Sealed for another tenant, for another key, with no key here: nothing opens, nothing is told. */
TEST(secrets_of_others)
{
    struct vault_key *k = vault_key_new(), *other = vault_key_new();
    static const char *const purposes[] = {"t2/k", "t1/other", "t1/k"};
    const struct vault_key *const keys[] = {k, k, other, NULL};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        AUTO(strbuf_done) struct strbuf s = {0};
        struct policy *p = NULL;
        struct sg_error e = {0};

        strbuf_init(&s, 64 * 1024);
        secret_document(&s, k, purposes[i < 2 ? i : 2]);
        EXPECT(policy_parse(s.buf, s.len, keys[i], &p, &e) < 0 && !p);
        EXPECT(strncmp(e.message, "policy document: ", 17) == 0);
    }
    vault_key_free(k);
    vault_key_free(other);
}

/* As they are: only where the one who knows them has started the guard, and as the command line
 * prints them. */
TEST(plain_secrets)
{
    const char *const hosts[] = {"api.test", NULL};
    struct egress_secret secret = {"KEY", "the \"real\" one", "sgph_1", hosts};
    struct egress_document d = {
        .tenant = "t", .sandbox_id = "s", .default_deny = true, .secrets = &secret, .n_secrets = 1};
    AUTO(strbuf_done) struct strbuf s = {0};
    struct policy *p = NULL;
    struct sg_error e = {0};

    strbuf_init(&s, 4096);
    egress_document_print(&d, &s);
    EXPECT(policy_parse(s.buf, s.len, NULL, &p, &e) < 0 && !p);
    EXPECT(strstr(e.message, "'KEY'") && strstr(e.message, "sealed") && !strstr(e.message, "real"));
    EXPECT(policy_parse_plain(s.buf, s.len, NULL, &p, &e) == 0 && p);
    if (!p)
        return;
    EXPECT(p->n_secrets == 1 && policy_inspects(p, "api.test"));
    EXPECT_STR((const char *)p->secrets[0].value.bytes, "the \"real\" one");
    EXPECT_STR(p->secrets[0].placeholder, "sgph_1");
    policy_unref(p);
}

TEST(proxies)
{
    static const struct {
        const char *address, *host; /* NULL: refused */
        uint16_t port;
    } cases[] = {
        {"proxy.test:1080", "proxy.test", 1080},
        {"Proxy.Test.:1", "proxy.test", 1},
        {"93.184.216.34:65535", "93.184.216.34", 65535},
        {"[2606:2800::1]:1080", "2606:2800::1", 1080},
        {"", NULL, 0},
        {"proxy.test", NULL, 0},
        {":1080", NULL, 0},
        {"proxy.test:", NULL, 0},
        {"proxy.test:0", NULL, 0},
        {"proxy.test:65536", NULL, 0},
        {"proxy.test:99999999999999999999", NULL, 0},
        {"proxy.test:-1", NULL, 0},
        {"proxy.test: 1", NULL, 0},
        {"2606:2800::1:1080", NULL, 0},
        {"[2606:2800::1]", NULL, 0},
        {"[93.184.216.34]:1080", NULL, 0},
        {"[proxy.test]:1080", NULL, 0},
        {"[]:1080", NULL, 0},
        {"socks5://proxy.test:1080", NULL, 0},
        {"user@proxy.test:1080", NULL, 0},
        {"127.1:1080", NULL, 0},
        {"*.test:1080", NULL, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct policy *p = NULL;
        struct sg_error e = {0};
        char text[200];
        int n =
            snprintf(text, sizeof(text), "{\"default\":\"allow\",\"proxy\":{\"address\":\"%s\"}}",
                     cases[i].address);
        int r = policy_parse(text, (size_t)n, NULL, &p, &e);

        if (r != (cases[i].host ? 0 : -EINVAL)) {
            tap_failures++;
            printf("# '%s': %d %s\n", cases[i].address, r, e.message);
        }
        if (p && cases[i].host) {
            EXPECT_STR(p->proxy->host, cases[i].host);
            EXPECT(p->proxy->port == cases[i].port);
            EXPECT(p->proxy->username[0] == '\0' && !p->proxy->password.bytes);
        }
        policy_unref(p);
    }
}

/* ---- documents that are refused -------------------------------------------------------------- */

/* Each as it stands behind a "default" that is right. */
static const char *const malformed[] = {
    "\"allow\":\"a.test\"",
    "\"allow\":{\"a.test\":1}",
    "\"allow\":[1]",
    "\"allow\":[null]",
    "\"allow\":null",
    "\"allow\":[[\"a.test\"]]",
    "\"allow\":[\"\"]",
    "\"allow\":[\"*\"]",
    "\"allow\":[\"*.\"]",
    "\"allow\":[\"*.10.0.0.1\"]",
    "\"allow\":[\"a.*.test\"]",
    "\"allow\":[\"a..test\"]",
    "\"allow\":[\"a test\"]",
    "\"allow\":[\"a.test:443\"]",
    "\"allow\":[\"https://a.test\"]",
    "\"allow\":[\"m\xc3\xbcnchen.test\"]",
    "\"allow\":[\"a.test\\u0000.evil\"]",
    "\"allow\":[\"10.0.0.0/33\"]",
    "\"allow\":[\"10.0.0.0/-1\"]",
    "\"allow\":[\"10.0.0.0/8 \"]",
    "\"allow\":[\"10.0.0.256\"]",
    "\"allow\":[\"10.0.0\"]",
    "\"allow\":[\"2606::/129\"]",
    "\"allow\":[\"fe80::1%lo\"]",
    "\"allow\":[\"10.0.0.1-10.0.0.9\"]",
    "\"deny\":[\"10.0.0.0/33\"]",
    "\"deny\":[false]",
    "\"deny\":7",
    "\"fakeIp\":1",
    "\"fakeIp\":\"true\"",
    "\"sanitise\":\"maybe\"",
    "\"sanitise\":true",
    "\"flows\":-1",
    "\"flows\":1.5",
    "\"flows\":\"9\"",
    "\"flows\":4294967296",
    "\"flowRate\":-1",
    "\"bytes\":-1",
    "\"bytes\":9223372036854775808",
    "\"tenant\":7",
    "\"sandbox\":[]",
    "\"default\":\"deny\"", /* twice */
    "\"rules\":{}",
    "\"rules\":[1]",
    "\"rules\":[{}]",
    "\"rules\":[{\"domain\":\"\"}]",
    "\"rules\":[{\"domain\":\"10.0.0.1\"}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":{}}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x\",\"y\",\"z\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x\",1]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[1,\"y\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"\",\"y\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x y\",\"y\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x:\",\"y\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x\",\"canary\\r\\nb: c\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\",\"headers\":[[\"x\",\"canary\\u007f\"]]}]",
    "\"rules\":[{\"domain\":\"a.test\"},{\"domain\":\"A.test\"}]",
    "\"secrets\":{}",
    "\"secrets\":[1]",
    "\"secrets\":[{}]",
    "\"secrets\":[{\"name\":\"k\"}]",
    "\"secrets\":[{\"name\":\"a/k\",\"sealed\":\"x\"}]",
    "\"secrets\":[{\"name\":\"\",\"sealed\":\"x\"}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":\"canary\"}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":7}]",
    "\"secrets\":[{\"name\":\"k\",\"sealed\":\"canary\"}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":\"x\",\"hosts\":\"a.test\"}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":\"x\",\"hosts\":[\"*\"]}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":\"x\",\"headers\":[\"a b\"]}]",
    "\"tenant\":\"t\",\"secrets\":[{\"name\":\"k\",\"sealed\":\"x\",\"placeholder\":\"a\\nb\"}]",
    "\"proxy\":[]",
    "\"proxy\":{}",
    "\"proxy\":{\"address\":7}",
    "\"proxy\":{\"address\":\"a.test:1\",\"username\":1}",
    "\"tenant\":\"t\",\"proxy\":{\"address\":\"a.test:1\",\"password\":\"canary\"}",
    "\"tenant\":\"t\",\"proxy\":{\"address\":\"a.test:1\",\"username\":\"u\",\"password\":7}",
    "\"x\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]",
    "\"x\":",
    "\"x\":nul",
    "\"x\":\"\xff\"",
};

TEST(malformed_documents)
{
    struct vault_key *k = vault_key_new();

    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        struct policy *p = NULL;
        struct sg_error e = {0};
        char text[300];
        int n = snprintf(text, sizeof(text), "{\"default\":\"allow\",%s}", malformed[i]);
        int r = policy_parse(text, (size_t)n, k, &p, &e);

        if (r >= 0 || p || strncmp(e.message, "policy document: ", 17) != 0 || e.code != r) {
            tap_failures++;
            printf("# %s: %d '%s'\n", malformed[i], r, e.message);
        }
        /* What might be a credential is not in the message. */
        EXPECT(!strstr(e.message, "canary"));
        policy_unref(p);
    }
    vault_key_free(k);
}

TEST(not_even_an_object)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "[]",
                                        "7",
                                        "\"x\"",
                                        "null",
                                        "{",
                                        "{}",
                                        "{}{}",
                                        "{\"default\":\"block\"}",
                                        "{\"default\":null}",
                                        "{\"default\":true}",
                                        "{\"default\":\"allow\"} x",
                                        "{\"default\":\"Deny\"}",
                                        "{'default':'deny'}"};
    struct policy *p = NULL;
    struct sg_error e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        EXPECT(policy_parse(texts[i], strlen(texts[i]), NULL, &p, &e) == -EINVAL && !p);
    EXPECT(policy_parse("{\"default\":\"deny\"}\0", 19, NULL, &p, &e) == -EINVAL && !p);
}

TEST(documents_beyond_the_limits)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    struct policy *p = NULL;
    struct sg_error e = {0};

    strbuf_init(&s, 4u * GUARD_DOCUMENT_MAX);
    strbuf_addstr(&s, "{\"default\":\"deny\",\"allow\":[\"a.test\"");
    for (int i = 0; i < POLICY_ENTRIES_MAX; i++)
        strbuf_addstr(&s, ",\"a.test\"");
    strbuf_addstr(&s, "]}");
    EXPECT(policy_parse(s.buf, s.len, NULL, &p, &e) == -EINVAL && !p);
    EXPECT(strstr(e.message, "20000"));

    strbuf_reset(&s);
    strbuf_addstr(&s, "{\"default\":\"deny\",\"x\":\"");
    while (s.len < GUARD_DOCUMENT_MAX)
        strbuf_addch(&s, 'x');
    strbuf_addstr(&s, "\"}");
    EXPECT(policy_parse(s.buf, s.len, NULL, &p, &e) == -EINVAL && !p);

    strbuf_reset(&s);
    strbuf_addstr(&s, "{\"default\":\"deny\",\"x\":[0");
    for (int i = 0; i < 4 * POLICY_ENTRIES_MAX + 10; i++)
        strbuf_addstr(&s, ",0");
    strbuf_addstr(&s, "]}");
    EXPECT(policy_parse(s.buf, s.len, NULL, &p, &e) == -EINVAL && !p);
}

/* ---- the operator's list --------------------------------------------------------------------- */

static const char *or_none(const char *rule)
{
    return rule ? rule : "none";
}

TEST(what_the_operator_denies)
{
    struct deny_set *s = NULL;
    struct sg_error e = {0};
    struct net_addr in = addr("93.184.216.34"), out = addr("198.41.0.4"),
                    behind = addr("64:ff9b::5db8:d822"), v6 = addr("2606:2800::1");

    EXPECT(deny_set_new("evil.test, *.ads.test\t93.184.216.0/24,,2606:2800::1", &s, &e) == 0);
    EXPECT_STR(or_none(deny_set_address(s, &in)), "server denies 93.184.216.0/24");
    EXPECT_STR(or_none(deny_set_address(s, &behind)), "server denies 93.184.216.0/24");
    EXPECT_STR(or_none(deny_set_address(s, &v6)), "server denies 2606:2800::1");
    EXPECT_STR(or_none(deny_set_address(s, &out)), "none");
    EXPECT_STR(or_none(deny_set_name(s, "evil.test")), "server denies evil.test");
    EXPECT_STR(or_none(deny_set_name(s, "x.ads.test")), "server denies *.ads.test");
    EXPECT_STR(or_none(deny_set_name(s, "ads.test")), "none");
    EXPECT(deny_set_has_names(s));
    deny_set_free(s);

    EXPECT(deny_set_new("0.0.0.0/0", &s, &e) == 0);
    EXPECT(deny_set_address(s, &out) && deny_set_address(s, &v6) && deny_set_name(s, "a.test"));
    EXPECT(!deny_set_has_names(s) && !deny_set_has_names(NULL));
    deny_set_free(s);

    EXPECT(deny_set_new("", &s, &e) == 0);
    EXPECT(!deny_set_address(s, &out) && !deny_set_name(s, "a.test"));
    deny_set_free(s);
    EXPECT(!deny_set_address(NULL, &out) && !deny_set_name(NULL, "a.test"));
    deny_set_free(NULL);
}

TEST(bad_lists_of_the_operator)
{
    static const char *const bad[] = {"*",       "a.test:80",   "10.0.0.0/33",
                                      "a..test", "a.test,b c*", "http://a.test"};
    struct deny_set *s = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};

        EXPECT(deny_set_new(bad[i], &s, &e) == -EINVAL && !s);
        EXPECT(strncmp(e.message, "egress_deny: ", 13) == 0);
    }
}

TAP_MAIN
