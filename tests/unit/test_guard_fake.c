/* Addresses that stand for names. */
#include "guard/dns.h"
#include "tap.h"

TAP_MAIN

static void text_of(struct sandbox *s, const char *name, char ret[NET_ADDR_TEXT_MAX])
{
    struct net_addr a;

    fake_address(s, name, &a);
    net_addr_text(&a, ret);
}

TEST(an_address_stands_for_its_name)
{
    struct sandbox s = {0};
    struct net_addr a, again, other;

    fake_address(&s, "a.test", &a);
    fake_address(&s, "b.test", &other);
    fake_address(&s, "a.test", &again);
    EXPECT(fake_is(&a) && net_addr_equal(&a, &again) && !net_addr_equal(&a, &other));
    EXPECT_STR(fake_name(&s, &a), "a.test");
    EXPECT_STR(fake_name(&s, &other), "b.test");
    fakes_free(s.fakes);
}

TEST(in_one_sandbox_alone)
{
    struct sandbox s = {0}, t = {0};
    struct net_addr a;

    fake_address(&s, "a.test", &a);
    EXPECT(fake_name(&t, &a) == NULL);
    fake_address(&t, "b.test", &a);
    fakes_free(s.fakes);
    fakes_free(t.fakes);
}

TEST(the_range_is_what_it_is)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {{"198.18.0.0", true},       {"198.19.255.255", true}, {"198.17.255.255", false},
                 {"198.20.0.0", false},      {"93.184.216.34", false}, {"::c612:1", false},
                 {"::ffff:198.18.0.1", true}};
    struct sandbox s = {0};
    struct net_addr a;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        EXPECT(net_addr_parse(cases[i].text, &a) == 0);
        EXPECT(fake_is(&a) == cases[i].is);
        EXPECT(fake_name(&s, &a) == NULL);
    }
}

TEST(the_one_not_used_longest_goes)
{
    struct sandbox s = {0};
    struct net_addr first, second, a;
    char name[32];

    fake_address(&s, "first.test", &first);
    fake_address(&s, "second.test", &second);
    for (int i = 0; i < 4094; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        fake_address(&s, name, &a);
    }
    EXPECT(fake_name(&s, &first) != NULL); /* that is a use */
    fake_address(&s, "one.more.test", &a);
    EXPECT(fake_name(&s, &second) == NULL);
    EXPECT_STR(fake_name(&s, &first), "first.test");
    EXPECT_STR(fake_name(&s, &a), "one.more.test");
    fakes_free(s.fakes);
}

TEST(no_two_names_share_one)
{
    struct sandbox s = {0};
    struct net_addr a[4096];
    char name[32];
    unsigned wrong = 0;

    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        fake_address(&s, name, &a[i]);
    }
    for (int i = 0; i < 4096; i++) {
        const char *is = fake_name(&s, &a[i]);

        snprintf(name, sizeof(name), "n%d.test", i);
        wrong += !is || strcmp(is, name) != 0;
    }
    EXPECT(wrong == 0);
    fakes_free(s.fakes);
}

TEST(a_name_has_the_same_again)
{
    struct sandbox s = {0};
    char before[NET_ADDR_TEXT_MAX], after[NET_ADDR_TEXT_MAX];

    text_of(&s, "a.test", before);
    fakes_free(s.fakes);
    s.fakes = NULL;
    text_of(&s, "b.test", after);
    text_of(&s, "a.test", after);
    EXPECT_STR(before, after);
    fakes_free(s.fakes);
    fakes_free(NULL);
}
