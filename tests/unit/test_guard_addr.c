/* Addresses: their forms, those that are never dialled, and the exceptions that an operator makes.
 */
#include <arpa/inet.h>

#include "guard/addr.h"
#include "guard/guard.h"
#include "tap.h"

static struct net_addr addr(const char *text)
{
    struct net_addr a = {0};

    if (net_addr_parse(text, &a) < 0) {
        printf("# '%s' is no address\n", text);
        tap_failures++;
    }
    return a;
}

/* Both ends of each network, and their neighbours. */
static const struct {
    const char *text, *why; /* NULL: may be dialled */
} judged[] = {
    {"0.0.0.0", "unspecified"},
    {"0.255.255.255", "unspecified"},
    {"1.0.0.0", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private network"},
    {"10.9.9.9", "private network"},
    {"10.255.255.255", "private network"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "carrier network"},
    {"100.127.255.255", "carrier network"},
    {"100.128.0.0", NULL},
    {"100.100.100.200", "cloud metadata"},
    {"126.255.255.255", NULL},
    {"127.0.0.0", "loopback"},
    {"127.0.0.1", "loopback"},
    {"127.255.255.255", "loopback"},
    {"128.0.0.0", NULL},
    {"168.63.129.15", NULL},
    {"168.63.129.16", "cloud metadata"},
    {"168.63.129.17", NULL},
    {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"},
    {"169.254.169.254", "cloud metadata"},
    {"169.254.255.255", "link-local"},
    {"169.255.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "private network"},
    {"172.31.255.255", "private network"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL},
    {"192.0.0.0", "protocol assignments"},
    {"192.0.0.192", "cloud metadata"},
    {"192.0.0.255", "protocol assignments"},
    {"192.0.1.0", NULL},
    {"192.0.2.0", "documentation"},
    {"192.0.2.255", "documentation"},
    {"192.0.3.0", NULL},
    {"192.88.98.255", NULL},
    {"192.88.99.0", "6to4 relay"},
    {"192.88.99.255", "6to4 relay"},
    {"192.88.100.0", NULL},
    {"192.167.255.255", NULL},
    {"192.168.0.0", "private network"},
    {"192.168.255.255", "private network"},
    {"192.169.0.0", NULL},
    {"198.17.255.255", NULL},
    {"198.18.0.0", "benchmarking"},
    {"198.19.255.255", "benchmarking"},
    {"198.20.0.0", NULL},
    {"198.51.99.255", NULL},
    {"198.51.100.0", "documentation"},
    {"198.51.100.255", "documentation"},
    {"198.51.101.0", NULL},
    {"203.0.112.255", NULL},
    {"203.0.113.0", "documentation"},
    {"203.0.113.255", "documentation"},
    {"203.0.114.0", NULL},
    {"223.255.255.255", NULL},
    {"224.0.0.0", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.0", "reserved"},
    {"255.255.255.254", "reserved"},
    {"255.255.255.255", "broadcast"},
    {"93.184.216.34", NULL},
    {"198.41.0.4", NULL},

    {"::", "unspecified"},
    {"::1", "loopback"},
    {"::2", "unspecified"}, /* compatible: it carries 0.0.0.2 */
    {"::127.0.0.1", "loopback"},
    {"::10.1.2.3", "private network"},
    {"::93.184.216.34", "IPv4-compatible"},
    {"::ffff:127.0.0.1", "loopback"},
    {"::ffff:7f00:1", "loopback"},
    {"::ffff:169.254.169.254", "cloud metadata"},
    {"::ffff:0.0.0.0", "unspecified"},
    {"::ffff:93.184.216.34", NULL},
    {"::ffff:0:127.0.0.1", "reserved"}, /* translated, RFC 2765 */
    {"::1:0:0:1", "reserved"},
    {"64:ff9b::7f00:1", "loopback"},
    {"64:ff9b::a00:1", "private network"},
    {"64:ff9b::5db8:d822", "address translation"},
    {"64:ff9b:1::5db8:d822", "address translation"},
    {"64:ff9b:1:ffff:ffff:ffff:a9fe:a9fe", "cloud metadata"},
    {"64:ff9b:2::1", "reserved"},
    {"100::", "discard-only"},
    {"100::ffff:ffff:ffff:ffff", "discard-only"},
    {"100:0:0:1::", "reserved"},
    {"200::1", "reserved"},
    {"1fff:ffff::1", "reserved"},
    {"2000::1", NULL},
    {"2001::1", "protocol assignments"},
    {"2001:1ff:ffff::1", "protocol assignments"},
    {"2001:200::1", NULL},
    {"2001:db7::1", NULL},
    {"2001:db8::", "documentation"},
    {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"},
    {"2001:db9::1", NULL},
    {"2001:503:ba3e::2:30", NULL},
    {"2002::1", "unspecified"}, /* carries 0.0.0.0 */
    {"2002:7f00:1::", "loopback"},
    {"2002:c0a8:101::1", "private network"},
    {"2002:5db8:d822::1", "6to4"},
    {"2003::1", NULL},
    {"2606:2800::1", NULL},
    {"3ffe:ffff::1", NULL},
    {"3fff::1", "documentation"},
    {"3fff:fff:ffff::1", "documentation"},
    {"3fff:1000::1", NULL},
    {"4000::1", "reserved"},
    {"5f00::1", "segment routing"},
    {"5f01::1", "reserved"},
    {"fbff::1", "reserved"},
    {"fc00::", "private network"},
    {"fd00:ec2::254", "cloud metadata"},
    {"fd20:ce::254", "cloud metadata"},
    {"fdff:ffff::1", "private network"},
    {"fe00::1", "reserved"},
    {"fe80::1", "link-local"},
    {"febf:ffff::1", "link-local"},
    {"fec0::1", "site-local"},
    {"feff:ffff::1", "site-local"},
    {"ff00::", "multicast"},
    {"ff02::1", "multicast"},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"},
};

TEST(what_is_not_of_the_internet)
{
    for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
        struct net_addr a = addr(judged[i].text);
        const char *why = net_addr_internal(&a);

        if (!why != !judged[i].why || (why && strcmp(why, judged[i].why) != 0)) {
            tap_failures++;
            printf("# %s: %s, not %s\n", judged[i].text, why ? why : "(none)",
                   judged[i].why ? judged[i].why : "(none)");
        }
    }
}

/* Without settings the question before connect() is the same. */
TEST(a_guard_without_exceptions_dials_none_of_them)
{
    static struct guard g;

    for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
        struct net_addr a = addr(judged[i].text);
        const char *why = guard_never_dials(&g, &a);

        EXPECT(!why == !judged[i].why);
        if (why && judged[i].why) {
            EXPECT(strncmp(why, "internal address: ", 18) == 0);
            EXPECT_STR(why + 18, judged[i].why);
        }
    }
}

TEST(text)
{
    static const char *const bad[] = {
        "",           "1",          "1.2.3",        "1.2.3.4.5",     "256.1.1.1",  "01.2.3.4",
        "0x7f.1",     "2130706433", "1.2.3.4 ",     " 1.2.3.4",      "1.2.3.4:80", "[::1]",
        "fe80::1%lo", "::1%1",      ":::",          "1:2:3:4:5:6:7", "::g",        "a.test",
        "1.2.3.4/32", "0177.0.0.1", "::ffff:1.2.3", "12345::",
    };
    static const char *const good[][2] = {
        {"1.2.3.4", "1.2.3.4"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"::FFFF:102:304", "1.2.3.4"},
        {"2606:2800:0:0::1", "2606:2800::1"},
        {"::", "::"},
    };
    struct net_addr a;
    char text[NET_ADDR_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (net_addr_parse(bad[i], &a) == 0) {
            tap_failures++;
            printf("# '%s' was taken for an address\n", bad[i]);
        }
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        a = addr(good[i][0]);
        net_addr_text(&a, text);
        EXPECT_STR(text, good[i][1]);
        EXPECT(a.port == 0);
    }
}

TEST(from_a_socket_and_back)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    struct sockaddr un = {.sa_family = AF_UNIX};
    struct sockaddr_storage to;
    struct net_addr a, b;

    inet_pton(AF_INET, "93.184.216.34", &in.sin_addr);
    EXPECT(net_addr_from((struct sockaddr *)&in, &a) == 0);
    EXPECT(net_addr_is_v4(&a) && a.port == 80);
    EXPECT(net_addr_to(&a, &to) == sizeof(in) && memcmp(&to, &in, sizeof(in)) == 0);

    /* A mapped one is dialled as what it is. */
    inet_pton(AF_INET6, "::ffff:93.184.216.34", &in6.sin6_addr);
    EXPECT(net_addr_from((struct sockaddr *)&in6, &b) == 0);
    EXPECT(net_addr_is_v4(&b) && net_addr_equal(&a, &b) && b.port == 443);
    EXPECT(net_addr_to(&b, &to) == sizeof(in) && to.ss_family == AF_INET);

    inet_pton(AF_INET6, "2606:2800::1", &in6.sin6_addr);
    EXPECT(net_addr_from((struct sockaddr *)&in6, &b) == 0);
    EXPECT(!net_addr_is_v4(&b) && !net_addr_equal(&a, &b));
    EXPECT(net_addr_to(&b, &to) == sizeof(in6) && memcmp(&to, &in6, sizeof(in6)) == 0);

    EXPECT(net_addr_from(&un, &b) == -EAFNOSUPPORT);
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static bool lets(const char *set, const char *text, uint16_t port)
{
    static struct guard g;
    struct sg_error e = {0};
    struct net_addr a = addr(text);
    bool may;

    if (internal_set_new(set, &g.internal, &e) < 0) {
        printf("# '%s': %s\n", set, e.message);
        tap_failures++;
        return false;
    }
    a.port = port;
    may = !guard_never_dials(&g, &a);
    internal_set_free(g.internal);
    return may;
}

TEST(exceptions)
{
    EXPECT(lets("10.0.0.7", "10.0.0.7", 80));
    EXPECT(!lets("10.0.0.7", "10.0.0.8", 80));
    EXPECT(lets("10.0.0.7:443", "10.0.0.7", 443));
    EXPECT(!lets("10.0.0.7:443", "10.0.0.7", 80));
    EXPECT(lets("10.0.0.7:443", "10.0.0.7", 0)); /* a name's address: asked again when dialled */
    EXPECT(lets("10.1.2.3/16:443", "10.1.255.255", 443));
    EXPECT(lets("127.0.0.1:8080, 192.168.0.0/16", "192.168.1.1", 1));
    EXPECT(!lets("127.0.0.1:8080, 192.168.0.0/16", "127.0.0.1", 80));
    EXPECT(lets("127.0.0.1:8080,127.0.0.1:80", "127.0.0.1", 80));
    EXPECT(lets("fd00::/8", "fd12::1", 1));
    EXPECT(lets("[fd00::/8]", "fd12::1", 1));
    EXPECT(lets("[fd00::/8]:443", "fd12::1", 443));
    EXPECT(!lets("[fd00::/8]:443", "fd12::1", 80));
    EXPECT(!lets("::/0", "10.0.0.7", 80)); /* IPv6 alone */
    EXPECT(lets("::ffff:10.0.0.7", "10.0.0.7", 80));
    EXPECT(!lets("", "10.0.0.7", 80));
    EXPECT(lets("", "93.184.216.34", 80));
    EXPECT(lets(" , ,10.0.0.7,", "10.0.0.7", 80));
}

/* Not even everything means these. */
TEST(no_exception_for_what_has_no_place)
{
    static const char *const never[] = {"0.0.0.0",         "0.0.0.1", "224.0.0.1",
                                        "255.255.255.255", "::",      "ff02::1"};

    for (size_t i = 0; i < ARRAY_SIZE(never); i++)
        EXPECT(!lets("0.0.0.0/0,::/0", never[i], 80));
    EXPECT(lets("0.0.0.0/0", "169.254.169.254", 80));
    EXPECT(lets("0.0.0.0/0", "240.0.0.1", 80));
}

/* A gateway that may be dialled does not open what is behind it. */
TEST(carried_addresses_are_judged_too)
{
    EXPECT(lets("64:ff9b::/96", "64:ff9b::5db8:d822", 80));
    EXPECT(!lets("64:ff9b::/96", "64:ff9b::7f00:1", 80));
    EXPECT(!lets("64:ff9b::/96", "64:ff9b::a9fe:a9fe", 80));
    EXPECT(!lets("64:ff9b::/96", "64:ff9b::e000:1", 80));
    EXPECT(lets("64:ff9b::/96,10.0.0.0/8", "64:ff9b::a00:1", 80));
    EXPECT(!lets("10.0.0.0/8", "64:ff9b::a00:1", 80));
    EXPECT(!lets("2002::/16", "2002:7f00:1::1", 80));
    EXPECT(!lets("::/0", "::127.0.0.1", 80));
}

TEST(bad_exceptions)
{
    static const char *const bad[] = {
        "a.test",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10.0.0.0/08",
        "10.0.0.7:",
        "10.0.0.7:0",
        "10.0.0.7:65536",
        "10.0.0.7:x",
        "[fd00::1",
        "[fd00::1]x",
        "[fd00::1]:",
        "fd00::/129",
        "10.0.0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255:80",
        "10.0.0.7;10.0.0.8",
        "[]:80",
        "10.0.0.0/8/8",
        "10.0.0.7,nonsense-that-is-longer-than-any-address-that-anybody-would-ever-write-down-here",
    };
    struct internal_set *s = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};

        if (internal_set_new(bad[i], &s, &e) != -EINVAL || !strstr(e.message, "egress_internal")) {
            tap_failures++;
            printf("# '%s': %s\n", bad[i], e.message);
        }
    }
    EXPECT(!s);
}

TAP_MAIN
