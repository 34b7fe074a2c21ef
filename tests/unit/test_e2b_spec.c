/* Create requests: what becomes of a body, and which bodies are refused with which words. */
#include "tap.h"

#include "front/core/volumes.h"
#include "front/e2b/network.h"
#include "front/e2b/spec.h"

TAP_MAIN

static struct settings settings(void)
{
    struct settings s;

    settings_init(&s);
    s.max_timeout_ms = 24ull * 3600 * 1000;
    return s;
}

static json_t *json(const char *text)
{
    json_error_t e;
    json_t *v = json_loads(text, 0, &e);

    if (!v)
        printf("# %s: %s\n", text, e.text);
    EXPECT(v != NULL);
    return v;
}

static int parse(const char *text, enum spec_version version, struct create_request *ret,
                 struct sg_error *e)
{
    struct settings s = settings();
    json_t *body = json(text);
    int r = create_request_parse(body, version, &s, ret, e);

    json_decref(body);
    return r;
}

static void expect_refused(const char *text, enum spec_version version, const char *words)
{
    struct create_request c;
    struct sg_error e = {0};

    EXPECT(parse(text, version, &c, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID || e.kind == SG_ERR_UNSUPPORTED);
    if (!strstr(e.message, words))
        printf("# %s: '%s'\n", text, e.message);
    EXPECT(strstr(e.message, words) != NULL);
}

TEST(version_1_is_open_and_short)
{
    struct create_request c;
    struct sg_error e;

    EXPECT(parse("{\"templateID\":\"base\"}", SPEC_V1, &c, &e) == 0);
    EXPECT(c.timeout_ms == 15000);
    EXPECT_STR(c.spec.envd_token, "");
    EXPECT_STR(c.spec.traffic_token, "");
    EXPECT(c.spec.metadata == NULL && json_object_size(c.spec.envs) == 0);
    EXPECT(c.spec.allow_internet == -1 && !c.spec.auto_pause && c.spec.auto_pause_memory);
    EXPECT(c.spec.limits.memory_bytes > 0 && c.spec.limits.pids > 0);
    sandbox_spec_done(&c.spec);
    EXPECT(parse("{\"templateID\":\"base\",\"secure\":true}", SPEC_V1, &c, &e) == 0);
    EXPECT(strlen(c.spec.envd_token) == SPEC_TOKEN_LEN);
    sandbox_spec_done(&c.spec);
    EXPECT(parse("{\"templateID\":\"base\",\"secure\":null,\"timeout\":null}", SPEC_V1, &c, &e) ==
           0);
    EXPECT_STR(c.spec.envd_token, "");
    sandbox_spec_done(&c.spec);
}

TEST(version_2_is_always_secured)
{
    struct create_request c, d;
    struct sg_error e;

    EXPECT(parse("{\"templateID\":\"x\",\"secure\":false}", SPEC_V2, &c, &e) == 0);
    EXPECT(parse("{\"templateID\":\"x\"}", SPEC_V2, &d, &e) == 0);
    EXPECT(c.timeout_ms == 300000);
    EXPECT(strlen(c.spec.envd_token) == SPEC_TOKEN_LEN);
    EXPECT(strcmp(c.spec.envd_token, d.spec.envd_token) != 0);
    sandbox_spec_done(&c.spec);
    sandbox_spec_done(&d.spec);
}

TEST(everything_that_may_be_said)
{
    struct create_request c;
    struct sg_error e;

    EXPECT(parse("{\"templateID\":\"acme/mine:v2\",\"timeout\":86400,\"metadata\":{\"a\":\"b\"},"
                 "\"envVars\":{\"K\":\"v=1\"},\"autoPause\":true,\"autoPauseMemory\":true,"
                 "\"autoResume\":{\"enabled\":true},\"allow_internet_access\":false,"
                 "\"network\":{\"allowOut\":[\"1.1.1.1\",\"*.example.com\"],"
                 "\"denyOut\":[\"0.0.0.0/0\"],\"allowPublicTraffic\":false,"
                 "\"maskRequestHost\":\"localhost:${PORT}\",\"httpsPorts\":[443]},"
                 "\"mcp\":{},\"iam\":{\"tokens\":{}},\"volumeMounts\":[],\"other\":[1.5]}",
                 SPEC_V2, &c, &e) == 0);
    EXPECT(c.timeout_ms == 86400000);
    EXPECT_STR(json_string_value(json_object_get(c.spec.envs, "K")), "v=1");
    EXPECT(c.spec.auto_pause && c.spec.auto_resume && c.spec.allow_internet == 0);
    EXPECT(strlen(c.spec.traffic_token) == SPEC_TOKEN_LEN);
    EXPECT(json_object_size(c.spec.network) == 5);
    sandbox_spec_done(&c.spec);
}

TEST(timeouts_are_checked)
{
    expect_refused("{\"timeout\":0}", SPEC_V2, "Timeout must be greater than 0");
    expect_refused("{\"timeout\":-1}", SPEC_V1, "Timeout must be greater than 0");
    expect_refused("{\"timeout\":86401}", SPEC_V2, "Timeout cannot be greater than 24 hours");
    expect_refused("{\"timeout\":2147483647}", SPEC_V2, "Timeout cannot be greater than 24 hours");
    expect_refused("{\"timeout\":2147483648}", SPEC_V2, "'timeout' must be");
    expect_refused("{\"timeout\":9223372036854775807}", SPEC_V2, "'timeout' must be");
    expect_refused("{\"timeout\":1.5}", SPEC_V2, "'timeout' must be a whole number");
    expect_refused("{\"timeout\":3e2}", SPEC_V2, "'timeout' must be a whole number");
    expect_refused("{\"timeout\":\"9\"}", SPEC_V2, "'timeout' must be a whole number");
    expect_refused("{\"timeout\":[]}", SPEC_V2, "'timeout' must be a whole number");
}

TEST(types_are_checked)
{
    static const char *const bad[] = {
        "{\"templateID\":7}",
        "{\"metadata\":[]}",
        "{\"metadata\":{\"a\":1}}",
        "{\"metadata\":{\"a\":null}}",
        "{\"envVars\":{\"a\":{}}}",
        "{\"envVars\":\"A=B\"}",
        "{\"autoPause\":\"yes\"}",
        "{\"autoPause\":1}",
        "{\"autoResume\":true}",
        "{\"autoResume\":{\"enabled\":\"x\"}}",
        "{\"allow_internet_access\":0}",
        "{\"network\":[]}",
        "{\"network\":{\"allowOut\":\"1.1.1.1\"}}",
        "{\"network\":{\"allowOut\":[1]}}",
        "{\"network\":{\"httpsPorts\":[0]}}",
        "{\"network\":{\"httpsPorts\":[\"443\"]}}",
        "{\"network\":{\"rules\":[]}}",
        "{\"network\":{\"rules\":{\"a.b\":{}}}}",
        "{\"network\":{\"rules\":{\"a.b\":[7]}}}",
        "{\"network\":{\"egressProxy\":\"x:1\"}}",
        "{\"iam\":7}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        expect_refused(bad[i], SPEC_V2, "Error when parsing request: ");
    expect_refused("{\"secure\":\"true\"}", SPEC_V1, "'secure' must be true or false");
}

TEST(names_of_variables_are_checked)
{
    expect_refused("{\"envVars\":{\"\":\"x\"}}", SPEC_V2, "'envVars'");
    expect_refused("{\"envVars\":{\"A=B\":\"x\"}}", SPEC_V2, "'envVars'");
}

static char *big_map(const char *key, size_t value_len)
{
    char *text = xcalloc(1, value_len + 64);
    int n = snprintf(text, 64, "{\"%s\":{\"k\":\"", key);

    memset(text + n, 'x', value_len);
    memcpy(text + n + value_len, "\"}}", 4);
    return text;
}

TEST(maps_are_bounded)
{
    AUTO(free_p)
    char *fits = big_map("metadata", 65535), *large = big_map("metadata", 65536),
         *envs = big_map("envVars", 524288);
    struct create_request c;
    struct sg_error e;

    EXPECT(parse(fits, SPEC_V2, &c, &e) == 0);
    sandbox_spec_done(&c.spec);
    expect_refused(large, SPEC_V2, "'metadata' has more than 65536 bytes");
    expect_refused(envs, SPEC_V2, "'envVars' has more than 524288 bytes");
}

TEST(tokens_are_kept_by_name)
{
    struct create_request c, d = {0};
    struct sg_error e;

    EXPECT(parse("{\"mcp\":{\"exa\":{\"k\":1}},\"iam\":{\"tokens\":{\"a.b c\":{\"audience\":\"x\","
                 "\"tokenType\":\"JWT-SVID\"}}}}",
                 SPEC_V2, &c, &e) == 0);
    EXPECT_STR(json_string_value(json_object_get(c.spec.tokens, "a.b c")), "x");
    spec_copy(&c.spec, &d.spec);
    EXPECT(json_equal(c.spec.tokens, d.spec.tokens));
    sandbox_spec_done(&c.spec);
    sandbox_spec_done(&d.spec);
}

#define TOKEN(audience, type) "{\"audience\":\"" audience "\",\"tokenType\":\"" type "\"}"

TEST(tokens_are_checked)
{
    expect_refused("{\"mcp\":7}", SPEC_V2, "'mcp'");
    expect_refused("{\"iam\":{\"tokens\":{\"t\":{}}}}", SPEC_V2,
                   "iam.tokens.t.audience: audience is required");
    expect_refused("{\"iam\":{\"tokens\":{\"t\":" TOKEN("a", "OIDC") "}}}", SPEC_V2,
                   "iam.tokens.t.tokenType: only \"JWT-SVID\" is supported");
    expect_refused("{\"iam\":{\"tokens\":{\"\":" TOKEN("a", "JWT-SVID") "}}}", SPEC_V2,
                   "token name must not be empty");
    expect_refused("{\"iam\":{\"tokens\":{\"{\":" TOKEN("a", "JWT-SVID") "}}}", SPEC_V2, "braces");
    expect_refused("{\"iam\":{\"tokens\":{\"t\":[]}}}", SPEC_V2, "");
}

static void expect_mount_refused(const char *path, const char *words)
{
    char body[512];

    snprintf(body, sizeof(body), "{\"volumeMounts\":[{\"name\":\"v\",\"path\":\"%s\"}]}", path);
    expect_refused(body, SPEC_V2, words);
}

TEST(volumes_are_mounted_where_they_hide_nothing)
{
    static const char *const closed[] = {
        "/",        "//",      "/./",      "/proc",     "/proc/1",      "/usr",     "/usr/local/x",
        "/etc/ssl", "/run/x/", "/lib64/x", "/dev/shm/", "/home//user/", "/var/tmp", "/root"};
    struct create_request c;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
        expect_mount_refused(closed[i], "it would hide");
    expect_mount_refused("/mnt/../etc", "without \"..\"");
    expect_mount_refused("mnt", "must be absolute");
    expect_mount_refused("", "must be absolute");
    expect_refused("{\"volumeMounts\":\"v\"}", SPEC_V2, "'volumeMounts' must be");
    expect_refused("{\"volumeMounts\":[\"v\"]}", SPEC_V2, "must be");
    expect_refused("{\"volumeMounts\":[{\"name\":\"a b\",\"path\":\"/v\"}]}", SPEC_V2,
                   "a volume's name");
    expect_refused("{\"volumeMounts\":[{\"name\":\"a\",\"path\":\"/v\"},{\"name\":\"b\","
                   "\"path\":\"/v//w\"}]}",
                   SPEC_V2, "\"/v\" and \"/v//w\" lie in each other");
    expect_mount_refused("/usr/./local/", "\"/usr/./local/\": it would hide");

    EXPECT(
        parse(
            "{\"volumeMounts\":[{\"name\":\"a\",\"path\":\"//mnt/./a/\"},{\"name\":\"a\",\"path\":"
            "\"/usrx\",\"readOnly\":true}]}",
            SPEC_V2, &c, &e) == 0);
    EXPECT(json_array_size(c.spec.volumes) == 2);
    struct order o = {.n_volumes = 0};
    volumes_fill_order(c.spec.volumes, &o);
    EXPECT(o.n_volumes == 2 && !o.volumes[0].readonly && o.volumes[1].readonly);
    EXPECT_STR(o.volumes[0].target, "/mnt/a");
    EXPECT_STR(o.volumes[1].target, "/usrx");
    sandbox_spec_done(&c.spec);
}

TEST(rules_between_fields)
{
    expect_refused("{\"autoPauseMemory\":false}", SPEC_V2,
                   "autoPauseMemory=false only applies when autoPause is true.");
    expect_refused("{\"autoPause\":true,\"autoPauseMemory\":false,\"autoResume\":{\"enabled\":"
                   "true}}",
                   SPEC_V2, "cannot be combined with autoResume");
    expect_refused("{\"network\":{\"allowPublicTraffic\":false}}", SPEC_V1,
                   "You cannot create a sandbox without public access unless you enable secure "
                   "envd access via 'secure' flag.");
}

static void expect_network(const char *text, const char *words)
{
    json_t *given = json(text), *got = NULL;
    struct sg_error e = {0};
    int r = network_parse(given, false, &got, &e);

    if (words) {
        if (!strstr(e.message, words))
            printf("# %s: '%s'\n", text, e.message);
        EXPECT(r == -EINVAL && strstr(e.message, words));
    } else {
        if (r < 0)
            printf("# %s: '%s'\n", text, e.message);
        EXPECT(r == 0 && json_equal(given, got));
    }
    json_decref(given);
    json_decref(got);
}

TEST(addresses)
{
    expect_network("{\"denyOut\":[\"0.0.0.0/0\",\"10.0.0.0/8\",\"::1\",\"fe80::/10\"]}", NULL);
    expect_network("{\"allowOut\":[\"8.8.8.8/32\",\"0.0.0.0/0\"]}", NULL);
    expect_network("{\"denyOut\":[\"example.com\"]}", "invalid denied CIDR example.com");
    expect_network("{\"denyOut\":[\"10.0.0.0/33\"]}", "invalid denied CIDR 10.0.0.0/33");
    expect_network("{\"denyOut\":[\"10.0.0.0/\"]}", "invalid denied CIDR");
    expect_network("{\"denyOut\":[\"10.0.0.0/08\"]}", "invalid denied CIDR");
    expect_network("{\"denyOut\":[\"10.0.0.0/+8\"]}", "invalid denied CIDR");
    expect_network("{\"denyOut\":[\"::/129\"]}", "invalid denied CIDR");
    expect_network("{\"denyOut\":[\"0.0.0.0\"]}", "invalid denied CIDR 0.0.0.0");
    expect_network("{\"denyOut\":[\"::/0\"]}", "invalid denied CIDR ::/0");
    expect_network("{\"denyOut\":[\"\"]}", "invalid denied CIDR");
    expect_network("{\"denyOut\":[\"1.2.3\"]}", "invalid denied CIDR");
    expect_network("{\"allowOut\":[\"0.0.0.0/8\"]}", "invalid allowed address 0.0.0.0/8");
    expect_network("{\"allowOut\":[\"a b\"],\"denyOut\":[\"0.0.0.0/0\"]}", "invalid allowed");
    expect_network("{\"allowOut\":[\"-a.com\"],\"denyOut\":[\"0.0.0.0/0\"]}", "invalid allowed");
    expect_network("{\"allowOut\":[\"a..b\"],\"denyOut\":[\"0.0.0.0/0\"]}", "invalid allowed");
    expect_network("{\"allowOut\":[\"*\"],\"denyOut\":[\"0.0.0.0/0\"]}", "invalid allowed");
    expect_network("{\"allowOut\":[\"\"],\"denyOut\":[\"0.0.0.0/0\"]}", "invalid allowed");
}

TEST(domains_need_all_traffic_denied)
{
    expect_network("{\"allowOut\":[\"*.a-b.example\",\"x.io\"],\"denyOut\":[\"0.0.0.0/0\"]}", NULL);
    expect_network("{\"allowOut\":[\"x.io\"]}",
                   "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' "
                   "in deny out to block all other traffic.");
    expect_network("{\"allowOut\":[\"x.io\"],\"denyOut\":[\"10.0.0.0/8\"]}", "'ALL_TRAFFIC'");
}

TEST(masks_and_proxies)
{
    expect_network("{\"maskRequestHost\":\"localhost:${PORT}\"}", NULL);
    expect_network("{\"maskRequestHost\":\"${PORT}.example.com\"}", NULL);
    expect_network("{\"maskRequestHost\":\"a b\"}", "mask request host is not valid: a b");
    expect_network("{\"maskRequestHost\":\"a\\r\\nX: y\"}", "mask request host is not valid");
    expect_network("{\"maskRequestHost\":\"$PORT\"}", "mask request host is not valid");
    expect_network("{\"maskRequestHost\":\"\"}", "mask request host is not valid");
    expect_network("{\"maskRequestHost\":\"\\u00e4.de\"}", "is not ASCII");
    expect_network("{\"egressProxy\":{\"address\":\"p.example:1080\",\"username\":\"u\","
                   "\"password\":\"p\"}}",
                   NULL);
    expect_network("{\"egressProxy\":{}}", "egress proxy address must not be empty");
    expect_network("{\"egressProxy\":{\"address\":\"p\"}}", "must be in host:port form");
    expect_network("{\"egressProxy\":{\"address\":\"p:99999\"}}", "not a valid 1-65535 value");
    expect_network("{\"egressProxy\":{\"address\":\"p:1\",\"password\":\"x\"}}",
                   "password must be empty when username is empty");
}

TEST(rules_are_bounded_and_only_known_fields_kept)
{
    json_t *got = NULL, *given = json("{\"rules\":{\"a.io\":[{\"transform\":{\"headers\":{\"X\":"
                                      "\"y\"},\"deep\":[[[[[[[[[[[[1]]]]]]]]]]]]}, \"z\":[[]]}]},"
                                      "\"extra\":1}");
    struct sg_error e;

    EXPECT(network_parse(given, false, &got, &e) == 0);
    json_t *want = json("{\"rules\":{\"a.io\":[{\"transform\":{\"headers\":{\"X\":\"y\"}}}]}}");
    EXPECT(json_equal(got, want));
    json_decref(want);
    json_decref(given);
    json_decref(got);
    expect_network("{\"rules\":{\"a.io\":[{}]}}", NULL);
    expect_network("{\"rules\":{\"a.io\":[{},{}]}}", "at most 1 transform rule");
    expect_network("{\"rules\":{\"\":[]}}", "Rule domain must not be empty.");
    expect_network("{\"rules\":{\"a b\":[]}}", "is not a valid domain name");
    expect_network("{\"rules\":{\"*\":[]}}", "is not a valid domain name");
    expect_network("{\"rules\":{\"*.a.*.test\":[]}}", "is not a valid domain name");
    expect_network("{\"rules\":{\"a.io\":[{\"transform\":{\"headers\":{\"A B\":\"\"}}}]}}",
                   "must contain only valid HTTP token characters");
    expect_network("{\"rules\":{\"a.io\":[{\"transform\":{\"headers\":{\"\":\"\"}}}]}}",
                   "must not be empty");
    expect_network("{\"rules\":{\"a.io\":[{\"transform\":{\"headers\":{\"A\":\"a\\nb\"}}}]}}",
                   "contains invalid characters");
    expect_network("{\"rules\":{\"a\":[],\"b\":[],\"c\":[],\"d\":[],\"e\":[],\"f\":[],\"g\":[],"
                   "\"h\":[],\"i\":[],\"j\":[],\"k\":[]}}",
                   "at most 10 domains");
}

TEST(update_replaces_egress_and_keeps_ingress)
{
    json_t *old = json("{\"allowOut\":[\"1.1.1.1\"],\"rules\":{},\"allowPublicTraffic\":false,"
                       "\"maskRequestHost\":\"h\"}"),
           *body = json("{\"denyOut\":[\"9.9.9.9\"],\"allowPublicTraffic\":true}"),
           *want = json("{\"denyOut\":[\"9.9.9.9\"],\"allowPublicTraffic\":false,"
                        "\"maskRequestHost\":\"h\"}"),
           *got = NULL, *empty = json("{}"), *cleared = NULL;
    struct sg_error e;

    EXPECT(network_update(body, old, &got, &e) == 0);
    EXPECT(json_equal(got, want));
    EXPECT(!network_is_public(got));
    EXPECT(network_update(empty, NULL, &cleared, &e) == 0 && json_object_size(cleared) == 0);
    EXPECT(network_is_public(cleared) && network_is_public(NULL));
    json_decref(old);
    json_decref(body);
    json_decref(want);
    json_decref(got);
    json_decref(empty);
    json_decref(cleared);
}

TEST(copy_has_its_own_tokens)
{
    struct create_request c;
    struct sandbox_spec copy;
    struct sg_error e;

    EXPECT(parse("{\"metadata\":{\"a\":\"b\"},\"network\":{\"allowPublicTraffic\":false}}", SPEC_V2,
                 &c, &e) == 0);
    spec_copy(&c.spec, &copy);
    EXPECT(json_equal(copy.metadata, c.spec.metadata));
    EXPECT(strlen(copy.envd_token) == SPEC_TOKEN_LEN);
    EXPECT(strcmp(copy.envd_token, c.spec.envd_token) != 0);
    EXPECT(strcmp(copy.traffic_token, c.spec.traffic_token) != 0);
    sandbox_spec_done(&c.spec);
    EXPECT_STR(json_string_value(json_object_get(copy.metadata, "a")), "b");
    sandbox_spec_done(&copy);
}
