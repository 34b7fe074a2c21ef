#include "tap.h"

#include "lib/settings/prices.h"
#include "lib/settings/settings.h"

#define HOUR_US 3600000000ull
#define GIB     (1ull << 30)

static struct prices of(const char *text)
{
    struct prices p = {0};
    struct sg_error e = {0};

    if (prices_parse(text, &p, &e) < 0)
        printf("# %s\n", e.message);
    EXPECT(e.kind == SG_ERR_NONE);
    return p;
}

static const char *cost(const char *text, enum price which, uint64_t quantity)
{
    static char ret[PRICE_TEXT_MAX];
    struct prices p = of(text);

    price_format(price_cost(&p, which, quantity), ret);
    return ret;
}

static void refused(const char *text, const char *says)
{
    struct prices p = {.currency = "DEM"};
    struct sg_error e = {0};
    int r = prices_parse(text, &p, &e);

    if (r >= 0 || !strstr(e.message, says))
        printf("# '%s': %d %s\n", text, r, e.message);
    EXPECT(r < 0 && strstr(e.message, says));
    EXPECT_STR(p.currency, "DEM");
}

TEST(a_table_is_read)
{
    struct prices p = of(" cpu=0.05/h, memory=0.006/h ,egress=0.09/G,execution=0.0001,sandbox=2,"
                         "currency=EUR ");

    EXPECT(p.set);
    EXPECT_STR(p.currency, "EUR");
    EXPECT(p.of[PRICE_CPU].amount == 50000000000ull && p.of[PRICE_CPU].unit == 'h');
    EXPECT(p.of[PRICE_MEMORY].amount == 6000000000ull && p.of[PRICE_MEMORY].unit == 'h');
    EXPECT(p.of[PRICE_EGRESS].amount == 90000000000ull && p.of[PRICE_EGRESS].unit == 'G');
    EXPECT(p.of[PRICE_EXECUTION].amount == 100000000 && p.of[PRICE_EXECUTION].unit == 0);
    EXPECT(p.of[PRICE_SANDBOX].amount == 2 * (uint64_t)PRICE_ONE);
    EXPECT(!of("").set && !of("  ").set);
    EXPECT_STR(of("cpu=1/s").currency, "USD");
    EXPECT(of("cpu=1000000/s").of[PRICE_CPU].amount == 1000000ull * PRICE_ONE);
    EXPECT(of("cpu=0.000000000001/s").of[PRICE_CPU].amount == 1);
}

TEST(what_is_wrong_is_named)
{
    refused("cpu", "'cpu' is not understood: name cpu, memory");
    refused("gpu=1/h", "'gpu=1/h' is not understood");
    refused("cpu=1/h,,memory=1/h", "'' is not understood");
    refused("cpu=1/h,", "'' is not understood");
    refused("cpu=1", "'cpu=1' is not a price: write it like cpu=0.05/h (or /s, /m, /d)");
    refused("cpu=1/G", "'cpu=1/G'");
    refused("cpu=1/", "'cpu=1/'");
    refused("cpu=1/hh", "'cpu=1/hh'");
    refused("cpu=/h", "'cpu=/h'");
    refused("cpu=-1/h", "'cpu=-1/h'");
    refused("cpu=1.,memory=1/h", "'cpu=1.'");
    refused("cpu=.5/h", "'cpu=.5/h'");
    refused("cpu=1e3/h", "'cpu=1e3/h'");
    refused("cpu=0.0000000000001/h", "12 decimals");
    refused("cpu=1000000.1/h", "up to 1000000");
    refused("cpu=99999999999999999999/h", "up to 1000000");
    refused("egress=1/h", "like egress=0.09/G (or /K, /M, /T)");
    refused("execution=1/h", "like execution=0.0001,");
    refused("cpu=1/h,cpu=2/h", "cpu is given twice");
    refused("currency=", "'currency=' is not a currency");
    refused("currency=US$", "'currency=US$' is not a currency");
    refused("currency=ABCDEFGHIJKLMNOP", "up to 15 letters");
}

TEST(what_a_price_is_for)
{
    struct prices p = of("cpu=1/m,memory=1/h,egress=1/G,execution=1");
    char text[PRICE_TEXT_MAX];

    price_per(&p, PRICE_CPU, text);
    EXPECT_STR(text, "minute");
    price_per(&p, PRICE_MEMORY, text);
    EXPECT_STR(text, "GiB hour");
    price_per(&p, PRICE_EGRESS, text);
    EXPECT_STR(text, "GiB");
    price_per(&p, PRICE_EXECUTION, text);
    EXPECT_STR(text, "execution");
}

TEST(costs_are_exact)
{
    EXPECT_STR(cost("cpu=0.05/h", PRICE_CPU, HOUR_US), "0.05");
    EXPECT_STR(cost("cpu=0.05/h", PRICE_CPU, HOUR_US / 2), "0.025");
    EXPECT_STR(cost("cpu=3.6/h", PRICE_CPU, 1), "0.000000001");
    EXPECT_STR(cost("cpu=0.1/d", PRICE_CPU, 24 * HOUR_US * 3), "0.3"); /* no 0.30000000000000004 */
    EXPECT_STR(cost("memory=0.006/h", PRICE_MEMORY, 1024ull * 3600 * 1000), "0.006");
    EXPECT_STR(cost("memory=1/s", PRICE_MEMORY, 512 * 1000), "0.5");
    EXPECT_STR(cost("egress=0.09/G", PRICE_EGRESS, 10 * GIB), "0.9");
    EXPECT_STR(cost("egress=1/K", PRICE_EGRESS, 1536), "1.5");
    EXPECT_STR(cost("execution=0.0001", PRICE_EXECUTION, 12345), "1.2345");
    EXPECT_STR(cost("sandbox=0.01", PRICE_SANDBOX, 100), "1");
    EXPECT_STR(cost("cpu=1/h", PRICE_MEMORY, UINT64_MAX), "0");
    EXPECT_STR(cost("cpu=0/h", PRICE_CPU, UINT64_MAX), "0");
    EXPECT_STR(cost("", PRICE_CPU, 5), "0");
}

TEST(a_part_is_rounded_to_the_nearest)
{
    /* 1/3 and 2/3 of 1e-12 */
    EXPECT_STR(cost("cpu=0.000000000001/h", PRICE_CPU, HOUR_US / 3), "0");
    EXPECT_STR(cost("cpu=0.000000000001/h", PRICE_CPU, HOUR_US / 3 * 2), "0.000000000001");
    EXPECT_STR(cost("cpu=0.000000000001/h", PRICE_CPU, HOUR_US / 2), "0.000000000001");
    EXPECT_STR(cost("cpu=0.000000000001/h", PRICE_CPU, HOUR_US / 2 - 1), "0");
}

TEST(the_most_is_no_overflow)
{
    struct prices p = of("cpu=1000000/s,egress=1000000/K");

    EXPECT(price_cost(&p, PRICE_CPU, UINT64_MAX) == UINT64_MAX);
    EXPECT(price_cost(&p, PRICE_EGRESS, UINT64_MAX) == UINT64_MAX);
    EXPECT(price_sum(UINT64_MAX, 1) == UINT64_MAX && price_sum(1, 2) == 3);
}

TEST(a_server_does_not_start_with_a_bad_table)
{
    struct settings s;
    struct sg_error e = {0};

    settings_init(&s);
    EXPECT(settings_set(&s, SETTING_prices, "prices", "cpu=0.05/h,gpu=1/h", &e) == 0);
    EXPECT(settings_check(&s, &e) < 0);
    EXPECT(strstr(e.message, "'gpu=1/h'"));
    EXPECT(settings_set(&s, SETTING_prices, "prices", "cpu=0.05/h", &e) == 0);
    EXPECT(settings_check(&s, &e) == 0);
}

TAP_MAIN
