/* Networks, and the tree that finds the longest one. */
#include "guard/cidr.h"
#include "tap.h"

static struct net_addr addr(const char *text)
{
    struct net_addr a = {0};

    EXPECT(net_addr_parse(text, &a) == 0);
    return a;
}

static void add(struct cidr_tree *t, const char *network)
{
    struct cidr c;

    if (cidr_parse(network, &c) < 0) {
        printf("# '%s' is no network\n", network);
        tap_failures++;
        return;
    }
    cidr_tree_add(t, &c, network);
}

static const char *find(const struct cidr_tree *t, const char *address)
{
    struct net_addr a = addr(address);
    const char *found = cidr_tree_find(t, &a);

    return found ? found : "none";
}

TEST(parse)
{
    static const char *const bad[] = {
        "",
        "/",
        "/8",
        "1.2.3.4/",
        "1.2.3.4/33",
        "1.2.3.4/-1",
        "1.2.3.4/+1",
        "1.2.3.4/ 1",
        "1.2.3.4/1 ",
        "1.2.3.4/08",
        "1.2.3.4/1/1",
        "1.2.3/8",
        "1.2.3.4/a",
        "::/129",
        "::/1000",
        "::1/",
        "a.test",
        "*.a.test",
        "1.2.3.4/99999999999999999999",
        "[::1]/128",
        "::1%lo/64",
        "1.2.3.4/255.0.0.0",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa/64",
    };
    static const struct {
        const char *text, *first;
        unsigned len;
        bool v4;
    } good[] = {
        {"10.1.2.3/8", "10.0.0.0", 104, true},
        {"10.1.2.3", "10.1.2.3", 128, true},
        {"10.1.2.3/32", "10.1.2.3", 128, true},
        {"10.1.2.3/0", "0.0.0.0", 96, true},
        {"192.168.255.255/17", "192.168.128.0", 113, true},
        {"2606:2800:ffff::1/35", "2606:2800:e000::", 35, false},
        {"::/0", "::", 0, false},
        {"2606::1", "2606::1", 128, false},
        {"::ffff:10.1.2.3/104", "10.0.0.0", 104, true},
    };
    struct cidr c;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (cidr_parse(bad[i], &c) == 0) {
            tap_failures++;
            printf("# '%s' was taken for a network\n", bad[i]);
        }
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct net_addr first = addr(good[i].first);

        EXPECT(cidr_parse(good[i].text, &c) == 0);
        EXPECT(c.len == good[i].len && c.v4 == good[i].v4);
        EXPECT(c.len < 96 || memcmp(c.ip, first.ip, 16) == 0);
    }
}

TEST(the_longest_is_found)
{
    struct cidr_tree *t = cidr_tree_new();

    EXPECT_STR(find(t, "10.0.0.1"), "none");
    add(t, "10.1.2.0/24");
    add(t, "10.0.0.0/8");
    add(t, "10.1.2.3");
    add(t, "10.1.0.0/16");
    add(t, "10.1.2.128/25");
    add(t, "172.16.0.0/12");
    add(t, "2606:2800::/32");
    EXPECT_STR(find(t, "10.1.2.3"), "10.1.2.3");
    EXPECT_STR(find(t, "10.1.2.4"), "10.1.2.0/24");
    EXPECT_STR(find(t, "10.1.2.200"), "10.1.2.128/25");
    EXPECT_STR(find(t, "10.1.3.1"), "10.1.0.0/16");
    EXPECT_STR(find(t, "10.2.0.0"), "10.0.0.0/8");
    EXPECT_STR(find(t, "11.0.0.0"), "none");
    EXPECT_STR(find(t, "9.255.255.255"), "none");
    EXPECT_STR(find(t, "172.31.255.255"), "172.16.0.0/12");
    EXPECT_STR(find(t, "172.32.0.0"), "none");
    EXPECT_STR(find(t, "2606:2800::1"), "2606:2800::/32");
    EXPECT_STR(find(t, "2606:2801::1"), "none");
    EXPECT_STR(find(t, "::ffff:10.1.2.3"), "10.1.2.3");
    cidr_tree_free(t);
}

TEST(all_of_a_family_is_not_the_other)
{
    struct cidr_tree *t = cidr_tree_new();

    add(t, "::/0");
    EXPECT_STR(find(t, "1.2.3.4"), "none");
    EXPECT_STR(find(t, "2606::1"), "::/0");
    add(t, "0.0.0.0/0");
    EXPECT_STR(find(t, "1.2.3.4"), "0.0.0.0/0");
    EXPECT_STR(find(t, "2606::1"), "::/0");
    cidr_tree_free(t);
}

TEST(the_first_of_two_counts)
{
    struct cidr_tree *t = cidr_tree_new();

    add(t, "10.0.0.0/8");
    add(t, "10.9.9.9/8");
    EXPECT_STR(find(t, "10.1.1.1"), "10.0.0.0/8");
    cidr_tree_free(t);
}

/* Numbers from a fixed beginning, so that a failure can be found again. */
static uint64_t random_state;
static uint32_t random_u32(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

static void random_address(struct net_addr *ret)
{
    uint8_t ip[16];

    /* Few bits, so that networks meet. */
    for (size_t i = 0; i < sizeof(ip); i++)
        ip[i] = random_u32() % 4 ? 0 : (uint8_t)(random_u32() & 0x81);
    if (random_u32() % 2)
        net_addr_v4(ip, 0, ret);
    else
        net_addr_v6(ip, 0, ret);
}

TEST(thousands_as_a_linear_search_finds_them)
{
    enum { N = 3000 };
    static struct cidr nets[N];
    static char names[N][8];
    struct cidr_tree *t = cidr_tree_new();

    random_state = 7;
    for (size_t i = 0; i < N; i++) {
        struct net_addr a;

        random_address(&a);
        cidr_from_addr(&a, net_addr_is_v4(&a) ? 96 + random_u32() % 33 : random_u32() % 129,
                       &nets[i]);
        snprintf(names[i], sizeof(names[i]), "%zu", i);
        cidr_tree_add(t, &nets[i], names[i]);
    }
    for (int k = 0; k < 5000; k++) {
        const char *slow = NULL, *fast;
        int best = -1;
        struct net_addr a;

        random_address(&a);
        for (size_t i = 0; i < N; i++)
            if (cidr_has(&nets[i], &a) && nets[i].len > best) {
                best = nets[i].len;
                slow = names[i];
            }
        fast = cidr_tree_find(t, &a);
        EXPECT(slow == fast);
    }
    cidr_tree_free(t);
}

TAP_MAIN
