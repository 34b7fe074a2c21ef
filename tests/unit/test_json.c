#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/text/json.h"
#include "lib/text/json_check.h"
#include "tap.h"

#define FFFD "\xef\xbf\xbd"

static struct strbuf out;
static struct json j;

static void start(void)
{
    strbuf_done(&out);
    strbuf_init(&out, 1 << 20);
    jw_init(&j, &out);
}

static const char *quoted(const char *data, size_t len)
{
    start();
    jw_bytes(&j, data, len);
    return out.buf;
}

#define EXPECT_QUOTED(in, want) EXPECT_STR(quoted(in, sizeof(in) - 1), "\"" want "\"")

TEST(empty_containers)
{
    start();
    jw_object_begin(&j);
    jw_object_end(&j);
    EXPECT_STR(out.buf, "{}");

    start();
    jw_array_begin(&j);
    jw_array_end(&j);
    EXPECT_STR(out.buf, "[]");
}

TEST(every_value_and_every_comma)
{
    start();
    jw_object_begin(&j);
    jw_key(&j, "text");
    jw_string(&j, "hi");
    jw_key(&j, "none");
    jw_string(&j, NULL);
    jw_key(&j, "list");
    jw_array_begin(&j);
    jw_u64(&j, UINT64_MAX);
    jw_i64(&j, INT64_MIN);
    jw_array_begin(&j);
    jw_array_end(&j);
    jw_object_begin(&j);
    jw_key(&j, "a");
    jw_bool(&j, true);
    jw_key(&j, "b");
    jw_bool(&j, false);
    jw_object_end(&j);
    jw_null(&j);
    jw_array_end(&j);
    jw_key(&j, "last");
    jw_u64(&j, 0);
    jw_object_end(&j);
    EXPECT_STR(out.buf, "{\"text\":\"hi\",\"none\":null,\"list\":[18446744073709551615,"
                        "-9223372036854775808,[],{\"a\":true,\"b\":false},null],\"last\":0}");
    EXPECT(j.depth == 0 && !j.after_key);
}

TEST(values_at_the_top)
{
    start();
    jw_u64(&j, 5);
    EXPECT_STR(out.buf, "5");
    start();
    jw_string(&j, "");
    EXPECT_STR(out.buf, "\"\"");
}

TEST(fixed_point)
{
    static const struct {
        uint64_t v;
        unsigned decimals;
        const char *s;
    } cases[] = {
        {1234, 3, "1.234"},
        {5, 3, "0.005"},
        {0, 3, "0.000"},
        {1000, 3, "1.000"},
        {7, 0, "7"},
        {7, 1, "0.7"},
        {UINT64_MAX, 0, "18446744073709551615"},
        {UINT64_MAX, 6, "18446744073709.551615"},
        {UINT64_MAX, 19, "1.8446744073709551615"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        start();
        jw_fixed(&j, cases[i].v, cases[i].decimals);
        EXPECT_STR(out.buf, cases[i].s);
    }
}

TEST(escapes)
{
    EXPECT_QUOTED("plain text", "plain text");
    EXPECT_QUOTED("\"", "\\\"");
    EXPECT_QUOTED("a\\b", "a\\\\b");
    EXPECT_QUOTED("\n\r\t\b\f", "\\n\\r\\t\\b\\f");
    EXPECT_QUOTED("\x01\x1f\x1b[0m", "\\u0001\\u001f\\u001b[0m");
    EXPECT_QUOTED("\x7f", "\\u007f");
    EXPECT_QUOTED("nul\0inside", "nul\\u0000inside");
    EXPECT_QUOTED("\0", "\\u0000");
    EXPECT_QUOTED("</script>", "</script>");
}

TEST(keys_are_escaped_too)
{
    start();
    jw_object_begin(&j);
    jw_key(&j, "a\"b\n\xff");
    jw_null(&j);
    jw_object_end(&j);
    EXPECT_STR(out.buf, "{\"a\\\"b\\n" FFFD "\":null}");
}

TEST(valid_utf8_is_kept)
{
    EXPECT_QUOTED("\xc2\x80", "\xc2\x80");                 /* U+0080 */
    EXPECT_QUOTED("\xdf\xbf", "\xdf\xbf");                 /* U+07FF */
    EXPECT_QUOTED("\xe0\xa0\x80", "\xe0\xa0\x80");         /* U+0800 */
    EXPECT_QUOTED("\xed\x9f\xbf", "\xed\x9f\xbf");         /* U+D7FF */
    EXPECT_QUOTED("\xee\x80\x80", "\xee\x80\x80");         /* U+E000 */
    EXPECT_QUOTED("\xef\xbf\xbf", "\xef\xbf\xbf");         /* U+FFFF */
    EXPECT_QUOTED("\xf0\x90\x80\x80", "\xf0\x90\x80\x80"); /* U+10000 */
    EXPECT_QUOTED("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"); /* U+10FFFF */
    EXPECT_QUOTED("a\xf0\x9f\x98\x80z", "a\xf0\x9f\x98\x80z");
}

TEST(each_invalid_byte_becomes_one_replacement)
{
    EXPECT_QUOTED("\x80", FFFD);
    EXPECT_QUOTED("a\xff"
                  "b",
                  "a" FFFD "b");
    EXPECT_QUOTED("\xfe\xff", FFFD FFFD);
    EXPECT_QUOTED("\xc0\x80", FFFD FFFD);                   /* overlong NUL */
    EXPECT_QUOTED("\xc1\xbf", FFFD FFFD);                   /* overlong 0x7f */
    EXPECT_QUOTED("\xe0\x9f\xbf", FFFD FFFD FFFD);          /* overlong U+07FF */
    EXPECT_QUOTED("\xed\xa0\x80", FFFD FFFD FFFD);          /* surrogate */
    EXPECT_QUOTED("\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD); /* overlong U+FFFF */
    EXPECT_QUOTED("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD); /* U+110000 */
    EXPECT_QUOTED("\xf5\x80\x80\x80", FFFD FFFD FFFD FFFD);
    EXPECT_QUOTED("\xe2\x82\x28", FFFD FFFD "(");
    EXPECT_QUOTED("\xe2\x28\xa1", FFFD "(" FFFD);
    EXPECT_QUOTED("\xf0\x9f\x98\"", FFFD FFFD FFFD "\\\"");
}

TEST(a_sequence_cut_by_the_end)
{
    EXPECT_QUOTED("a\xc3", "a" FFFD);
    EXPECT_QUOTED("a\xe2\x82", "a" FFFD FFFD);
    EXPECT_QUOTED("a\xf0\x9f\x98", "a" FFFD FFFD FFFD);

    /* The bytes beyond the given length would complete the character and must not be looked at. */
    EXPECT_STR(quoted("\xc3\xbc", 1), "\"" FFFD "\"");
}

/* Whatever comes in, what goes out has no raw control character and no stray quote. */
TEST(every_single_byte)
{
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        const char *s = quoted(&byte, 1);
        size_t n = strlen(s);

        EXPECT(n >= 3 && s[0] == '"' && s[n - 1] == '"');
        for (size_t i = 1; i + 1 < n; i++)
            EXPECT((unsigned char)s[i] >= 0x20 && (unsigned char)s[i] != 0x7f &&
                   (s[i] != '"' || s[i - 1] == '\\'));
    }
}

TEST(nesting_up_to_the_bound)
{
    start();
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        jw_array_begin(&j);
    jw_u64(&j, 1);
    jw_u64(&j, 2);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        jw_array_end(&j);
    EXPECT_STR(out.buf, "[[[[[[[[[[[[[[[[1,2]]]]]]]]]]]]]]]]");
}

TEST(a_full_buffer_is_marked)
{
    struct strbuf small;
    struct json w;

    strbuf_init(&small, 5);
    jw_init(&w, &small);
    jw_string(&w, "0123456789");
    EXPECT_STR(small.buf, "\"0123");
    EXPECT(small.truncated);
    strbuf_done(&small);
}

static bool dies(void (*fn)(void))
{
    fflush(stdout);
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        close(STDERR_FILENO);
        start();
        fn();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void too_deep(void)
{
    for (int i = 0; i <= JSON_DEPTH_MAX; i++)
        jw_array_begin(&j);
}

static void end_without_begin(void)
{
    jw_object_end(&j);
}

static void two_keys(void)
{
    jw_object_begin(&j);
    jw_key(&j, "a");
    jw_key(&j, "b");
}

static void end_after_key(void)
{
    jw_object_begin(&j);
    jw_key(&j, "a");
    jw_object_end(&j);
}

static void key_at_the_top(void)
{
    jw_key(&j, "a");
}

TEST(nesting_errors_abort)
{
    EXPECT(dies(too_deep));
    EXPECT(dies(end_without_begin));
    EXPECT(dies(two_keys));
    EXPECT(dies(end_after_key));
    EXPECT(dies(key_at_the_top));
    strbuf_done(&out);
}

TEST(raw_values)
{
    strbuf_init(&out, 4096);
    jw_init(&j, &out);
    jw_array_begin(&j);
    jw_raw(&j, "{\"a\":1}", 7);
    jw_raw(&j, "{}", 2);
    jw_array_end(&j);
    EXPECT_STR(out.buf, "[{\"a\":1},{}]");
    strbuf_done(&out);
}

TEST(objects_of_others)
{
    static const char *const good[] = {
        "{}",
        " { } ",
        "{\"a\": [1, -0.5e+3, true, false, null, \"x\", {}]}",
        "{\"\\u00e9\\n\\\"\\/\": \"\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\"}",
    };
    static const char *const bad[] = {
        "",
        "[]",
        "1",
        "null",
        "{",
        "{}}",
        "{} {}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":+1}",
        "{\"a\":NaN}",
        "{\"a\":tru}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\xc3\"}",
        "{\"a\":\"\xc0\x80\"}",
        "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xf4\x90\x80\x80\"}",
        "{\"a\":\"x",
        "{\"a\":[}",
        "{\"a\":\"\\",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        EXPECT(json_check_object(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (json_check_object(bad[i], strlen(bad[i])))
            printf("# taken: %s\n", bad[i]);
        EXPECT(!json_check_object(bad[i], strlen(bad[i])));
    }
    EXPECT(!json_check_object("{\0}", 3));
}

TEST(depth_of_others_is_bounded)
{
    char deep[512] = "{\"a\":";
    size_t n = 5;

    memset(deep + n, '[', 63);
    memset(deep + n + 63, ']', 63);
    memcpy(deep + n + 126, "}", 2);
    EXPECT(json_check_object(deep, strlen(deep)));
    memset(deep + n, '[', 64);
    memset(deep + n + 64, ']', 64);
    memcpy(deep + n + 128, "}", 2);
    EXPECT(!json_check_object(deep, strlen(deep)));
}

static struct json_weight weigh(const char *text)
{
    return json_weigh(text, strlen(text));
}

TEST(weight_is_told_before_a_tree_is_made)
{
    EXPECT(weigh("7").depth == 0 && weigh("7").values == 0);
    EXPECT(weigh("{}").depth == 1 && weigh("{}").values == JSON_WEIGHT_NESTED);
    EXPECT(weigh("[1,2,3]").values == JSON_WEIGHT_NESTED + 2);
    EXPECT(weigh("[[],[[]]]").depth == 3 &&
           weigh("[[],[[]]]").values == 4 * JSON_WEIGHT_NESTED + 1);
    /* Text is no structure, whatever it has in it. */
    EXPECT(weigh("\"[[{,,\\\"[,\"").values == 0);
    EXPECT(weigh("\"\\\\\",[").depth == 1);
    /* What is no JSON is weighed all the same, to its end. */
    EXPECT(weigh("]]]}}[").depth == 1 && weigh("\"[[[").depth == 0 && weigh("\"\\").depth == 0);
}

TAP_MAIN
