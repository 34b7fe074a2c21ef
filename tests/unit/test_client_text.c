/* The small parts of the client that make text or take it apart: URLs, base64, times, tables,
 * progress, places. */
#include "tap.h"

#include <locale.h>
#include <time.h>

#include "cli/client/place.h"
#include "cli/client/progress.h"
#include "cli/client/table.h"
#include "lib/text/base64.h"
#include "cli/client/url.h"
#include "lib/command/when.h"

TAP_MAIN

/* ---- URLs ------------------------------------------------------------------------------------ */

TEST(urls_are_escaped)
{
    AUTO(strbuf_done) struct strbuf url = {0};

    strbuf_init(&url, 1024);
    strbuf_addstr(&url, "/files");
    url_add_query(&url, "path", "/a b/\303\251?&=%#\n");
    url_add_query(&url, "username", "root");
    EXPECT_STR(url.buf, "/files?path=%2Fa%20b%2F%C3%A9%3F%26%3D%25%23%0A&username=root");
}

TEST(filters_are_escaped_three_times)
{
    AUTO(strbuf_done) struct strbuf filter = {0}, url = {0};

    strbuf_init(&filter, 1024);
    strbuf_init(&url, 1024);
    url_add_pair(&filter, "a b", 3, "c&d");
    EXPECT_STR(filter.buf, "a%2520b=c%2526d");
    url_add_query(&url, "metadata", filter.buf);
    EXPECT_STR(url.buf, "?metadata=a%252520b%3Dc%252526d");
    url_add_pair(&filter, "xy", 1, "");
    EXPECT_STR(filter.buf, "a%2520b=c%2526d&x=");
}

TEST(ids)
{
    EXPECT(url_is_plain_name("i0123456789abcdefghi"));
    EXPECT(url_is_plain_name("abc-123_x"));
    EXPECT(!url_is_plain_name(""));
    EXPECT(!url_is_plain_name("-q"));
    EXPECT(!url_is_plain_name("a/b"));
    EXPECT(!url_is_plain_name("../a"));
    EXPECT(!url_is_plain_name("a.b"));
    EXPECT(!url_is_plain_name("a b"));
    EXPECT(!url_is_plain_name("a\nb"));
}

/* ---- base64 ---------------------------------------------------------------------------------- */

static void expect_64(const char *bytes, size_t len, const char *text)
{
    AUTO(strbuf_done) struct strbuf there = {0}, back = {0};

    strbuf_init(&there, 1024);
    strbuf_init(&back, 1024);
    base64_encode(&there, bytes, len);
    EXPECT_STR(there.buf, text);
    EXPECT(base64_decode(&back, text, strlen(text)) == 0);
    EXPECT(back.len == len && memcmp(back.buf, bytes, len) == 0);
}

TEST(base64_both_ways)
{
    expect_64("", 0, "");
    expect_64("f", 1, "Zg==");
    expect_64("fo", 2, "Zm8=");
    expect_64("foo", 3, "Zm9v");
    expect_64("foob", 4, "Zm9vYg==");
    expect_64("\0\377\376\375", 4, "AP/+/Q==");
}

TEST(base64_of_any_length)
{
    for (size_t len = 0; len < 9000; len += 997) {
        AUTO(free_p) char *bytes = xcalloc(1, len + 1);
        AUTO(strbuf_done) struct strbuf text = {0}, back = {0};

        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(i * 31);
        strbuf_init(&text, 1 << 20);
        strbuf_init(&back, 1 << 20);
        base64_encode(&text, bytes, len);
        EXPECT(base64_decode(&back, text.buf, text.len) == 0);
        EXPECT(back.len == len && memcmp(back.buf, bytes, len) == 0);
    }
}

TEST(base64_is_lenient_and_strict)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 64);
    EXPECT(base64_decode(&out, "Zm8", 3) == 0);
    EXPECT(base64_decode(&out, "__-_", 4) == 0);
    EXPECT(out.len == 5);
    EXPECT(base64_decode(&out, "Zm9vY", 5) == -EINVAL);
    EXPECT(base64_decode(&out, "Zm 9", 4) == -EINVAL);
    EXPECT(base64_decode(&out, "Zg==Zg==", 8) == -EINVAL);
    EXPECT(base64_decode(&out, "\303\251ab", 4) == -EINVAL);
}

/* ---- times ----------------------------------------------------------------------------------- */

static int64_t parsed(const char *text)
{
    int64_t ms = -1;

    return when_parse_ms(text, &ms) == 0 ? ms : -1;
}

TEST(times_are_read)
{
    EXPECT(parsed("1970-01-01T00:00:00Z") == 0);
    EXPECT(parsed("2026-03-01T12:30:00Z") == 1772368200000);
    EXPECT(parsed("2026-03-01T12:30:00.25Z") == 1772368200250);
    EXPECT(parsed("2026-03-01T12:30:00.123456789Z") == 1772368200123);
    EXPECT(parsed("2026-03-01T13:30:00+01:00") == 1772368200000);
    EXPECT(parsed("2026-03-01T10:00:00-02:30") == 1772368200000);
    EXPECT(parsed("2026-03-01 12:30:00z") == 1772368200000);
}

TEST(what_is_no_time)
{
    static const char *const texts[] = {
        "",
        "yesterday",
        "2026-03-01",
        "2026-03-01T12:30:00",
        "2026-13-01T12:30:00Z",
        "2026-00-01T12:30:00Z",
        "2026-03-32T12:30:00Z",
        "2026-03-01T24:30:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:30:00.Z",
        "2026-03-01T12:30:00Zx",
        "2026-03-01T12:30:00+1:00",
        "26-03-01T12:30:00Z",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (parsed(texts[i]) != -1)
            printf("# '%s' is taken for a time\n", texts[i]);
        EXPECT(parsed(texts[i]) == -1);
    }
}

static void expect_relative(int64_t seconds, const char *text)
{
    char buf[64];

    EXPECT_STR(when_relative(1000000 + seconds * 1000, 1000000, buf, sizeof(buf)), text);
}

TEST(times_are_told)
{
    expect_relative(0, "now");
    expect_relative(-1, "1 s ago");
    expect_relative(-59, "59 s ago");
    expect_relative(-60, "1 min ago");
    expect_relative(-180, "3 min ago");
    expect_relative(299, "in 5 min"); /* of the five that were asked for, none is lost */
    expect_relative(3600, "in 60 min");
    expect_relative(2 * 3600, "in 2 h");
    expect_relative(-47 * 3600, "47 h ago");
    expect_relative(-5 * 86400, "5 d ago");
}

TEST(local_times)
{
    char buf[64];

    setenv("TZ", "UTC-1", 1);
    tzset();
    EXPECT_STR(when_local(1772368200250, buf, sizeof(buf)), "2026-03-01 13:30:00.250");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
    {"NAME", TABLE_TEXT}, {"SIZE", TABLE_NUMBER}, {"NOTE", TABLE_TEXT}};

static void expect_table(const struct table *t, size_t width, bool colours, const char *text)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 4096);
    table_format(t, &out, width, colours);
    EXPECT_STR(out.buf, text);
}

TEST(tables_are_aligned)
{
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, ARRAY_SIZE(columns));
    expect_table(&t, 0, false, "NAME   SIZE   NOTE\n");
    table_add(&t, TABLE_PLAIN, "a");
    table_add(&t, TABLE_PLAIN, "1");
    table_add(&t, TABLE_PLAIN, "short");
    table_add(&t, TABLE_GREEN, "longer name");
    table_add(&t, TABLE_PLAIN, "123456");
    table_add(&t, TABLE_PLAIN, "");
    expect_table(&t, 0, false,
                 "NAME            SIZE   NOTE\n"
                 "a                  1   short\n"
                 "longer name   123456   \n");
}

TEST(colours_only_when_asked)
{
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, 1);
    table_add(&t, TABLE_GREEN, "x");
    expect_table(&t, 0, false, "NAME\nx\n");
    expect_table(&t, 0, true, "\033[1mNAME\033[0m\n\033[32mx\033[0m\n");
}

TEST(tables_count_columns_not_bytes)
{
    AUTO(table_done) struct table t = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    table_init(&t, columns, 2);
    table_add(&t, TABLE_PLAIN, "\303\251\303\251\303\251\303\251\303\251");
    table_add(&t, TABLE_PLAIN, "1");
    table_add(&t, TABLE_PLAIN, "\346\227\245\346\234\254"); /* two characters, four columns */
    table_add(&t, TABLE_PLAIN, "2");
    expect_table(&t, 0, false,
                 "NAME    SIZE\n"
                 "\303\251\303\251\303\251\303\251\303\251      1\n"
                 "\346\227\245\346\234\254       2\n");
}

TEST(what_drives_a_terminal_does_not_get_there)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    strbuf_init(&out, 256);
    EXPECT(table_clean(&out, "a\033[31mb\r\n\x7f\302\233c\377d\0", 16) == 15);
    EXPECT_STR(out.buf, "a?[31mb????c?d?");
}

TEST(the_last_column_is_cut)
{
    AUTO(table_done) struct table t = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    table_init(&t, columns, ARRAY_SIZE(columns));
    table_add(&t, TABLE_PLAIN, "a");
    table_add(&t, TABLE_PLAIN, "1");
    table_add(&t, TABLE_PLAIN, "0123456789");
    expect_table(&t, 20, false, "NAME   SIZE   NOTE\na         1   01234\342\200\246\n");
    expect_table(&t, 24, false, "NAME   SIZE   NOTE\na         1   0123456789\n");
}

TEST(tables_cut_names_and_leave_out_what_is_spare)
{
    static const struct table_column some[] = {
        {"ID", TABLE_TEXT}, {"SPARE", TABLE_SPARE}, {"NAME", TABLE_NAME}, {"END", TABLE_TEXT}};
    AUTO(table_done) struct table t = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    table_init(&t, some, ARRAY_SIZE(some));
    table_add(&t, TABLE_PLAIN, "1");
    table_add(&t, TABLE_PLAIN, "abcde");
    table_add(&t, TABLE_PLAIN, "0123456789abcdef");
    table_add(&t, TABLE_PLAIN, "end");
    expect_table(&t, 35, false,
                 "ID   SPARE   NAME               END\n"
                 "1    abcde   0123456789abcdef   end\n");
    expect_table(&t, 34, false, "ID   NAME               END\n1    0123456789abcdef   end\n");
    expect_table(&t, 26, false,
                 "ID   NAME              END\n1    0123456789abcd\342\200\246   end\n");
    expect_table(
        &t, 22, false,
        "ID   NAME           E\342\200\246\n1    0123456789a\342\200\246   e\342\200\246\n");
    expect_table(&t, 1, false, "ID   NAME\n1    0123456789a\342\200\246\n");
}

TEST(tables_grow)
{
    AUTO(table_done) struct table t = {0};

    table_init(&t, columns, 2);
    for (int i = 0; i < 1000; i++)
        table_add(&t, TABLE_PLAIN, "x");
    EXPECT(t.n_cells == 1000);
    EXPECT_STR(t.cells[999].text, "x");
}

/* ---- progress -------------------------------------------------------------------------------- */

static void expect_progress(const struct progress *p, uint64_t ms, size_t cols, const char *text)
{
    char buf[256];

    progress_format(p, ms, cols, buf, sizeof(buf));
    EXPECT_STR(buf, text);
}

TEST(progress_with_a_total)
{
    struct progress p = {.name = "data.bin", .done = 512u << 20, .total = 1u << 30};

    expect_progress(
        &p, 2000, 79,
        "data.bin  [===========>          ]   50%  512 MiB of 1 GiB  256 MiB/s  2 s left");
    /* no room for a bar */
    expect_progress(&p, 2000, 60, "data.bin   50%  512 MiB of 1 GiB  256 MiB/s  2 s left");
    expect_progress(&p, 2000, 20, "data.bin   50%  512 ");
    p.done = p.total + 1; /* it grew */
    expect_progress(&p, 1000, 60, "data.bin  [=================]  100%  1 GiB of 1 GiB  1 GiB/s");
}

TEST(progress_without_a_total)
{
    struct progress p = {.name = "x", .done = 3u << 20};

    expect_progress(&p, 1500, 80, "x  3 MiB  2 MiB/s");
    expect_progress(&p, 0, 80, "x  3 MiB  0 B/s");
    p.files = 12;
    expect_progress(&p, 1500, 80, "x  3 MiB in 12 files  2 MiB/s");
}

TEST(progress_with_a_hostile_name)
{
    struct progress p = {.name = "a\033[2Jb"};

    expect_progress(&p, 0, 80, "a?[2Jb  0 B  0 B/s");
}

/* ---- places ---------------------------------------------------------------------------------- */

static void expect_place(const char *arg, const char *id, const char *path)
{
    AUTO(place_done) struct place p = {0};

    place_parse(&p, arg);
    EXPECT_STR(p.id ? p.id : "(here)", id);
    EXPECT_STR(p.path, path);
}

TEST(places)
{
    expect_place("iabc:/tmp/x", "iabc", "/tmp/x");
    expect_place("iabc:x:y", "iabc", "x:y");
    expect_place("iabc:", "iabc", ".");
    expect_place("/tmp/x", "(here)", "/tmp/x");
    expect_place("./a:b", "(here)", "./a:b");
    expect_place("dir/a:b", "(here)", "dir/a:b");
    expect_place(":x", "(here)", ":x");
    expect_place("-", "(here)", "-");
    expect_place("a.b:c", "(here)", "a.b:c");
}

static void expect_last(const char *path, const char *name)
{
    AUTO(free_p) char *got = place_last_name(path);

    EXPECT_STR(got, name);
}

TEST(names_of_copies)
{
    expect_last("/a/b", "b");
    expect_last("/a/b//", "b");
    expect_last("b", "b");
    expect_last("/", "");
    expect_last(".", "");
    expect_last("a/..", "");
    expect_last("~", "");
    expect_last("", "");
}

TEST(names_from_a_sandbox)
{
    char longest[257];

    memset(longest, 'x', sizeof(longest));
    longest[255] = '\0';
    EXPECT(place_is_name(longest));
    longest[255] = 'x';
    longest[256] = '\0';
    EXPECT(!place_is_name(longest));
    EXPECT(place_is_name("a"));
    EXPECT(place_is_name("..a"));
    EXPECT(place_is_name("a b\n"));
    EXPECT(!place_is_name(""));
    EXPECT(!place_is_name("."));
    EXPECT(!place_is_name(".."));
    EXPECT(!place_is_name("../a"));
    EXPECT(!place_is_name("a/"));
    EXPECT(!place_is_name("/etc"));
}

TEST(joined_paths)
{
    AUTO(free_p)
    char *a = place_join("/a", "b"), *b = place_join("/a/", "b"), *c = place_join("", "b"),
         *d = place_join("/", "b");

    EXPECT_STR(a, "/a/b");
    EXPECT_STR(b, "/a/b");
    EXPECT_STR(c, "b");
    EXPECT_STR(d, "/b");
}
