/* Where requests may go: what registries name in redirects and challenges, judged. */
#include "lib/web/hosts.h"
#include "tap.h"

static struct vouched hosts[] = {
    {"localhost:5000", true}, {"10.0.0.7", false}, {"plain.test", true}};
static const struct vouchers vouchers = {.v = hosts, .n = ARRAY_SIZE(hosts), .as = "registry"};

static const struct {
    const char *from, *location;
    const char *to;  /* the URL that it leads to; NULL: refused */
    const char *why; /* a part of the error */
} steps[] = {
    {"https://a.test/v2/x", "https://b.test/y?z=1", "https://b.test/y?z=1", NULL},
    {"https://a.test/v2/x", "/y", "https://a.test/y", NULL},
    {"https://a.test/v2/x", "y", "https://a.test/v2/y", NULL},
    {"https://a.test/v2/x", "//b.test/y", "https://b.test/y", NULL},
    {"https://a.test/v2/x", "https://b.test/y#z", "https://b.test/y", NULL},
    {"https://a.test/v2/x", "http://a.test/y", NULL, "not encrypted"},
    {"https://a.test/v2/x", "http://plain.test/y", NULL, "not encrypted"},
    {"https://a.test/v2/x", "http://localhost:5000/y", NULL, "not encrypted"},
    {"http://localhost:5000/v2/", "http://plain.test/y", "http://plain.test/y", NULL},
    {"http://localhost:5000/v2/", "https://b.test/y", "https://b.test/y", NULL},
    {"http://localhost:5000/v2/", "http://b.test/y", NULL, "not encrypted"},
    {"http://localhost:5000/v2/", "http://localhost:5001/y", NULL, "not encrypted"},
    {"http://localhost:5000/v2/", "/y", "http://localhost:5000/y", NULL},
    {"https://a.test/", "https://127.0.0.1/y", NULL, "loopback"},
    {"https://a.test/", "https://2130706433/y", NULL, "loopback"},
    {"https://a.test/", "https://0x7f.1/y", NULL, "loopback"},
    {"https://a.test/", "https://[::1]/y", NULL, "loopback"},
    {"https://a.test/", "https://[::ffff:127.0.0.1]/y", NULL, "loopback"},
    {"https://a.test/", "https://169.254.169.254/latest/", NULL, "cloud metadata"},
    {"https://a.test/", "https://10.0.0.8/y", NULL, "private network"},
    {"https://a.test/", "https://10.0.0.7/y", "https://10.0.0.7/y", NULL},
    {"https://a.test/", "https://10.0.0.7:444/y", NULL, "private network"},
    {"https://a.test/", "https://[fe80::1]/y", NULL, "link-local"},
    {"https://a.test/", "https://8.8.8.8/y", "https://8.8.8.8/y", NULL},
    {"https://a.test/", "file:///etc/passwd", NULL, "another kind"},
    {"https://a.test/", "gopher://b.test/", NULL, "another kind"},
    {"https://a.test/", "ftp://b.test/", NULL, "another kind"},
    {"https://a.test/", "https://user@b.test/", NULL, "user"},
    {"https://a.test/", "https://user:secret@b.test/", NULL, "user"},
    {"https://a.test/", "https://b.test\r\nX: y/", NULL, "cannot be read"},
    {"https://a.test/", "https://", NULL, "cannot be read"},
};

TEST(redirects_are_followed_where_they_may_lead)
{
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        AUTO(url_done) struct url from = {0}, to = {0};
        struct sg_error e = {0};
        char *text = NULL;

        EXPECT(url_parse(steps[i].from, &from, &e) == 0);
        if (url_follow(&from, steps[i].location, &vouchers, &to, &e) == 0)
            curl_url_get(to.curl, CURLUPART_URL, &text, 0);
        EXPECT_STR(text ? text : "refused", steps[i].to ? steps[i].to : "refused");
        if (steps[i].why && !strstr(e.message, steps[i].why)) {
            printf("# %s: %s\n", steps[i].location, e.message);
            tap_failures++;
        }
        EXPECT(!strstr(e.message, "secret"));
        curl_free(text);
    }
}

static bool same(const char *a, const char *b)
{
    AUTO(url_done) struct url one = {0}, two = {0};

    return url_parse(a, &one, NULL) == 0 && url_parse(b, &two, NULL) == 0 &&
           url_same_origin(&one, &two);
}

TEST(credentials_are_for_one_origin)
{
    EXPECT(same("https://a.test/x", "https://a.test:443/y"));
    EXPECT(same("https://a.test/x", "https://A.test/y"));
    EXPECT(same("https://a.test/x", "https://a.test./y"));
    EXPECT(!same("https://a.test/x", "https://a.test:444/y"));
    EXPECT(!same("https://a.test/x", "http://a.test/y"));
    EXPECT(!same("https://a.test/x", "https://b.a.test/y"));
    EXPECT(!same("https://a.test/x", "https://a.test.b/y"));
}

TEST(queries_are_encoded)
{
    AUTO(url_done) struct url u = {0};
    char *text = NULL;

    EXPECT(url_parse("https://a.test/token?x=1", &u, NULL) == 0);
    EXPECT(url_add_query(&u, "service", "a b&c") == 0);
    curl_url_get(u.curl, CURLUPART_URL, &text, 0);
    EXPECT_STR(text, "https://a.test/token?x=1&service=a+b%26c");
    curl_free(text);
}

static const struct {
    const char *list, *url;
    const char *why; /* "": it may go there; "inside": also at an address inside */
} judged[] = {
    {"*", "https://a.test/x", ""},
    {"*", "http://a.test/x", "not encrypted"},
    {"*", "https://127.0.0.1/x", "loopback: the operator must allow it as a target"},
    {"", "https://a.test/x", "not among those"},
    {"a.test", "https://a.test/x", ""},
    {"a.test", "https://A.test./x", ""},
    {"a.test", "https://a.test:444/x", "not among those"},
    {"a.test:444", "https://a.test:444/x", ""},
    {"a.test", "http://a.test/x", "not encrypted"},
    {"a.test", "https://b.a.test/x", "not among those"},
    {"10.0.0.7", "https://10.0.0.7/x", "private network"},
    {"https://10.0.0.7", "https://10.0.0.7/x", "inside"},
    {"https://10.0.0.7", "http://10.0.0.7/x", "not encrypted"},
    {"*, http://localhost:9000", "http://localhost:9000/x", "inside"},
    {"*, http://localhost:9000", "https://localhost:9000/x", "inside"},
    {"*, http://localhost:9000", "http://localhost:9001/x", "not encrypted"},
    {"*,http://a.test", "https://b.test/x", ""},
};

TEST(lists_of_hosts)
{
    for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
        AUTO(url_done) struct url u = {0};
        struct sg_error e = {0};
        bool inside;

        EXPECT(url_parse(judged[i].url, &u, &e) == 0);
        int r = hosts_judge(judged[i].list, "target", &u, &inside, &e);
        const char *got = r < 0 ? e.message : inside ? "inside" : "";
        bool good = judged[i].why[0] ? strstr(got, judged[i].why) != NULL : !got[0];
        if (!good)
            printf("# %s %s: %s\n", judged[i].list, judged[i].url, got);
        EXPECT(good);
    }
}

TAP_MAIN
