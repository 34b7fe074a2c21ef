/* Days and cursors, as queries bring them. */
#include "tap.h"

#include "front/v1/cursor.h"
#include "front/v1/days.h"

TAP_MAIN

#define NOON_MS 1794744000000 /* 2026-11-15T12:00:00Z */

TEST(days_default_to_the_last_thirty)
{
    struct sg_error e;
    struct days d;

    EXPECT(days_parse(NULL, NULL, NOON_MS, &d, &e) == 0);
    EXPECT_STR(d.from, "2026-10-17");
    EXPECT_STR(d.to, "2026-11-15");
    EXPECT(days_parse(NULL, "2024-03-01", NOON_MS, &d, &e) == 0);
    EXPECT_STR(d.from, "2024-02-01");
    EXPECT_STR(d.to, "2024-03-01");
    EXPECT(days_parse("2026-11-01", NULL, NOON_MS, &d, &e) == 0);
    EXPECT_STR(d.from, "2026-11-01");
    EXPECT_STR(d.to, "2026-11-15");
    EXPECT(days_parse(NULL, "1970-01-03", NOON_MS, &d, &e) == 0);
    EXPECT_STR(d.from, "1970-01-01");
}

TEST(days_that_are_none)
{
    static const char *const bad[] = {"",
                                      "today",
                                      "2026-11-1",
                                      "2026-13-01",
                                      "2026-02-30",
                                      "2025-02-29",
                                      "2026-00-10",
                                      "2026-11-00",
                                      "2026/11/15",
                                      "20261115",
                                      "2026-11-15T00:00:00Z",
                                      "1969-12-31",
                                      "+026-11-15",
                                      "2026-11-15 ",
                                      "0000-00-00"};
    struct days d = {.from = "x"};
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        EXPECT(days_parse(bad[i], NULL, NOON_MS, &d, &e) == -EINVAL);
        EXPECT(e.kind == SG_ERR_INVALID && strstr(e.message, "from"));
        EXPECT(days_parse(NULL, bad[i], NOON_MS, &d, &e) == -EINVAL);
    }
    EXPECT_STR(d.from, "x");
}

TEST(ranges)
{
    struct sg_error e;
    struct days d;

    EXPECT(days_parse("2026-11-15", "2026-11-15", NOON_MS, &d, &e) == 0);
    EXPECT(days_parse("2026-11-16", "2026-11-15", NOON_MS, &d, &e) == -EINVAL);
    EXPECT(days_parse("2026-11-16", NULL, NOON_MS, &d, &e) == -EINVAL);
    EXPECT(days_parse("2024-01-01", "2025-02-03", NOON_MS, &d, &e) == 0);
    EXPECT(days_parse("2024-01-01", "2025-02-04", NOON_MS, &d, &e) == -EINVAL);
    EXPECT(strstr(e.message, "400 days"));
    EXPECT(days_parse("9999-12-31", "9999-12-31", NOON_MS, &d, &e) == 0);
}

TEST(a_cursor_comes_back_as_it_went)
{
    struct ctx_row row = {.id = "abcdefghij0123456789", .created_ms = NOON_MS};
    char text[CURSOR_LEN + 1];
    struct cursor c;

    cursor_make(&row, text);
    EXPECT(strlen(text) == CURSOR_LEN);
    EXPECT(cursor_read(text, &c) == 0 && c.at_ms == NOON_MS);
    EXPECT_STR(c.id, row.id);
}

TEST(cursors_that_are_none)
{
    static const char *const bad[] = {
        "",
        "0",
        "000001a1dc0c0a00abcdefghij012345678",
        "000001a1dc0c0a00abcdefghij01234567890",
        "000001a1dc0c0a00ABCDEFGHIJ0123456789",
        "000001A1DC0C0A00abcdefghij0123456789",
        "800001a1dc0c0a00abcdefghij0123456789",
        "ffffffffffffffffabcdefghij0123456789",
        "000001a1dc0c0a0gabcdefghij0123456789",
        "-00001a1dc0c0a00abcdefghij0123456789",
    };
    struct cursor c;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(cursor_read(bad[i], &c) == -EINVAL);
}
