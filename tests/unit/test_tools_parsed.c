/* What is gathered of a cell's lines, and output by its format. */
#include "front/tools/parsed.h"

#include "tap.h"
#include "front/tools/budget.h"

#define OUT(s)    "{\"type\":\"stdout\",\"text\":\"" s "\",\"timestamp\":\"T\"}\n"
#define ERR(s)    "{\"type\":\"stderr\",\"text\":\"" s "\",\"timestamp\":\"T\"}\n"
#define RESULT(s) "{\"type\":\"result\",\"is_main_result\":" s "}\n"

/* ---- gathering ------------------------------------------------------------------------------- */

static struct strbuf told;

static bool on_line(void *owner, const char *line, size_t len)
{
    (void)owner;
    strbuf_add(&told, line, len);
    strbuf_addch(&told, '\n');
    return true;
}

/* In pieces of that many bytes. */
static void gather(struct gather *g, const char *lines, size_t piece)
{
    size_t len = strlen(lines);

    memset(g, 0, sizeof(*g));
    gather_init(g);
    g->on_line = on_line;
    strbuf_init(&told, 256u << 20);
    for (size_t n; len > 0; lines += n, len -= n) {
        n = piece < len ? piece : len;
        gather_bytes(g, lines, n);
    }
}

static void forget(struct gather *g)
{
    gather_done(g);
    strbuf_done(&told);
}

TEST(lines_in_pieces_of_any_length)
{
    static const char lines[] =
        "{\"type\":\"number_of_executions\",\"execution_count\":1}\n" OUT("a\\n") ERR("\\u00e9")
            OUT("b\\u0000c") RESULT("false,\"text\":\"d\"") "{\"type\":\"keepalive\"}\n" RESULT(
                "true,\"text\":\"v\"") "{\"type\":\"error\",\"name\":\"N\",\"value\":\"V\","
                                       "\"traceback\":\"T\"}\n"
                                       "{\"type\":\"end_of_execution\"}\n";
    static const char without[] = "{\"type\":\"keepalive\"}\n";
    struct gather g;

    for (size_t piece = 1; piece < sizeof(lines); piece += piece < 20 ? 1 : 37) {
        gather(&g, lines, piece);
        EXPECT(g.out.len == 5 && memcmp(g.out.buf, "a\nb\0c", 5) == 0);
        EXPECT_STR(g.err.buf, "\xc3\xa9");
        EXPECT_STR(g.results.buf, "{\"is_main_result\":false,\"text\":\"d\"},"
                                  "{\"is_main_result\":true,\"text\":\"v\"}");
        EXPECT_STR(g.error, "{\"name\":\"N\",\"value\":\"V\",\"traceback\":\"T\"}");
        EXPECT(told.len == sizeof(lines) - sizeof(without));
        EXPECT(!strstr(told.buf, "keepalive"));
        forget(&g);
    }
}

TEST(output_is_cut_between_characters)
{
    struct gather g = {0};
    char line[64 * 1024];

    gather_init(&g);
    for (size_t i = 0; !g.out_cut && i < 100; i++) {
        int n = snprintf(line, sizeof(line), "{\"type\":\"stdout\",\"text\":\"");
        for (size_t k = 0; k < 10007; k++) /* three bytes each */
            n += snprintf(line + n, sizeof(line) - (size_t)n, "\\u20ac");
        n += snprintf(line + n, sizeof(line) - (size_t)n, "\"}\n");
        gather_bytes(&g, line, (size_t)n);
    }
    EXPECT(g.out_cut && g.out.len <= TOOL_OUTPUT_MAX && g.out.len > TOOL_OUTPUT_MAX - 3);
    EXPECT(g.out.len % 3 == 0);
    size_t len = g.out.len;
    gather_bytes(&g, OUT("more"), strlen(OUT("more")));
    EXPECT(g.out.len == len && !g.err_cut);
    gather_done(&g);
}

/* A result of that many bytes. */
static void gather_large(struct gather *g, size_t n)
{
    static const char head[] = "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"";
    AUTO(free_p) char *text = malloc(n);

    memset(text, 'x', n);
    gather_bytes(g, head, sizeof(head) - 1);
    gather_bytes(g, text, n);
    gather_bytes(g, "\"}\n", 3);
}

TEST(results_without_room_are_left_out_and_that_is_said)
{
    struct gather g;

    gather(&g, "", 1);
    gather_large(&g, TOOL_RESULTS_MAX / 2);
    gather_large(&g, TOOL_RESULTS_MAX / 2);     /* together they are too many */
    gather_large(&g, TOOL_RESULTS_MAX + 10000); /* by itself it is */
    EXPECT(g.results.len < TOOL_RESULTS_MAX && g.results.len > TOOL_RESULTS_MAX / 2);
    EXPECT(strstr(g.err.buf, "all results together are larger") &&
           strstr(g.err.buf, "it is larger"));
    EXPECT(strstr(told.buf, "{\"type\":\"stderr\",\"text\":\"sandglass: a result was left out"));
    gather_bytes(&g, OUT("on"), strlen(OUT("on")));
    EXPECT_STR(g.out.buf, "on");
    forget(&g);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* What is parsed of these lines, or the error. Valid until the next call. */
static const char *parse(enum tool_format format, const char *lines)
{
    static struct strbuf out;
    static struct sg_error e;
    struct gather g;

    strbuf_done(&out);
    strbuf_init(&out, PARSED_MAX);
    gather(&g, lines, SIZE_MAX);
    int r = parsed_output(&g, format, &out, &e);
    forget(&g);
    return r < 0 ? e.message : out.buf;
}

TEST(json)
{
    EXPECT_STR(parse(FORMAT_JSON, OUT("{\\\"a\\\": [1, 2.50]}\\n")), "{\"a\":[1,2.50]}");
    EXPECT_STR(parse(FORMAT_JSON, OUT("12345678901234567890123")), "12345678901234567890123");
    EXPECT_STR(parse(FORMAT_JSON, OUT("\\\"text\\\"")), "\"text\"");
    EXPECT_STR(parse(FORMAT_JSON, OUT(" null ")), "null");
    EXPECT(strstr(parse(FORMAT_JSON, OUT("1, 2")), "not JSON"));
    EXPECT(strstr(parse(FORMAT_JSON, OUT("1] , [2")), "not JSON"));
    EXPECT(strstr(parse(FORMAT_JSON, OUT("{\\\"a\\\": NaN}")), "not JSON: line 1"));
    EXPECT(strstr(parse(FORMAT_JSON, OUT("{\\\"a\\\":")), "not JSON"));
    EXPECT(strstr(parse(FORMAT_JSON, OUT("hello")), "hello"));
}

TEST(text)
{
    EXPECT_STR(parse(FORMAT_TEXT, OUT("a \\\"b\\\"\\n")), "\"a \\\"b\\\"\\n\"");
}

TEST(the_value_counts_when_nothing_was_printed)
{
    static const char value[] =
        RESULT("true,\"text\":\"[1, \\\"}\\\\\\\\\\\"]\",\"json\":[1,\"}\\\\\"],\"json\":null,"
               "\"json\":{\"k\":[{}]}");

    EXPECT_STR(parse(FORMAT_JSON, value), "{\"k\":[{}]}"); /* the last one counts */
    EXPECT_STR(parse(FORMAT_TEXT, value), "\"[1, \\\"}\\\\\\\\\\\"]\"");
    EXPECT_STR(parse(FORMAT_JSON, OUT(" \\n") RESULT("true,\"text\":\"7\"")), "7");
    EXPECT_STR(parse(FORMAT_JSON, OUT("5") RESULT("true,\"text\":\"7\"")), "5");
    EXPECT_STR(parse(FORMAT_JSON, RESULT("true,\"text\":\"7\",\"json\":null")), "7");
    EXPECT(strstr(parse(FORMAT_JSON, RESULT("false,\"text\":\"7\"")), "there is no output"));
    EXPECT(strstr(parse(FORMAT_TEXT, ""), "there is no output"));
}

TEST(the_value_of_a_cell)
{
    struct gather g;
    size_t len = 0;

    gather(&g, RESULT("false,\"text\":\"d\"") RESULT("true,\"text\":\"t\",\"json\":{\"a\":1}"), 9);
    const char *v = parsed_value(&g, &len);
    EXPECT(v && len == 7 && memcmp(v, "{\"a\":1}", 7) == 0);
    forget(&g);
    gather(&g, RESULT("true,\"text\":\"t\""), 9);
    v = parsed_value(&g, &len);
    EXPECT(v && len == 3 && memcmp(v, "\"t\"", 3) == 0);
    forget(&g);
    gather(&g, RESULT("false,\"text\":\"d\""), 9);
    EXPECT(parsed_value(&g, &len) == NULL);
    forget(&g);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *table(const char *text)
{
    static struct strbuf out;
    static struct sg_error e;

    strbuf_done(&out);
    strbuf_init(&out, PARSED_MAX);
    return csv_to_json(text, strlen(text), &out, &e) < 0 ? e.message : out.buf;
}

TEST(tables)
{
    EXPECT_STR(table("a,b\n1,2\n"), "[{\"a\":\"1\",\"b\":\"2\"}]");
    EXPECT_STR(table("a,b\r\n1,2\r\n3,4"), "[{\"a\":\"1\",\"b\":\"2\"},{\"a\":\"3\",\"b\":\"4\"}]");
    EXPECT_STR(table("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n"),
               "[{\"a\":\"x, y\",\"b\":\"say \\\"hi\\\"\"}]");
    EXPECT_STR(table("a\n\"two\nlines\"\n"), "[{\"a\":\"two\\nlines\"}]");
    EXPECT_STR(table("a,b\n,\n"), "[{\"a\":\"\",\"b\":\"\"}]");
    EXPECT_STR(table("a\n\n\"\"\n\n"), "[{\"a\":\"\"}]");
    EXPECT_STR(table("\xef\xbb\xbf"
                     "a\n1\n"),
               "[{\"a\":\"1\"}]");
    EXPECT_STR(table("a,b\n"), "[]");
    EXPECT_STR(table("a\n1\r"), "[{\"a\":\"1\"}]");
    EXPECT_STR(table("a\nx\ry\n"), "[{\"a\":\"x\\ry\"}]");
}

TEST(what_is_no_table_is_told_with_its_row)
{
    EXPECT_STR(table(""), "there is no row with the names of columns");
    EXPECT_STR(table("\n\n"), "there is no row with the names of columns");
    EXPECT_STR(table("a,b\n1\n"), "row 2 has 1 fields, and the first row has 2");
    EXPECT_STR(table("a,b\n1,2\n\n1,2,3\n"), "row 3 has 3 fields, and the first row has 2");
    EXPECT_STR(table("a,a\n"), "two columns are called 'a'");
    EXPECT_STR(table("a\n\"x\n"), "row 2: a field in quotes has no end");
    EXPECT_STR(table("a\n\"x\"y\n"), "row 2: something follows the end of a field in quotes");
    EXPECT_STR(table("a\nx\"y\n"), "row 2: a quote in a field that does not begin with one");
    EXPECT(strstr(parse(FORMAT_CSV, OUT("a,b\\n1\\n")), "not a table: row 2"));
}

TEST(what_runs_have_gathered_is_bounded_for_all)
{
    size_t one = 0, other = 0, small = 0;

    EXPECT(budget_hold(&one, BUDGET_MAX) && one == BUDGET_MAX - BUDGET_FREE);
    EXPECT(!budget_hold(&other, 3 * BUDGET_FREE) && other == 0);
    EXPECT(budget_hold(&other, 2 * BUDGET_FREE) && other == BUDGET_FREE);
    /* A little is always there. */
    EXPECT(budget_hold(&small, BUDGET_FREE) && small == 0);

    char *line = xcalloc(1, 2 * BUDGET_FREE);
    memset(line, 'x', 2 * BUDGET_FREE - 1);
    memcpy(line, "{\"type\":\"result\",\"text\":\"", 25);
    memcpy(line + 2 * BUDGET_FREE - 5, "\"}\n", 4);
    struct gather g;
    gather(&g, line, 65536);
    EXPECT(g.results.len == 0 && strstr(g.err.buf, "no memory"));
    forget(&g);
    EXPECT(budget_hold(&one, 0) && budget_hold(&other, 0));
    gather(&g, line, 65536);
    EXPECT(g.results.len > BUDGET_FREE && g.err.len == 0);
    forget(&g);
    EXPECT(budget_hold(&one, BUDGET_MAX) && budget_hold(&one, 0));
    free(line);
}

TAP_MAIN
