/* Lines of an execution: text of any bytes, JSON that is some and JSON that is none, packets in and
 * out of order. Whatever comes, what goes out is lines of valid JSON in ASCII. */
#include <jansson.h>

#include "front/interpreter/frames.h"
#include "front/interpreter/results.h"
#include "tap.h"

/* ---- a rig ----------------------------------------------------------------------------------- */

static struct strbuf out;
static struct lines lines;
static struct results results;

static void on_write(void *owner, const char *p, size_t len)
{
    strbuf_add(owner, p, len);
}

static void begin(void)
{
    strbuf_init(&out, 64u << 20);
    lines = (struct lines){.write = on_write, .owner = &out};
    results_init(&results, &lines, NULL);
}

/* Every line must be JSON, and there is nothing but lines. */
static void end(void)
{
    const char *at = out.buf, *nl;

    while ((nl = strchr(at, '\n'))) {
        json_error_t e;
        json_t *v = json_loadb(at, (size_t)(nl - at), JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
        if (!v)
            printf("# %s: %.*s\n", e.text, (int)(nl - at < 300 ? nl - at : 300), at);
        EXPECT(json_is_object(v));
        json_decref(v);
        at = nl + 1;
    }
    EXPECT(*at == '\0');
    for (size_t i = 0; i < out.len; i++)
        EXPECT(out.buf[i] == '\n' || (out.buf[i] >= 0x20 && out.buf[i] < 0x7f) ||
               out.buf[i] == 0x7f);
    results_done(&results);
    strbuf_done(&out);
}

#define PACKET(text) results_packet(&results, text, sizeof(text) - 1)

static void expect_out(const char *text)
{
    EXPECT_STR(out.buf, text);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* What text means, the slow way: U+FFFD for each longest start of a character that is none. */
static size_t naive_next(const unsigned char *p, size_t len, uint32_t *ret)
{
    static const struct {
        unsigned char first, last, lo, hi;
        int more;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
                 {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2},
                 {0xee, 0xef, 0x80, 0xbf, 2}, {0xf0, 0xf0, 0x90, 0xbf, 3},
                 {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3}};

    *ret = p[0];
    if (p[0] < 0x80)
        return 1;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        if (p[0] < forms[i].first || p[0] > forms[i].last)
            continue;
        *ret = p[0] & (0x3f >> forms[i].more);
        for (size_t n = 1; n <= (size_t)forms[i].more; n++) {
            if (n >= len || p[n] < (n == 1 ? forms[i].lo : 0x80) ||
                p[n] > (n == 1 ? forms[i].hi : 0xbf)) {
                *ret = 0xfffd;
                return n;
            }
            *ret = *ret << 6 | (p[n] & 0x3f);
        }
        return (size_t)forms[i].more + 1;
    }
    *ret = 0xfffd;
    return 1;
}

static void naive(struct strbuf *s, const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += naive_next(p + i, len - i, &c);
        const char *letter = c ? strchr("\bb\ff\nn\rr\tt\"\"\\\\", (int)c) : NULL;
        if (c >= 0x10000)
            strbuf_addf(s, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                        0xdc00 + ((c - 0x10000) & 0x3ff));
        else if (letter && (c < 0x20 || c == '"' || c == '\\'))
            strbuf_addf(s, "\\%c", letter[1]);
        else if (c < 0x20 || c > 0x7f)
            strbuf_addf(s, "\\u%04x", c);
        else
            strbuf_addch(s, (char)c);
    }
}

/* In pieces of the sizes that `step` gives, 0 for all at once. */
static void escape_pieces(struct strbuf *s, const unsigned char *p, size_t len, size_t step)
{
    struct escape e = {0};
    char buf[ESCAPE_ROOM(4096) + 1];

    for (size_t n; len > 0; p += n, len -= n) {
        n = step == 0 || step > len ? len : step;
        size_t room = ESCAPE_ROOM(n);
        buf[room] = '!';
        size_t used = escape_text(&e, buf, p, n);
        EXPECT(used <= room && buf[room] == '!');
        strbuf_add(s, buf, used);
    }
    strbuf_add(s, buf, escape_end(&e, buf));
}

static void compare(const unsigned char *p, size_t len)
{
    AUTO(strbuf_done) struct strbuf want = {0};

    strbuf_init(&want, 1u << 20);
    naive(&want, p, len);
    for (size_t step = 0; step < 10; step++) {
        AUTO(strbuf_done) struct strbuf got = {0};
        strbuf_init(&got, 1u << 20);
        escape_pieces(&got, p, len, step);
        EXPECT_STR(got.buf, want.buf);
    }
}

TEST(text_is_escaped_as_the_slow_way_does_it)
{
    static const char *const texts[] = {
        "",
        "plain text, and more than eight bytes of it\x7f",
        "\"quoted\\\" \b\f\n\r\t\v\x1b[31m\x01",
        "h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80 \xe2\x80\xa8",
        "\xe0\xa4\x95\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf",
        "\xff\xfe\x80\xc0\x80\xc1\xbf\xe0\x9f\xbf\xed\xa0\x80\xf0\x8f\xbf\xbf\xf4\x90\x80\x80",
        "\xe4\xb8\xe4\xb8\x96\xf0\x9f\x98\xf0\x9f\xf0\xc3",
    };
    unsigned char bytes[256];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        compare((const unsigned char *)texts[i], strlen(texts[i]));
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    compare(bytes, sizeof(bytes));
}

TEST(text_at_random)
{
    /* Bytes that make characters, break them, and stand between them. */
    static const unsigned char some[] = {'a',  'b',  ' ',  '"',  '\\', '\n', 0,    0x1f, 0x7f,
                                         0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2, 0xdf, 0xe0,
                                         0xe4, 0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff};
    unsigned char bytes[64];
    uint32_t seed = 1;

    for (int i = 0; i < 20000; i++) {
        size_t len = (seed >> 8) % (sizeof(bytes) + 1);
        for (size_t n = 0; n < len; n++) {
            seed = seed * 1664525 + 1013904223;
            bytes[n] = seed >> 31 ? 'x' : some[(seed >> 16) % sizeof(some)];
        }
        seed = seed * 1664525 + 1013904223;
        compare(bytes, len);
    }
}

TEST(output_in_lines)
{
    static char big[3 * LINE_TEXT_MAX / 2];

    begin();
    lines_number(&lines, 7);
    lines_output(&lines, LINES_STDOUT, "a\n", 2);
    EXPECT(strstr(out.buf, "{\"type\":\"number_of_executions\",\"execution_count\":7}\n") ==
           out.buf);
    EXPECT(strstr(out.buf, "{\"type\":\"stdout\",\"text\":\"a\\n\",\"timestamp\":\"2") != NULL);
    strbuf_reset(&out);
    memset(big, 1, sizeof(big)); /* each becomes six */
    lines_output(&lines, LINES_STDERR, big, sizeof(big));
    EXPECT(strstr(out.buf, "}\n{\"type\":\"stderr\"") != NULL);
    EXPECT(out.len > 6 * sizeof(big) && out.len < 6 * sizeof(big) + 300);
    lines_keepalive(&lines);
    lines_end(&lines, 0);
    EXPECT(strstr(out.buf, "{\"type\":\"keepalive\"}\n{\"type\":\"end_of_execution\"}\n") != NULL);
    lines_end(&lines, 3);
    EXPECT(strstr(out.buf, "{\"type\":\"end_of_execution\",\"exit_code\":3}\n") != NULL);
    end();
}

TEST(characters_between_two_pieces)
{
    begin();
    lines_output(&lines, LINES_STDOUT, "\xe4\xb8", 2); /* no text yet, so no line */
    expect_out("");
    lines_output(&lines, LINES_STDERR, "\xf0", 1);
    lines_output(&lines, LINES_STDOUT, "\x96!", 2);
    EXPECT(strstr(out.buf, "\"stdout\",\"text\":\"\\u4e16!\"") != NULL);
    strbuf_reset(&out);
    lines_output(&lines, LINES_STDERR, "x", 1); /* it was none */
    EXPECT(strstr(out.buf, "\"stderr\",\"text\":\"\\ufffdx\"") != NULL);
    lines_output(&lines, LINES_STDOUT, "\xc3", 1);
    strbuf_reset(&out);
    lines_output_end(&lines);
    EXPECT(strstr(out.buf, "\"stdout\",\"text\":\"\\ufffd\"") != NULL);
    EXPECT(strstr(out.buf, "stderr") == NULL);
    end();
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(a_result_in_pieces)
{
    begin();
    PACKET("Rm");
    EXPECT(!results_open(&results)); /* it has nothing yet */
    PACKET("Ttext\0"
           "a\"b");
    EXPECT(results_open(&results));
    PACKET("Ttext\0"
           "\xe4\xb8");
    PACKET("Ttext\0"
           "\x96");
    PACKET("Tpng\0"
           "AAAA");
    PACKET("Jchart\0"
           " {\"type\": \"li");
    PACKET("Jchart\0"
           "ne\", \"n\": [1, -2.5e3, tr");
    PACKET("Jchart\0"
           "ue, null]}\n");
    PACKET("r");
    EXPECT(!results_open(&results));
    expect_out(
        "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"a\\\"b\\u4e16\",\"png\":\"AAAA\","
        "\"chart\":{\"type\":\"line\",\"n\":[1,-2.5e3,true,null]}}\n");
    strbuf_reset(&out);
    PACKET("Rd");
    PACKET("Jjson\0"
           "[]");
    PACKET("r");
    expect_out("{\"type\":\"result\",\"is_main_result\":false,\"json\":[]}\n");
    end();
}

TEST(fields_that_do_not_count)
{
    begin();
    PACKET("Rm");
    PACKET("Ttype\0"
           "error"); /* not a field */
    PACKET("Tis_main_result\0"
           "x");
    PACKET("Tchart\0"
           "x"); /* not a text */
    PACKET("Jtext\0"
           "{}"); /* not JSON */
    PACKET("T\0"
           "x");
    PACKET("Tnokey");
    PACKET("Jdata\0"
           "[1]"); /* must be an object */
    PACKET("Jextra\0"
           "\"x\"");
    PACKET("Jjson\0"
           "  "); /* nothing */
    PACKET("r");
    expect_out("");
    PACKET("Rm");
    PACKET("Ttext\0"
           "one");
    PACKET("Thtml\0"
           "two");
    PACKET("Ttext\0"
           "three"); /* again */
    PACKET("Thtml\0"
           "four");
    PACKET("r");
    expect_out("{\"type\":\"result\",\"is_main_result\":true,\"text\":\"one\",\"html\":\"two\"}\n");
    end();
}

TEST(packets_out_of_order)
{
    begin();
    PACKET("Ttext\0"
           "nobody asked");
    PACKET("r");
    PACKET("R");
    PACKET("Ttext\0"
           "x");
    PACKET("Rx");
    PACKET("Ttext\0"
           "x");
    PACKET("Rmm");
    PACKET("Ttext\0"
           "x");
    PACKET("Z");
    PACKET("");
    expect_out("");
    PACKET("Rm");
    PACKET("Ttext\0"
           "first");
    PACKET("Rd"); /* without an end of the first */
    PACKET("Ttext\0"
           "second");
    results_close(&results);
    expect_out("{\"type\":\"result\",\"is_main_result\":true,\"text\":\"first\"}\n"
               "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"second\"}\n");
    end();
}

static const struct {
    const char *given, *written; /* NULL: as it was given */
} values[] = {
    {"{}", NULL},
    {"{\"a\":{\"b\":[[],{}]}}", NULL},
    {" { \"a\" : 1 ,\r\n\t\"b\" : 0.5 } ", "{\"a\":1,\"b\":0.5}"},
    {"{\"n\":18446744073709551616}", NULL},
    {"{\"n\":-0,\"m\":1E+2,\"o\":1e-2}", NULL},
    {"{\"s\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}", NULL},
    {"{\"s\":\"\xc3\xa9\x7f\"}", "{\"s\":\"\\u00e9\x7f\"}"},
    {"{\"\\ud83d\\ude00\":1}", NULL},
    {"{\"s\":\"\\ud83d\"}", "{\"s\":\"\\ufffd\"}"},
    {"{\"s\":\"\\ud83dx\\ude00\"}", "{\"s\":\"\\ufffdx\\ufffd\"}"},
    {"{\"s\":\"\\ud83d\\ud83d\\ude00\"}", "{\"s\":\"\\ufffd\\ud83d\\ude00\"}"},
    {"{\"s\":\"\xff\xe4\xb8\"}", "{\"s\":\"\\ufffd\\ufffd\"}"},
    {"{\"s\":\"\\u0000\"}", NULL},
    /* what is none is ended, and does not count */
    {"{", "{},\"data\":null"},
    {"{\"a", "{\"a\":null},\"data\":null"},
    {"{\"a\"", "{\"a\":null},\"data\":null"},
    {"{\"a\":", "{\"a\":null},\"data\":null"},
    {"{\"a\":1", "{\"a\":null},\"data\":null"},
    {"{\"a\":1,", "{\"a\":1,\"\":null},\"data\":null"},
    {"{\"a\":[1,\"x", "{\"a\":[1,\"x\"]},\"data\":null"},
    {"{\"a\":[1,", "{\"a\":[1,null]},\"data\":null"},
    {"{\"a\":[", "{\"a\":[]},\"data\":null"},
    {"{\"a\":\"\\", "{\"a\":\"\"},\"data\":null"},
    {"{\"a\":\"\\ud83d\\u12", "{\"a\":\"\\ufffd\"},\"data\":null"},
    {"{\"a\":1}x", "{\"a\":1},\"data\":null"},
    {"{\"a\":1}}", "{\"a\":1},\"data\":null"},
    {"{\"a\":1]", "{\"a\":1},\"data\":null"},
    {"{a:1}", "{},\"data\":null"},
    {"{\"a\" 1}", "{\"a\":null},\"data\":null"},
    {"{\"a\":NaN}", "{\"a\":null},\"data\":null"},
    {"{\"a\":nul}", "{\"a\":null},\"data\":null"},
    {"{\"a\":01}", "{\"a\":null},\"data\":null"},
    {"{\"a\":1.}", "{\"a\":null},\"data\":null"},
    {"{\"a\":.5}", "{\"a\":null},\"data\":null"},
    {"{\"a\":1e}", "{\"a\":null},\"data\":null"},
    {"{\"a\":-}", "{\"a\":null},\"data\":null"},
    {"{\"a\":1e999}", "{\"a\":null},\"data\":null"},
    {"{\"a\":\"\n\"}", "{\"a\":\"\"},\"data\":null"},
    {"{\"a\":\"\\x\"}", "{\"a\":\"\"},\"data\":null"},
    {"{\"a\":\"\\u12g4\"}", "{\"a\":\"\"},\"data\":null"},
    {"{,}", "{},\"data\":null"},
    {"{\"a\":[1,]}", "{\"a\":[1,null]},\"data\":null"},
    {"{\"a\":1,}", "{\"a\":1,\"\":null},\"data\":null"},
};

TEST(json_that_is_some_and_json_that_is_none)
{
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        size_t len = strlen(values[i].given);
        for (size_t step = 1; step <= len; step += step == 1 ? len - 1 + (len == 1) : 1) {
            AUTO(strbuf_done) struct strbuf want = {0};
            strbuf_init(&want, 4096);
            strbuf_addf(&want, "{\"type\":\"result\",\"is_main_result\":true,\"data\":%s}\n",
                        values[i].written ? values[i].written : values[i].given);
            begin();
            PACKET("Rm");
            for (size_t at = 0, n; at < len; at += n) {
                char packet[256] = "Jdata";
                n = step < len - at ? step : len - at;
                memcpy(packet + 6, values[i].given + at, n);
                results_packet(&results, packet, 6 + n);
            }
            PACKET("r");
            expect_out(want.buf);
            end();
        }
    }
}

TEST(json_that_is_too_deep_or_too_long)
{
    static char packet[65536] = "Jjson";

    begin();
    memset(packet + 6, '[', JSON_TEXT_DEPTH + 1);
    PACKET("Rm");
    results_packet(&results, packet, 6 + JSON_TEXT_DEPTH + 1);
    PACKET("r");
    EXPECT(strstr(out.buf, "],\"json\":null}\n") != NULL);
    end();

    begin();
    memset(packet + 6, ' ', sizeof(packet) - 6);
    packet[6] = '[';
    PACKET("Rm");
    results_packet(&results, packet, sizeof(packet));
    packet[6] = ' ';
    for (size_t i = 0; i < RESULT_JSON / (sizeof(packet) - 6) + 1; i++)
        results_packet(&results, packet, sizeof(packet));
    PACKET("r");
    expect_out("{\"type\":\"result\",\"is_main_result\":true,\"json\":[],\"json\":null}\n");
    end();
}

TEST(a_result_without_end)
{
    static char packet[65536] = "Ttext";

    begin();
    strbuf_done(&out);
    strbuf_init(&out, 256u << 20);
    memset(packet + 6, 'x', sizeof(packet) - 6);
    PACKET("Rm");
    for (size_t i = 0; i < 2 * RESULT_MAX / sizeof(packet); i++)
        results_packet(&results, packet, sizeof(packet));
    EXPECT(out.len > RESULT_MAX / 2 && out.len < RESULT_MAX + 200);
    PACKET("r");
    EXPECT(strcmp(out.buf + out.len - 3, "\"}\n") == 0);
    results_done(&results);
    strbuf_done(&out);
}

TEST(errors_wait_and_the_first_counts)
{
    begin();
    PACKET("Re");
    PACKET("Tname\0"
           "Value");
    PACKET("Tname\0"
           "Error");
    PACKET("Tvalue\0"
           "bad \xff");
    PACKET("Tother\0"
           "x");
    PACKET("Jvalue\0"
           "{}");
    PACKET("r");
    PACKET("Re");
    PACKET("Tname\0"
           "Second");
    PACKET("r");
    expect_out("");
    EXPECT(results.failed);
    lines_error(&lines, &results.error[ERROR_NAME], &results.error[ERROR_VALUE],
                &results.error[ERROR_TRACEBACK]);
    expect_out("{\"type\":\"error\",\"name\":\"ValueError\",\"value\":\"bad \\ufffd\","
               "\"traceback\":\"\"}\n");
    end();
}

/* ---- frames ---------------------------------------------------------------------------------- */

TEST(frames_in_order_and_joined)
{
    struct frames f;
    const void *p;
    uint8_t sub;
    size_t n;

    frames_init(&f, 4096);
    EXPECT(frames_empty(&f) && !frames_take(&f, 10, &sub, &p, &n));
    EXPECT(frames_add(&f, 1, true, "abc", 3) && frames_add(&f, 1, true, "def", 3));
    EXPECT(frames_add(&f, 3, false, "R", 1) && frames_add(&f, 3, false, "T", 1));
    EXPECT(frames_add(&f, 2, true, "x", 1) && frames_add(&f, 1, true, "y", 1));
    EXPECT(frames_take(&f, 4, &sub, &p, &n) && sub == 1 && n == 4 && memcmp(p, "abcd", 4) == 0);
    EXPECT(frames_take(&f, 4, &sub, &p, &n) && sub == 1 && n == 2 && memcmp(p, "ef", 2) == 0);
    EXPECT(frames_take(&f, 4, &sub, &p, &n) && sub == 3 && n == 1 && memcmp(p, "R", 1) == 0);
    EXPECT(frames_take(&f, 4, &sub, &p, &n) && sub == 3 && n == 1 && memcmp(p, "T", 1) == 0);
    EXPECT(frames_take(&f, 4, &sub, &p, &n) && sub == 2 && n == 1);
    EXPECT(frames_add(&f, 1, true, "z", 1));
    EXPECT(frames_take(&f, 1, &sub, &p, &n) && sub == 1 && n == 1 && memcmp(p, "y", 1) == 0);
    EXPECT(frames_add(&f, 1, true, "!", 1)); /* joins one that is partly gone */
    EXPECT(frames_take(&f, 9, &sub, &p, &n) && sub == 1 && n == 2 && memcmp(p, "z!", 2) == 0);
    EXPECT(frames_empty(&f));
    /* After all was taken, and nobody has looked whether there is more. */
    EXPECT(frames_add(&f, 1, true, "one", 3));
    EXPECT(frames_take(&f, 9, &sub, &p, &n) && n == 3 && frames_empty(&f));
    EXPECT(frames_add(&f, 1, true, "two", 3) && frames_add(&f, 1, true, "!", 1));
    EXPECT(frames_take(&f, 9, &sub, &p, &n) && n == 4 && memcmp(p, "two!", 4) == 0);
    frames_done(&f);
}

TEST(frames_have_a_limit_and_use_room_again)
{
    struct frames f;
    char piece[100];
    const void *p;
    uint8_t sub;
    size_t n;

    memset(piece, 'p', sizeof(piece));
    frames_init(&f, 1000);
    while (frames_add(&f, 3, false, piece, sizeof(piece)))
        ;
    EXPECT(f.bytes.len <= 1000 && f.bytes.len > 700);
    for (int i = 0; i < 1000; i++) {
        EXPECT(frames_take(&f, 10, &sub, &p, &n) && sub == 3 && n == 100);
        EXPECT(frames_take(&f, 10, &sub, &p, &n) && memcmp(p, piece, n) == 0);
        if (!frames_add(&f, 3, false, piece, sizeof(piece)))
            continue;
        frames_add(&f, 3, false, piece, sizeof(piece));
    }
    EXPECT(!frames_empty(&f));
    frames_done(&f);
}

TAP_MAIN
