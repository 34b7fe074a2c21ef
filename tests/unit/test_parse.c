#include <inttypes.h>

#include "lib/text/parse.h"
#include "tap.h"

#define UNTOUCHED 4711

static bool one_line(const char *s)
{
    return s[0] != '\0' && !strchr(s, '\n');
}

TEST(u64_accepts_decimal_digits)
{
    static const struct {
        const char *s;
        uint64_t v;
    } cases[] = {{"0", 0},
                 {"1", 1},
                 {"007", 7},
                 {"18446744073709551614", UINT64_MAX - 1},
                 {"18446744073709551615", UINT64_MAX}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = UNTOUCHED;
        EXPECT(parse_u64("--pids", cases[i].s, 0, UINT64_MAX, &v, NULL) == 0);
        EXPECT(v == cases[i].v);
    }
}

TEST(u64_refuses_everything_else)
{
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "0x10",
        "1.0",
        "1e3",
        "12a",
        "a",
        "\xd9\xa1",
        "18446744073709551616",
        "99999999999999999999999999",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};
        uint64_t v = UNTOUCHED;
        EXPECT(parse_u64("--pids", bad[i], 0, UINT64_MAX, &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED);
        EXPECT(e.kind == SG_ERR_INVALID && one_line(e.message));
        EXPECT(strncmp(e.message, "--pids '", 8) == 0);
    }
}

TEST(u64_range_is_inclusive)
{
    struct sg_error e = {0};
    uint64_t v = UNTOUCHED;

    EXPECT(parse_u64("--pids", "1", 1, 512, &v, &e) == 0 && v == 1);
    EXPECT(parse_u64("--pids", "512", 1, 512, &v, &e) == 0 && v == 512);
    EXPECT(parse_u64("--pids", "0", 1, 512, &v, &e) == -EINVAL);
    EXPECT_STR(e.message, "--pids '0' is out of range: use a number from 1 to 512");
    EXPECT(parse_u64("--pids", "513", 1, 512, &v, &e) == -EINVAL);
    EXPECT_STR(e.message, "--pids '513' is out of range: use a number from 1 to 512");
    EXPECT(parse_u64("--pids", "many", 1, 512, &v, &e) == -EINVAL);
    EXPECT_STR(e.message, "--pids 'many' is not a whole number: use digits only, from 1 to 512");
    EXPECT(v == 512);
}

TEST(size_units)
{
    static const struct {
        const char *s;
        uint64_t v;
    } cases[] = {
        {"0", 0},
        {"17", 17},
        {"17B", 17},
        {"1K", 1024},
        {"1k", 1024},
        {"512K", 512 * 1024},
        {"64M", 64ull << 20},
        {"64MB", 64ull << 20},
        {"64MiB", 64ull << 20},
        {"64m", 64ull << 20},
        {"2G", 2ull << 30},
        {"2GiB", 2ull << 30},
        {"1T", 1ull << 40},
        {"16777215T", 16777215ull << 40},
        {"18446744073709551615", UINT64_MAX},
        {"18014398509481983K", 18014398509481983ull << 10},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = UNTOUCHED;
        EXPECT(parse_size("--memory", cases[i].s, &v, NULL) == 0);
        EXPECT(v == cases[i].v);
    }
}

TEST(size_refuses_what_is_no_size)
{
    static const char *const bad[] = {"",     "M",    "12Q",  "-1M", "+1M",  "1.5G", "1 M",
                                      " 1M",  "1M ",  "1MM",  "1Mi", "1iB",  "1BB",  "1MiBs",
                                      "0x1M", "1e3M", "1M\n", "1b",  "1mib", "one"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};
        uint64_t v = UNTOUCHED;
        EXPECT(parse_size("--memory", bad[i], &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED && e.kind == SG_ERR_INVALID && one_line(e.message));
    }
}

TEST(size_error_says_what_to_do)
{
    struct sg_error e = {0};
    uint64_t v;

    EXPECT(parse_size("--memory", "12Q", &v, &e) == -EINVAL);
    EXPECT_STR(e.message, "--memory '12Q' is not a size: use a number with K, M, G or T, "
                          "for example 512M");
}

TEST(size_overflow)
{
    static const char *const big[] = {"16777216T", "18446744073709551616", "18014398509481984K",
                                      "18446744073709551615T", "99999999999999999999999G"};

    for (size_t i = 0; i < ARRAY_SIZE(big); i++) {
        struct sg_error e = {0};
        uint64_t v = UNTOUCHED;
        EXPECT(parse_size("--disk", big[i], &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED && strstr(e.message, "too large"));
    }
}

TEST(duration_units)
{
    static const struct {
        const char *s;
        uint64_t v;
    } cases[] = {
        {"0", 0},
        {"30", 30000},
        {"500ms", 500},
        {"30s", 30000},
        {"5m", 300000},
        {"1h", 3600000},
        {"1d", 86400000},
        {"1.5", 1500},
        {"1.5s", 1500},
        {"0.25h", 900000},
        {"0.001s", 1},
        {"1.000000000000s", 1000},
        {"1.9999999999s", 2000},
        {"0.1ms", 1}, /* not zero stays not zero */
        {"0.0s", 0},
        {"1.5ms", 2},
        {"213503982334d", 213503982334ull * 86400000},
        {"18446744073709551615ms", UINT64_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = UNTOUCHED;
        EXPECT(parse_duration_ms("--timeout", cases[i].s, &v, NULL) == 0);
        EXPECT(v == cases[i].v);
    }
}

TEST(duration_refuses_what_is_no_duration)
{
    static const char *const bad[] = {"",     "s",    "-5s", "+5s",    "5 s",  " 5s",  "5s ",
                                      "5S",   "5.s",  ".5s", "1.2.3s", "5us",  "5min", "5ss",
                                      "5ms5", "1e3s", "inf", "never",  "1,5s", "."};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};
        uint64_t v = UNTOUCHED;
        EXPECT(parse_duration_ms("--timeout", bad[i], &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED && e.kind == SG_ERR_INVALID && one_line(e.message));
    }
}

TEST(duration_error_says_what_to_do)
{
    struct sg_error e = {0};
    uint64_t v;

    EXPECT(parse_duration_ms("--timeout", "-5s", &v, &e) == -EINVAL);
    EXPECT_STR(e.message, "--timeout '-5s' is not a duration: use a number with ms, s, m, h or d, "
                          "for example 30s");
}

TEST(duration_overflow)
{
    static const char *const big[] = {"213503982335d", "18446744073709551616ms",
                                      "18446744073709551615s", "18446744073709551615.5ms"};

    for (size_t i = 0; i < ARRAY_SIZE(big); i++) {
        struct sg_error e = {0};
        uint64_t v = UNTOUCHED;
        EXPECT(parse_duration_ms("--timeout", big[i], &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED && strstr(e.message, "too long"));
    }
}

TEST(milli_rounds_down_to_thousandths)
{
    static const struct {
        const char *s;
        uint32_t v;
    } cases[] = {
        {"0", 0},          {"1", 1000},
        {"0.5", 500},      {"2.25", 2250},
        {"0.001", 1},      {"0.0009", 0},
        {"1.9999", 1999},  {"4294967.295", UINT32_MAX},
        {"64.000", 64000}, {"4294967.2959", UINT32_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t v = UNTOUCHED;
        EXPECT(parse_milli("--cpus", cases[i].s, &v, NULL) == 0);
        EXPECT(v == cases[i].v);
    }
}

TEST(milli_refuses)
{
    static const char *const bad[] = {"",      "-1",   "+1",  "1.",      ".5",
                                      "1.2.3", "1 ",   "one", "1e1",     "4294967.296",
                                      "1,5",   "500m", "0x1", "4294968", "99999999999999999999999"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_error e = {0};
        uint32_t v = UNTOUCHED;
        EXPECT(parse_milli("--cpus", bad[i], &v, &e) == -EINVAL);
        EXPECT(v == UNTOUCHED && e.kind == SG_ERR_INVALID && one_line(e.message));
    }
}

TEST(long_and_odd_inputs_are_shown_short_and_clean)
{
    struct sg_error e = {0};
    char text[1000];
    uint64_t v;

    memset(text, 'q', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    EXPECT(parse_size("--memory", text, &v, &e) == -EINVAL);
    EXPECT(strlen(e.message) < 160);
    EXPECT(strstr(e.message, "qqq...' is not a size") && strstr(e.message, "512M"));

    /* 59 bytes, then a character of two: the cut falls before it */
    memset(text, 'q', 59);
    memcpy(text + 59, "\xc3\xbc tail", 8);
    EXPECT(parse_size("--memory", text, &v, &e) == -EINVAL);
    EXPECT(strstr(e.message, "qqq...' is not a size") && !strchr(e.message, '\xc3'));

    EXPECT(parse_size("--memory", "1\n2\x1b[m", &v, &e) == -EINVAL);
    EXPECT(strncmp(e.message, "--memory '1?2?[m' is not", 24) == 0);
}

TEST(sizes_for_people)
{
    static const struct {
        uint64_t v;
        const char *s;
    } cases[] = {
        {0, "0 B"},
        {17, "17 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {512ull << 20, "512 MiB"},
        {3ull << 29, "1.5 GiB"},
        {(1ull << 30) - 1, "1 GiB"},
        {(1ull << 20) + 1, "1 MiB"},
        {1ull << 40, "1 TiB"},
        {1ull << 50, "1 PiB"},
        {UINT64_MAX, "16 EiB"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buf[32];
        EXPECT(format_size(cases[i].v, buf, sizeof(buf)) == buf);
        EXPECT_STR(buf, cases[i].s);
    }
}

TEST(durations_for_people)
{
    static const struct {
        uint64_t v;
        const char *s;
    } cases[] = {
        {0, "0 us"},          {999, "999 us"},          {1000, "1 ms"},
        {1234, "1.2 ms"},     {350000, "350 ms"},       {999960, "1 s"},
        {1200000, "1.2 s"},   {59960000, "1 min"},      {300000000, "5 min"},
        {3600000000u, "1 h"}, {129600000000u, "1.5 d"}, {UINT64_MAX, "213503982.3 d"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char buf[32];
        EXPECT(format_duration_us(cases[i].v, buf, sizeof(buf)) == buf);
        EXPECT_STR(buf, cases[i].s);
    }
}

TEST(format_into_a_short_buffer_is_cut)
{
    char buf[4];

    EXPECT_STR(format_size(512ull << 20, buf, sizeof(buf)), "512");
}

TAP_MAIN
