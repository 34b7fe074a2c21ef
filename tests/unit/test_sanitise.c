#include <jansson.h>

#include "sanitise_table.h"

static struct sanitiser *s;
static struct sanitise_table positives, lookalikes;

static void setup(void)
{
    struct sg_error e;

    if (s)
        return;
    EXPECT(sanitiser_new(NULL, &s, &e) == 0);
    table_read(&positives, "positives.txt", true);
    table_read(&lookalikes, "lookalikes.txt", false);
}

static bool comes_out(const char *in, size_t len, const char *want, struct sanitise_counts *counts)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 1u << 20);
    sanitise_text(s, SANITISE_ENFORCE, in, len, &out, counts);
    if (strcmp(out.buf, want) == 0)
        return true;
    printf("# '%s' became '%s', not '%s'\n", in, out.buf, want);
    return false;
}

static bool text_is(const char *in, const char *want)
{
    return comes_out(in, strlen(in), want, NULL);
}

TEST(every_positive_is_replaced)
{
    setup();
    EXPECT(positives.n >= 200);
    for (size_t i = 0; i < positives.n; i++)
        EXPECT(text_is(positives.rows[i].in, positives.rows[i].out));
}

TEST(every_look_alike_stays)
{
    setup();
    EXPECT(lookalikes.n >= 200);
    for (size_t i = 0; i < lookalikes.n; i++)
        EXPECT(text_is(lookalikes.rows[i].in, lookalikes.rows[i].in));
}

/* Each positive holds for any text around it that does not touch it. */
TEST(what_is_around_does_not_matter)
{
    setup();
    for (size_t i = 0; i < positives.n; i++) {
        AUTO(free_p) char *in = NULL, *want = NULL;
        if (strchr(positives.rows[i].in, '\n'))
            continue;
        EXPECT(asprintf(&in, "some words (%s) and\nmore words\n", positives.rows[i].in) > 0);
        EXPECT(asprintf(&want, "some words (%s) and\nmore words\n", positives.rows[i].out) > 0);
        EXPECT(text_is(in, want));
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool split_is(const char *in, size_t a, size_t b, const char *want)
{
    struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);
    AUTO(strbuf_done) struct strbuf out = {0};
    size_t len = strlen(in);

    strbuf_init(&out, 1u << 20);
    sanitise_feed(st, in, a, &out);
    sanitise_feed(st, in + a, b - a, &out);
    sanitise_feed(st, in + b, len - b, &out);
    sanitise_flush(st, &out);
    EXPECT(!sanitise_holds(st));
    sanitise_stream_free(st);
    if (strcmp(out.buf, want) == 0)
        return true;
    printf("# '%s' cut at %zu and %zu became '%s', not '%s'\n", in, a, b, out.buf, want);
    return false;
}

static void check_splits(const struct sanitise_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        size_t len = strlen(t->rows[i].in);
        for (size_t a = 0; a <= len; a++)
            EXPECT(split_is(t->rows[i].in, a, a + (len - a) / 2, t->rows[i].out));
    }
}

TEST(every_split_gives_the_same)
{
    setup();
    check_splits(&positives);
}

TEST(every_split_of_a_look_alike_gives_the_same)
{
    setup();
    check_splits(&lookalikes);
}

TEST(byte_by_byte_gives_the_same)
{
    setup();
    for (size_t i = 0; i < positives.n; i++) {
        struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);
        AUTO(strbuf_done) struct strbuf out = {0};
        strbuf_init(&out, 1u << 20);
        for (const char *p = positives.rows[i].in; *p; p++)
            sanitise_feed(st, p, 1, &out);
        sanitise_flush(st, &out);
        EXPECT_STR(out.buf, positives.rows[i].out);
        sanitise_stream_free(st);
    }
}

static uint32_t dice(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % n;
}

/* Everything in the tables in one line, and fed in pieces of any length. */
TEST(long_lines_in_pieces_give_the_same)
{
    static const char *const between[] = {" ", ", ", "; ", "\t", "\\n", " \\\"", "\x1b[1m ", "<b>"};

    setup();
    for (uint32_t round = 1; round <= 40; round++) {
        AUTO(strbuf_done) struct strbuf in = {0}, whole = {0}, pieces = {0};
        struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);
        uint32_t state = round;
        strbuf_init(&in, 4u << 20);
        strbuf_init(&whole, 4u << 20);
        strbuf_init(&pieces, 4u << 20);
        while (in.len < 100000) {
            const struct sanitise_table *t = dice(&state, 2) ? &positives : &lookalikes;
            strbuf_addstr(&in, t->rows[dice(&state, (uint32_t)t->n)].in);
            strbuf_addstr(&in, between[dice(&state, ARRAY_SIZE(between))]);
            if (dice(&state, 8) == 0)
                strbuf_addf(&in, "%*s", (int)dice(&state, 700), round % 2 ? "." : "");
        }
        for (size_t i = 0; round % 4 && i < in.len; i++)
            in.buf[i] = in.buf[i] == '\n' ? ' ' : in.buf[i];
        sanitise_text(s, SANITISE_ENFORCE, in.buf, in.len, &whole, NULL);
        for (size_t at = 0, n; at < in.len; at += n) {
            n = 1 + dice(&state, round % 3 ? 300 : 5000);
            n = n < in.len - at ? n : in.len - at;
            sanitise_feed(st, in.buf + at, n, &pieces);
        }
        sanitise_flush(st, &pieces);
        EXPECT(whole.len == pieces.len && memcmp(whole.buf, pieces.buf, whole.len) == 0);
        sanitise_stream_free(st);
    }
}

/* A complete line is not held back; the beginning of one is. */
TEST(lines_go_out_at_once)
{
    struct sanitise_stream *st;
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    st = sanitise_stream_new(s, SANITISE_ENFORCE);
    strbuf_init(&out, 4096);
    sanitise_feed(st, "one\ntwo john@exam", 17, &out);
    EXPECT_STR(out.buf, "one\n");
    EXPECT(sanitise_holds(st));
    sanitise_feed(st, "ple.com\n", 8, &out);
    EXPECT_STR(out.buf, "one\ntwo [EMAIL]\n");
    EXPECT(!sanitise_holds(st));
    sanitise_stream_free(st);
}

TEST(flush_lets_a_prompt_go)
{
    struct sanitise_stream *st;
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    st = sanitise_stream_new(s, SANITISE_ENFORCE);
    strbuf_init(&out, 4096);
    sanitise_feed(st, "Your name: ", 11, &out);
    EXPECT_STR(out.buf, "");
    sanitise_flush(st, &out);
    EXPECT_STR(out.buf, "Your name: ");
    EXPECT(!sanitise_holds(st));
    sanitise_flush(st, &out);
    sanitise_feed(st, "Joe\n", 4, &out);
    EXPECT_STR(out.buf, "Your name: Joe\n");
    sanitise_stream_free(st);
}

/* What was let go too early cannot be brought back, but the rest is still replaced. */
TEST(after_a_flush_the_rest_is_replaced)
{
    struct sanitise_stream *st;
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    st = sanitise_stream_new(s, SANITISE_ENFORCE);
    strbuf_init(&out, 4096);
    sanitise_feed(st, "card 4111 1111 ", 15, &out);
    sanitise_flush(st, &out);
    sanitise_feed(st, "1111 1111 ok\n", 13, &out);
    EXPECT_STR(out.buf, "card 4111 1111 [CARD] ok\n");
    EXPECT(sanitise_stream_counts(st)->of[KIND_CARD] == 1);
    sanitise_stream_free(st);
}

TEST(a_key_that_goes_on_after_a_flush_is_swallowed)
{
    struct sanitise_stream *st;
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    st = sanitise_stream_new(s, SANITISE_ENFORCE);
    strbuf_init(&out, 4096);
    const char *first = "-----BEGIN PRIVATE KEY-----\n";
    const char *second = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n";
    sanitise_feed(st, first, strlen(first), &out);
    sanitise_flush(st, &out);
    sanitise_feed(st, second, strlen(second), &out);
    sanitise_flush(st, &out);
    sanitise_feed(st, second, strlen(second), &out);
    sanitise_feed(st, "-----END PRIVATE KEY-----\nbye\n", 30, &out);
    EXPECT(!strstr(out.buf, "MIIE") && strstr(out.buf, "[PRIVATE_KEY]") && strstr(out.buf, "bye"));
    sanitise_stream_free(st);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool is_json(const char *text)
{
    json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

    json_decref(j);
    return j;
}

/* Every positive that is JSON, and every one as a string, as a key and in a list. */
TEST(json_stays_json)
{
    static const char *const forms[] = {"{\"k\":%s}", "[%s,%s]", "{\n  \"k\": %s,\n  \"l\": %s\n}"};
    size_t n = 0;

    setup();
    for (size_t i = 0; i < positives.n; i++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        const char *in = positives.rows[i].in;
        strbuf_init(&out, 1u << 20);
        if (is_json(in) && (*in == '{' || *in == '[' || *in == '"')) {
            n++;
            sanitise_text(s, SANITISE_ENFORCE, in, strlen(in), &out, NULL);
            EXPECT(is_json(out.buf));
        }
        json_t *j = json_string(in);
        char *quoted = json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        for (size_t k = 0; quoted && k < ARRAY_SIZE(forms); k++) {
            AUTO(strbuf_done) struct strbuf text = {0};
            strbuf_init(&text, 1u << 20);
            const char *hole = forms[k];
            for (const char *next; (next = strstr(hole, "%s")); hole = next + 2) {
                strbuf_add(&text, hole, (size_t)(next - hole));
                strbuf_addstr(&text, quoted);
            }
            strbuf_addstr(&text, hole);
            strbuf_reset(&out);
            sanitise_text(s, SANITISE_ENFORCE, text.buf, text.len, &out, NULL);
            if (!is_json(out.buf)) {
                printf("# %s -> %s\n", text.buf, out.buf);
                EXPECT(!"JSON");
            }
        }
        free(quoted);
        json_decref(j);
    }
    EXPECT(n >= 20);
}

TEST(numbers_in_json_become_strings)
{
    setup();
    EXPECT(text_is("{\"a\":4111111111111111}", "{\"a\":\"[CARD]\"}"));
    EXPECT(text_is("{\n  \"a\": 4111111111111111\n}\n", "{\n  \"a\": \"[CARD]\"\n}\n"));
    EXPECT(text_is("[\n  4111111111111111\n]", "[\n  \"[CARD]\"\n]"));
    EXPECT(text_is("{'a': 4111111111111111}", "{'a': '[CARD]'}"));
    EXPECT(text_is("paid 4111111111111111, thanks", "paid [CARD], thanks"));
}

/* ---- modes and counts ------------------------------------------------------------------------ */

TEST(report_only_changes_nothing_and_counts)
{
    static const char text[] = "john@example.com 10.1.2.3 10.1.2.4\n";
    struct sanitise_counts counts = {0};
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    strbuf_init(&out, 4096);
    sanitise_text(s, SANITISE_REPORT, text, strlen(text), &out, &counts);
    EXPECT_STR(out.buf, text);
    EXPECT(counts.of[KIND_EMAIL] == 1 && counts.of[KIND_IP_ADDRESS] == 2);

    struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_REPORT);
    strbuf_reset(&out);
    sanitise_feed(st, "john@exa", 8, &out);
    EXPECT_STR(out.buf, "john@exa");
    EXPECT(!sanitise_holds(st));
    sanitise_feed(st, "mple.com", 8, &out);
    sanitise_flush(st, &out);
    EXPECT_STR(out.buf, "john@example.com");
    EXPECT(sanitise_stream_counts(st)->of[KIND_EMAIL] == 1);
    sanitise_stream_free(st);
}

TEST(off_does_nothing)
{
    struct sanitise_counts counts = {0};
    AUTO(strbuf_done) struct strbuf out = {0};

    setup();
    strbuf_init(&out, 4096);
    sanitise_text(s, SANITISE_OFF, "john@example.com", 16, &out, &counts);
    EXPECT_STR(out.buf, "john@example.com");
    EXPECT(counts.of[KIND_EMAIL] == 0);
}

TEST(counts_are_by_kind)
{
    struct sanitise_counts counts = {0};

    setup();
    EXPECT(comes_out("a@example.com b@example.com 4111111111111111", 44, "[EMAIL] [EMAIL] [CARD]",
                     &counts));
    EXPECT(counts.of[KIND_EMAIL] == 2 && counts.of[KIND_CARD] == 1);
    EXPECT_STR(sanitiser_kind_name(s, KIND_EMAIL), "email");
    EXPECT_STR(sanitiser_kind_name(s, KIND_IP_ADDRESS), "ip_address");
    EXPECT(!sanitiser_kind_name(s, KIND_CUSTOM));
}

/* ---- sizes and bytes ------------------------------------------------------------------------- */

TEST(a_long_line_is_not_held)
{
    struct sanitise_stream *st;
    AUTO(strbuf_done) struct strbuf out = {0};
    size_t n = 0;

    setup();
    st = sanitise_stream_new(s, SANITISE_ENFORCE);
    strbuf_init(&out, 4u << 20);
    for (size_t i = 0; i < 20000; i++) {
        n += (size_t)snprintf((char[64]){0}, 64, "word %zu ", i);
        char text[64];
        snprintf(text, sizeof(text), "word %zu ", i);
        sanitise_feed(st, text, strlen(text), &out);
        EXPECT(out.len + SANITISE_HOLD >= n);
    }
    sanitise_feed(st, "john@example.com", 16, &out);
    sanitise_flush(st, &out);
    EXPECT(out.len == n + strlen("[EMAIL]"));
    sanitise_stream_free(st);
}

/* Keys longer than anything that is held back. */
TEST(what_is_longer_than_the_window_is_swallowed)
{
    AUTO(strbuf_done) struct strbuf in = {0};

    setup();
    strbuf_init(&in, 1u << 20);
    strbuf_addstr(&in, "x -----BEGIN RSA PRIVATE KEY-----\n");
    for (size_t i = 0; i < 4000; i++)
        strbuf_addstr(&in, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7abcdefgh1234\n");
    strbuf_addstr(&in, "abcd=\n-----END RSA PRIVATE KEY-----\ny\n");
    EXPECT(text_is(in.buf, "x [PRIVATE_KEY]\ny\n"));
    strbuf_reset(&in);
    strbuf_addstr(&in, "a ghp_");
    for (size_t i = 0; i < 20000; i++)
        strbuf_addstr(&in, "aB3dE6gH9j");
    strbuf_addstr(&in, " b");
    EXPECT(text_is(in.buf, "a [API_KEY] b"));
}

TEST(a_find_anywhere_in_a_huge_text)
{
    AUTO(strbuf_done) struct strbuf in = {0}, out = {0};
    struct sanitise_counts counts = {0};

    setup();
    strbuf_init(&in, 8u << 20);
    strbuf_init(&out, 8u << 20);
    for (size_t i = 0; i < 30000; i++)
        strbuf_addf(
            &in, "%.*sjohn@example.com%s", (int)(i % 97),
            "................................................................................"
            "................................................................................",
            i % 3 ? " " : "\n");
    sanitise_text(s, SANITISE_ENFORCE, in.buf, in.len, &out, &counts);
    EXPECT(counts.of[KIND_EMAIL] == 30000 && !strstr(out.buf, "john"));
}

TEST(bytes_that_are_no_text_pass)
{
    char bytes[4096];
    AUTO(strbuf_done) struct strbuf out = {0};
    uint32_t x = 1;

    setup();
    strbuf_init(&out, 1u << 20);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)(0x80 | x >> 24);
    }
    memcpy(bytes + 100, "\0\0\0", 3);
    sanitise_text(s, SANITISE_ENFORCE, bytes, sizeof(bytes), &out, NULL);
    EXPECT(out.len == sizeof(bytes) && memcmp(out.buf, bytes, out.len) == 0);
    strbuf_reset(&out);
    sanitise_text(s, SANITISE_ENFORCE, "a\0john@example.com\0b", 20, &out, NULL);
    EXPECT(out.len == 11 && memcmp(out.buf, "a\0[EMAIL]\0b", 11) == 0);
}

TAP_MAIN
