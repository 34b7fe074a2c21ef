/* Names of secrets, mentions of them, where they may go, and what a sandbox's document gets. */
#include "store_place.h"

#include <jansson.h>

#include "front/core/hostname.h"
#include "front/core/secret_text.h"
#include "front/core/secrets_use.h"
#include "front/store/secrets.h"

TAP_MAIN

/* ---- texts ----------------------------------------------------------------------------------- */

TEST(names_have_one_form)
{
    static const char *const bad[] = {
        "",         "a b",          "a.b",          "a/b", "sec_x", "SEC_",   "a}",
        "\xc3\xa4", "egress-proxy", "Egress-Proxy", "a\n", "a\"b",  "${e2b}", " a"};
    char name[SECRET_NAME_MAX + 1], longest[SECRET_NAME_MAX + 2];

    EXPECT(secret_name("OpenAI_Key-1", 12, name) == 0);
    EXPECT_STR(name, "openai_key-1");
    EXPECT(secret_name("abc", 1, name) == 0);
    EXPECT_STR(name, "a");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(secret_name(bad[i], strlen(bad[i]), name) == -EINVAL);
    memset(longest, 'a', sizeof(longest));
    EXPECT(secret_name(longest, SECRET_NAME_MAX + 1, name) == -EINVAL);
    EXPECT(secret_name(longest, SECRET_NAME_MAX, name) == 0);
    EXPECT(secret_name("a\0b", 3, name) == -EINVAL);
}

TEST(mentions_are_found)
{
    struct secret_mention m;

    EXPECT(secret_mentioned("Bearer ${e2b.secrets.one} and ${e2b.secrets.Two}", &m));
    EXPECT(m.len == 3 && strncmp(m.name, "one", 3) == 0);
    EXPECT(secret_mentioned(m.end, &m));
    EXPECT(m.len == 3 && strncmp(m.name, "Two", 3) == 0);
    EXPECT(!secret_mentioned(m.end, &m));
    EXPECT(!secret_mentioned("", &m));
    EXPECT(!secret_mentioned("${e2b.secrets.never", &m));
    EXPECT(!secret_mentioned("${e2b.identity.tokens.aws}", &m));
    EXPECT(secret_mention_whole("${e2b.secrets.one}", &m) && m.len == 3);
    EXPECT(!secret_mention_whole(" ${e2b.secrets.one}", &m));
    EXPECT(!secret_mention_whole("${e2b.secrets.one} ", &m));
    EXPECT(!secret_mention_whole("${e2b.secrets.one}${e2b.secrets.two}", &m));
}

TEST(hosts_cover_what_they_say)
{
    static const struct {
        const char *pattern, *name;
        bool covers;
    } cases[] = {
        {"a.test", "a.test", true},       {"a.test", "A.Test", true},
        {"a.test", "x.a.test", false},    {"*.a.test", "x.a.test", true},
        {"*.a.test", "a.test", false},    {"*.a.test", "y.x.a.test", true},
        {"*.a.test", "xa.test", false},   {"*.a.test", "*.a.test", true},
        {"*.a.test", "*.x.a.test", true}, {"a.test", "*.a.test", false},
        {"*.a.test", ".a.test", false},   {"*.x.a.test", "*.a.test", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (hostname_covers(cases[i].pattern, cases[i].name) != cases[i].covers)
            printf("# %s, %s\n", cases[i].pattern, cases[i].name);
        EXPECT(hostname_covers(cases[i].pattern, cases[i].name) == cases[i].covers);
    }
}

static json_t *object(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    if (!v)
        printf("# not JSON: %s\n", text);
    EXPECT(v);
    return v;
}

static void expect_json(json_t *got, const char *expected)
{
    json_t *want = object(expected);

    if (!json_equal(got, want)) {
        char *text = json_dumps(got, JSON_COMPACT);
        printf("# %s is not %s\n", text, expected);
        free(text);
        EXPECT(!"equal");
    }
    json_decref(want);
    json_decref(got);
}

TEST(hosts_and_headers_are_lists_in_metadata)
{
    json_t *m = object("{\"sandglass.hosts\": \"API.example.com, *.example.org\","
                       " \"sandglass.headers\": \"X-Key\", \"other\": \"a,,b\"}");

    EXPECT(secret_metadata_check(m, NULL) == 0);
    expect_json(secret_hosts(m), "[\"api.example.com\", \"*.example.org\"]");
    expect_json(secret_headers(m), "[\"x-key\"]");
    json_decref(m);
    m = object("{}");
    EXPECT(secret_metadata_check(m, NULL) == 0);
    expect_json(secret_hosts(m), "[]");
    expect_json(secret_headers(m),
                "[\"authorization\", \"x-api-key\", \"api-key\", \"x-goog-api-key\"]");
    json_decref(m);
}

TEST(bad_metadata_is_refused)
{
    static const char *const bad[] = {
        "{\"sandglass.hosts\": \"\"}",
        "{\"sandglass.hosts\": \"a.test,\"}",
        "{\"sandglass.hosts\": \"https://a.test\"}",
        "{\"sandglass.hosts\": \"a.test:443\"}",
        "{\"sandglass.hosts\": \"*\"}",
        "{\"sandglass.hosts\": \"*.*.test\"}",
        "{\"sandglass.hosts\": \"10.0.0.1\"}",
        "{\"sandglass.hosts\": \"[::1]\"}",
        "{\"sandglass.hosts\": \"a b.test\"}",
        "{\"sandglass.headers\": \"a:b\"}",
        "{\"sandglass.headers\": \"a\\nb\"}",
        "{\"sandglass.headers\": \"a b\"}",
    };
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        json_t *m = object(bad[i]);

        EXPECT(secret_metadata_check(m, &e) == -EINVAL && e.kind == SG_ERR_INVALID);
        EXPECT(strstr(e.message, "sandglass.h"));
        json_decref(m);
    }
}

TEST(metadata_has_limits)
{
    char text[9000];
    json_t *m = json_object();

    memset(text, 'a', sizeof(text));
    json_object_set_new(m, "k", json_stringn(text, 1025));
    EXPECT(secret_metadata_check(m, NULL) == -E2BIG);
    json_object_set_new(m, "k", json_stringn(text, 1024));
    EXPECT(secret_metadata_check(m, NULL) == 0);
    text[129] = '\0';
    json_object_set_new(m, text, json_string(""));
    EXPECT(secret_metadata_check(m, NULL) == -E2BIG);
    json_object_clear(m);
    for (int i = 0; i < 33; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        json_object_set_new(m, text, json_string("v"));
    }
    EXPECT(secret_metadata_check(m, NULL) == -E2BIG);
    json_object_del(m, "k0");
    EXPECT(secret_metadata_check(m, NULL) == 0);
    json_object_clear(m);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, sizeof(text) - (size_t)(2 * i), "a,");
    json_object_set_new(m, "sandglass.headers", json_stringn(text, 63));
    EXPECT(secret_metadata_check(m, NULL) == 0);
    snprintf(text + 64, sizeof(text) - 64, "a");
    json_object_set_new(m, "sandglass.headers", json_string(text));
    EXPECT(secret_metadata_check(m, NULL) == -E2BIG);
    json_decref(m);
}

/* ---- what a document gets -------------------------------------------------------------------- */

struct shop {
    struct place place;
    struct front front;
    struct store_tenant acme, beta;
};

static void shop_open(struct shop *s)
{
    static const struct {
        const char *name, *metadata;
    } made[] = {
        {"plain", "{}"},
        {"api", "{\"sandglass.hosts\":\"api.test,*.b.test\"}"},
        {"own", "{\"sandglass.hosts\":\"own.test\",\"sandglass.headers\":\"x-own\"}"},
    };
    char id[STORE_VAULT_ID_LEN + 1];
    struct sg_error e;

    *s = (struct shop){.place = place_make()};
    s->front.store = open_ok(&s->place);
    EXPECT(store_tenant_ensure(s->front.store, "acme", &s->acme, &e) == 0);
    EXPECT(store_tenant_ensure(s->front.store, "beta", &s->beta, &e) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(made); i++)
        EXPECT(store_vault_add(s->front.store, s->acme.id, made[i].name, made[i].metadata, "sealed",
                               id, &e) == 0);
    EXPECT(store_vault_add(s->front.store, s->beta.id, "betas", "{}", "sealed", id, &e) == 0);
}

static void shop_close(struct shop *s)
{
    store_close(s->front.store);
    place_remove(&s->place);
}

#define RULE(domain, value)                                                                        \
    "{\"rules\":{\"" domain "\":[{\"transform\":{\"headers\":{\"Authorization\":\"" value "\"}}}]" \
    "}}"

TEST(secrets_of_rules_go_to_the_rules_domain)
{
    struct shop s;
    json_t *network = object(RULE("api.test", "Bearer ${e2b.secrets.Plain}${e2b.secrets.api}"));
    json_t *secrets = NULL;

    shop_open(&s);
    EXPECT(secrets_gather(&s.front, s.acme.id, network, NULL, &secrets, NULL) == 0);
    expect_json(secrets, "[{\"name\":\"plain\",\"sealed\":\"sealed\",\"hosts\":[\"api.test\"]},"
                         "{\"name\":\"api\",\"sealed\":\"sealed\",\"hosts\":[\"api.test\"]}]");
    json_decref(network);
    shop_close(&s);
}

TEST(nothing_is_gathered_without_mentions)
{
    struct shop s;
    json_t *network = object(RULE("api.test", "Bearer ${e2b.identity.tokens.x} sgph_"));
    json_t *envs = object("{\"A\":\"plain\",\"B\":\"x ${e2b.secrets.none}\"}"), *secrets = NULL;

    shop_open(&s);
    EXPECT(secrets_gather(&s.front, s.acme.id, network, envs, &secrets, NULL) == 0);
    expect_json(secrets, "[]");
    expect_json(envs, "{\"A\":\"plain\",\"B\":\"x ${e2b.secrets.none}\"}");
    EXPECT(secrets_gather(&s.front, s.acme.id, NULL, NULL, &secrets, NULL) == 0);
    expect_json(secrets, "[]");
    json_decref(network);
    shop_close(&s);
}

static bool is_placeholder(const char *s)
{
    return s && strncmp(s, "sgph_", 5) == 0 && strlen(s) == 5 + 32 &&
           strspn(s + 5, "0123456789abcdef") == 32;
}

TEST(variables_get_placeholders)
{
    struct shop s;
    json_t *envs = object("{\"KEY\":\"${e2b.secrets.api}\",\"SAME\":\"${e2b.secrets.API}\","
                          "\"OWN\":\"${e2b.secrets.own}\",\"PLAIN\":\"x\"}");
    json_t *second = json_deep_copy(envs), *secrets = NULL, *entry;
    const char *key, *own;

    shop_open(&s);
    EXPECT(secrets_gather(&s.front, s.acme.id, NULL, envs, &secrets, NULL) == 0);
    key = json_string_value(json_object_get(envs, "KEY"));
    own = json_string_value(json_object_get(envs, "OWN"));
    EXPECT(is_placeholder(key) && is_placeholder(own) && strcmp(key, own) != 0);
    EXPECT_STR(json_string_value(json_object_get(envs, "SAME")), key);
    EXPECT_STR(json_string_value(json_object_get(envs, "PLAIN")), "x");
    EXPECT(json_array_size(secrets) == 2);
    entry = json_array_get(secrets, 0);
    EXPECT_STR(json_string_value(json_object_get(entry, "placeholder")), key);
    expect_json(json_incref(json_object_get(entry, "hosts")), "[\"api.test\",\"*.b.test\"]");
    expect_json(json_incref(json_object_get(entry, "headers")),
                "[\"authorization\",\"x-api-key\",\"api-key\",\"x-goog-api-key\"]");
    EXPECT(!json_object_get(entry, "metadata"));
    entry = json_array_get(secrets, 1);
    expect_json(json_incref(json_object_get(entry, "headers")), "[\"x-own\"]");
    json_decref(secrets);
    /* Another sandbox has another. */
    EXPECT(secrets_gather(&s.front, s.acme.id, NULL, second, &secrets, NULL) == 0);
    EXPECT(strcmp(json_string_value(json_object_get(second, "KEY")), key) != 0);
    json_decref(secrets);
    json_decref(second);
    json_decref(envs);
    shop_close(&s);
}

TEST(in_a_rule_and_in_a_variable_it_is_one_entry)
{
    struct shop s;
    json_t *network = object(RULE("x.b.test", "${e2b.secrets.api}"));
    json_t *envs = object("{\"KEY\":\"${e2b.secrets.api}\"}"), *secrets = NULL;

    shop_open(&s);
    EXPECT(secrets_gather(&s.front, s.acme.id, network, envs, &secrets, NULL) == 0);
    EXPECT(json_array_size(secrets) == 1);
    expect_json(json_incref(json_object_get(json_array_get(secrets, 0), "hosts")),
                "[\"api.test\",\"*.b.test\"]");
    json_decref(secrets);
    json_decref(network);
    json_decref(envs);
    shop_close(&s);
}

static void expect_refused(struct shop *s, const char *network, const char *envs, const char *why)
{
    json_t *n = object(network), *v = object(envs), *secrets = NULL;
    struct sg_error e = {0};

    EXPECT(secrets_gather(&s->front, s->acme.id, n, v, &secrets, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID && !secrets);
    if (!strstr(e.message, why))
        printf("# %s\n", e.message);
    EXPECT(strstr(e.message, why));
    json_decref(n);
    json_decref(v);
}

TEST(what_cannot_be_used_is_named)
{
    struct shop s;

    shop_open(&s);
    expect_refused(&s, RULE("a.test", "${e2b.secrets.nobody}"), "{}", "'nobody'");
    expect_refused(&s, RULE("a.test", "${e2b.secrets.}"), "{}", "no secret ''");
    expect_refused(&s, RULE("a.test", "${e2b.secrets.betas}"), "{}", "'betas'");
    expect_refused(&s, RULE("a.test", "${e2b.secrets.egress-proxy}"), "{}", "'egress-proxy'");
    expect_refused(&s, RULE("a.test", "${e2b.secrets.api}"), "{}", "may not go to 'a.test'");
    expect_refused(&s, RULE("b.test", "${e2b.secrets.api}"), "{}", "may not go to 'b.test'");
    expect_refused(&s, "{}", "{\"K\":\"${e2b.secrets.nobody}\"}", "'nobody'");
    expect_refused(&s, "{}", "{\"K\":\"${e2b.secrets.plain}\"}", "sandglass.hosts");
    shop_close(&s);
}

TEST(a_sandbox_uses_so_many_and_no_more)
{
    struct shop s;
    json_t *envs = json_object();
    char id[STORE_VAULT_ID_LEN + 1], name[16];
    struct sg_error e = {0};

    shop_open(&s);
    for (int i = 0; i <= SECRETS_MAX; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        EXPECT(store_vault_add(s.front.store, s.acme.id, name, "{\"sandglass.hosts\":\"a.test\"}",
                               "sealed", id, &e) == 0);
        json_object_set_new(envs, name, json_sprintf("${e2b.secrets.%s}", name));
    }
    json_t *secrets = NULL;
    EXPECT(secrets_gather(&s.front, s.acme.id, NULL, envs, &secrets, &e) < 0);
    EXPECT(strstr(e.message, "at most 32"));
    json_decref(envs);
    shop_close(&s);
}
