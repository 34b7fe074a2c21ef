/* Names: their normal form, patterns, and the table that finds them. */
#include "guard/names.h"
#include "tap.h"

#define L10 "abcdefghij"
#define L60 L10 L10 L10 L10 L10 L10
#define L63 L60 "abc"

TEST(normal_form)
{
    static const struct {
        const char *name;
        size_t len;         /* 0: as long as it is */
        const char *normal; /* NULL: refused */
    } names[] = {
        {"a.test", 0, "a.test"},
        {"A.TEST", 0, "a.test"},
        {"a.test.", 0, "a.test"},
        {"a.test..", 0, NULL},
        {"localhost", 0, "localhost"},
        {"xn--mnchen-3ya.test", 0, "xn--mnchen-3ya.test"},
        {"XN--MNCHEN-3YA.test", 0, "xn--mnchen-3ya.test"},
        {"_dmarc.a.test", 0, "_dmarc.a.test"},
        {"-a-.test", 0, "-a-.test"},
        {"1.a", 0, "1.a"},
        {"1e100.net", 0, "1e100.net"},
        {"0x7f.a", 0, "0x7f.a"},
        {"a.0b", 0, "a.0b"},
        {"", 0, NULL},
        {".", 1, NULL},
        {"..", 0, NULL},
        {".a.test", 0, NULL},
        {"a..test", 0, NULL},
        {"*", 0, NULL},
        {"*.a.test", 0, NULL},
        {"a.*.test", 0, NULL},
        {"a.test\0.evil", 12, NULL},
        {"a.test\0", 7, NULL},
        {"a test", 0, NULL},
        {"a.test ", 0, NULL},
        {" a.test", 0, NULL},
        {"a.test\n", 0, NULL},
        {"a.test:80", 0, NULL},
        {"a.test:80@evil", 0, NULL},
        {"user@a.test", 0, NULL},
        {"a.test/x", 0, NULL},
        {"a%2etest", 0, NULL},
        {"m\xc3\xbcnchen.test", 0, NULL},
        {"a\xe3\x80\x82test", 0, NULL}, /* a full stop that IDNA takes for a dot */
        {"a.test\xff", 0, NULL},
        {"[::1]", 0, NULL},
        {"::1", 0, NULL},
        {"fe80::1", 0, NULL},
        /* E08: what some resolver would take for an address */
        {"127.0.0.1", 0, NULL},
        {"127.0.0.1.", 0, NULL},
        {"127.1", 0, NULL},
        {"2130706433", 0, NULL},
        {"0177.0.0.1", 0, NULL},
        {"0x7f.1", 0, NULL},
        {"0x7f000001", 0, NULL},
        {"0X7F000001", 0, NULL},
        {"1.2.3.0x4", 0, NULL},
        {"1.2.3.0x", 0, NULL},
        {"a.test.1", 0, NULL},
        {L63 ".test", 0, L63 ".test"},
        {L63 "d.test", 0, NULL},
        {L63 "." L63 "." L63 "." L60 "a", 0, L63 "." L63 "." L63 "." L60 "a"}, /* 253 */
        {L63 "." L63 "." L63 "." L60 "a.", 0, L63 "." L63 "." L63 "." L60 "a"},
        {L63 "." L63 "." L63 "." L60 "ab", 0, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t len = names[i].len ? names[i].len : strlen(names[i].name);
        char got[POLICY_NAME_MAX + 1] = "untouched";
        int r = name_normalise(names[i].name, len, got);

        if (r != (names[i].normal ? 0 : -EINVAL) ||
            strcmp(got, names[i].normal ? names[i].normal : "untouched") != 0) {
            tap_failures++;
            printf("# '%s': %d, '%s'\n", names[i].name, r, got);
        }
    }
}

TEST(patterns)
{
    static const char *const good[][2] = {
        {"a.test", "a.test"}, {"*.a.test", "*.a.test"},     {"*.A.Test.", "*.a.test"},
        {"*.test", "*.test"}, {"*.xn--p1ai", "*.xn--p1ai"},
    };
    static const char *const bad[] = {"",        "*",     "*.",      "**.a.test",  "*a.test",
                                      "a.*",     "*.*.a", "*..a",    "*.10.0.0.1", "10.0.0.1",
                                      ".a.test", "* .a",  "a.test/8"};
    char got[POLICY_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        EXPECT(name_pattern(good[i][0], got) == 0);
        EXPECT_STR(got, good[i][1]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (name_pattern(bad[i], got) == 0) {
            tap_failures++;
            printf("# '%s' was taken for a pattern\n", bad[i]);
        }
    EXPECT(name_pattern("*." L63 "." L63 "." L63 "." L10 L10 L10 L10 L10 "abcdefghi", got) == 0);
    EXPECT(name_pattern("*." L63 "." L63 "." L63 "." L60, got) == -EINVAL); /* too long with it */
}

/* E09: exactly these. */
static const struct {
    const char *name;
    const char *entry; /* of a.test and *.b.test; NULL: none */
} e09[] = {
    {"A.TEST", "a.test"},
    {"a.test", "a.test"},
    {"a.test.", "a.test"},
    {"x.b.test", "*.b.test"},
    {"X.B.Test.", "*.b.test"},
    {"x.y.b.test", "*.b.test"},
    {"a.test.b.test", "*.b.test"},
    {"b.b.test", "*.b.test"},
    {"xn--80ak6aa92e.b.test", "*.b.test"},
    {"_x.b.test", "*.b.test"},
    {"xa.test", NULL},
    {"x.a.test", NULL},
    {"b.test", NULL},
    {"xb.test", NULL},
    {"x.xb.test", NULL},
    {"b.test.evil.test", NULL},
    {"x.b.test.evil.test", NULL},
    {"a.test.evil", NULL},
    {"a.tes", NULL},
    {"test", NULL},
    {"xn--a-test", NULL},
    {"a.xn--test", NULL},
    {"b.test.b", NULL},
};

TEST(exactly_the_names_that_were_meant)
{
    struct names *n = names_new();

    EXPECT(names_empty(n) && !names_find(n, "a.test"));
    names_add(n, "a.test", "a.test");
    names_add(n, "*.b.test", "*.b.test");
    EXPECT(!names_empty(n));
    for (size_t i = 0; i < ARRAY_SIZE(e09); i++) {
        char name[POLICY_NAME_MAX + 1];
        const char *found;

        EXPECT(name_normalise(e09[i].name, strlen(e09[i].name), name) == 0);
        found = names_find(n, name);
        if (!found != !e09[i].entry || (found && strcmp(found, e09[i].entry) != 0)) {
            tap_failures++;
            printf("# %s: %s\n", e09[i].name, found ? found : "none");
        }
        EXPECT(name_matches("a.test", name) == (e09[i].entry && e09[i].entry[0] == 'a'));
        EXPECT(name_matches("*.b.test", name) == (e09[i].entry && e09[i].entry[0] == '*'));
    }
    names_free(n);
}

TEST(the_most_special_counts)
{
    static const char *const patterns[] = {"*.test", "*.b.test",   "x.b.test",
                                           "b.test", "*.x.b.test", "test"};
    static const char *const found[][2] = {
        {"a.test", "*.test"},     {"b.test", "b.test"},          {"y.b.test", "*.b.test"},
        {"x.b.test", "x.b.test"}, {"1a.x.b.test", "*.x.b.test"}, {"a.b.x.b.test", "*.x.b.test"},
        {"test", "test"},         {"a.y.b.test", "*.b.test"},
    };
    struct names *n = names_new();

    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
        names_add(n, patterns[i], patterns[i]);
    names_add(n, "*.b.test", "a second one");
    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        EXPECT_STR(names_find(n, found[i][0]), found[i][1]);
    EXPECT(!names_find(n, "a.tests"));
    names_free(n);
}

TEST(thousands)
{
    enum { N = 20000 };
    static char patterns[N][48];
    struct names *n = names_new();
    char name[64];

    for (int i = 0; i < N; i++) {
        snprintf(patterns[i], sizeof(patterns[i]), "%sn%d.zone%d.test", i % 2 ? "*." : "", i,
                 i % 7);
        names_add(n, patterns[i], patterns[i]);
    }
    for (int i = 0; i < N; i++) {
        const char *base = patterns[i] + (i % 2 ? 2 : 0);

        snprintf(name, sizeof(name), "x.y.%s", base);
        EXPECT(names_find(n, base) == (i % 2 ? NULL : patterns[i]));
        EXPECT(names_find(n, name) == (i % 2 ? patterns[i] : NULL));
        snprintf(name, sizeof(name), "x%s", base);
        EXPECT(!names_find(n, name));
    }
    names_free(n);
}

/* 127 labels, below a short entry and below one as deep as itself. */
TEST(deep_names)
{
    char deep[POLICY_NAME_MAX + 1], pattern[POLICY_NAME_MAX + 1];
    struct names *n = names_new();

    for (int i = 0; i < POLICY_NAME_MAX; i++)
        deep[i] = i % 2 ? '.' : 'a';
    deep[POLICY_NAME_MAX] = '\0';
    names_add(n, "*.a.a", "short");
    EXPECT_STR(names_find(n, deep), "short");
    EXPECT(name_normalise(deep, POLICY_NAME_MAX, pattern) == 0);
    names_add(n, pattern, "long");
    EXPECT_STR(names_find(n, deep), "long");
    EXPECT_STR(names_find(n, deep + 2), "short");
    EXPECT(!names_find(n, "a.a"));
    names_free(n);
}

TAP_MAIN
