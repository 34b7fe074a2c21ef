/* The operator's patterns, and which mode counts. */
#include "lib/sanitise/sanitise.h"
#include "tap.h"

static char *sanitised(struct sanitiser *s, const char *text, struct sanitise_counts *counts)
{
    struct strbuf out;

    strbuf_init(&out, 1u << 20);
    sanitise_text(s, SANITISE_ENFORCE, text, strlen(text), &out, counts);
    return strbuf_detach(&out, NULL);
}

#define EXPECT_TEXT(s, in, want)                          \
    do {                                                  \
        AUTO(free_p) char *got_ = sanitised(s, in, NULL); \
        EXPECT_STR(got_, want);                           \
    } while (0)

TEST(patterns_of_the_operator)
{
    struct sanitiser *s;
    struct sg_error e;
    struct sanitise_counts counts = {0};

    EXPECT(sanitiser_new("# ours\n\nbadge = EMP-[0-9]{6}\nproject=(?i)project (?:atlas|borealis)\n",
                         &s, &e) == 0);
    EXPECT_TEXT(s, "EMP-123456 of Project Atlas", "[BADGE] of [PROJECT]");
    EXPECT_TEXT(s, "EMP-12345\nEMP-654321\n", "EMP-12345\n[BADGE]\n");
    EXPECT_TEXT(s, "john@example.com EMP-123456\n", "[EMAIL] [BADGE]\n");
    EXPECT_STR(sanitiser_kind_name(s, KIND_CUSTOM), "badge");
    EXPECT_STR(sanitiser_kind_name(s, KIND_CUSTOM + 1), "project");
    EXPECT(!sanitiser_kind_name(s, KIND_CUSTOM + 2));
    free(sanitised(s, "EMP-123456 EMP-123457 project atlas", &counts));
    EXPECT(counts.of[KIND_CUSTOM] == 2 && counts.of[KIND_CUSTOM + 1] == 1);
    sanitiser_free(s);
}

TEST(they_cannot_bring_anything_back)
{
    struct sanitiser *s;
    struct sg_error e;

    /* They see the marks: one that takes all of it may, one that would cut it may not. */
    EXPECT(sanitiser_new("inside = MAIL\nwhole = user [^ ]+\ncut = L] x", &s, &e) == 0);
    EXPECT_TEXT(s, "john@example.com", "[EMAIL]");
    EXPECT_TEXT(s, "user john@example.com!", "[WHOLE]");
    EXPECT_TEXT(s, "john@example.com x", "[EMAIL][CUT]");
    EXPECT_TEXT(s, "MAIL", "[INSIDE]");
    sanitiser_free(s);
    EXPECT(sanitiser_new("john = john@example\\.com", &s, &e) == 0);
    EXPECT_TEXT(s, "john@example.com", "[EMAIL]");
    sanitiser_free(s);
}

TEST(they_leave_json_valid)
{
    struct sanitiser *s;
    struct sg_error e;

    EXPECT(sanitiser_new("n = new\nhex = 0041\nback = x.", &s, &e) == 0);
    EXPECT_TEXT(s, "\"a\\new\"", "\"a[N]\"");
    EXPECT_TEXT(s, "\"a\\u0041b\"", "\"a[HEX]b\"");
    EXPECT_TEXT(s, "\"x\\\"y\"", "\"[BACK]y\"");
    sanitiser_free(s);
}

TEST(long_lines_are_seen_in_parts)
{
    struct sanitiser *s;
    struct sg_error e;
    AUTO(strbuf_done) struct strbuf in = {0};
    struct sanitise_counts counts = {0};

    strbuf_init(&in, 1u << 20);
    EXPECT(sanitiser_new("badge = EMP-[0-9]{6}", &s, &e) == 0);
    for (int i = 0; i < 5000; i++)
        strbuf_addf(&in, "%.*sEMP-%06d ", i % 13, "aaaaaaaaaaaaa", i);
    AUTO(free_p) char *got = sanitised(s, in.buf, &counts);
    EXPECT(counts.of[KIND_CUSTOM] == 5000 && !strstr(got, "EMP"));
    sanitiser_free(s);
}

/* However the text is cut. */
TEST(streams_give_the_same)
{
    static const char text[] = "aaa EMP-123456 john@example.com EMP-111111\nnext EMP-22 EMP-222222";
    struct sanitiser *s;
    struct sg_error e;

    EXPECT(sanitiser_new("badge = EMP-[0-9]{6}", &s, &e) == 0);
    AUTO(free_p) char *want = sanitised(s, text, NULL);
    for (size_t a = 0; a <= strlen(text); a++) {
        struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);
        AUTO(strbuf_done) struct strbuf out = {0};
        strbuf_init(&out, 4096);
        sanitise_feed(st, text, a, &out);
        sanitise_feed(st, text + a, strlen(text) - a, &out);
        sanitise_flush(st, &out);
        EXPECT_STR(out.buf, want);
        sanitise_stream_free(st);
    }
    sanitiser_free(s);
}

/* Words at every place of lines of every length: none is lost to how they lie in memory. */
TEST(none_is_lost)
{
    static const char *const words[] = {"a@b", "qxq", "k1c"}, *const marks[] = {"[PAIR]", "[WORD]",
                                                                                "[ANY]"};
    struct sanitiser *s;
    struct sg_error e;

    EXPECT(sanitiser_new("pair = [a-f]@[a-f]\nword = q[a-z]{0,3}q\nany = k[0-9]{1,2}c[a-f]*", &s,
                         &e) == 0);
    for (size_t len = 1; len < 300; len++) {
        char text[320];
        memset(text, '.', sizeof(text));
        text[len + 8] = '\0';
        for (size_t at = 0; at < len; at++) {
            memcpy(text + at, words[at % 3], 3);
            AUTO(free_p) char *got = sanitised(s, text, NULL);
            EXPECT(strstr(got, marks[at % 3]));
            memcpy(text + at, "...", 3);
        }
    }
    sanitiser_free(s);
}

/* In a line that would take too long the whole line goes. */
TEST(a_line_that_was_made_to_be_slow)
{
    struct sanitiser *s;
    struct sg_error e;
    AUTO(strbuf_done) struct strbuf in = {0};

    EXPECT(sanitiser_new("x = a[^b]*c[0-9]", &s, &e) == 0);
    strbuf_init(&in, 1u << 16);
    for (int i = 0; i < 4000; i++)
        strbuf_addch(&in, 'a');
    strbuf_addstr(&in, "c\nac1 ok\n");
    AUTO(free_p) char *got = sanitised(s, in.buf, NULL);
    EXPECT(strcmp(got, "[X]\n[X] ok\n") == 0 || strlen(got) == 4001 + strlen("\n[X] ok\n"));
    sanitiser_free(s);
}

TEST(errors_name_the_line)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"badge", "line 1: write `name = regular expression`"},
        {"ok = a\nbad = (", "line 2: "},
        {"Badge = a", "line 1: a name is"},
        {"9a = a", "line 1: a name is"},
        {" = a", "line 1: a name is"},
        {"email = a", "line 1: 'email' is the name of a built-in kind"},
        {"a = b\n# x\na = c", "line 3: there are two patterns 'a'"},
        {"a =", "line 1: an expression has"},
        {"a = b*", "line 1: "},    /* matches nothing at all */
        {"a = (?=b)", "line 1: "}, /* not in the language */
        {"a = (b)\\1", "line 1: "},
    };
    struct sanitiser *s = NULL;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        EXPECT(sanitiser_new(bad[i].text, &s, &e) < 0);
        if (strncmp(e.message, bad[i].error, strlen(bad[i].error)) != 0) {
            printf("# '%s': '%s'\n", bad[i].text, e.message);
            EXPECT(!"message");
        }
    }
    AUTO(strbuf_done) struct strbuf many = {0};
    strbuf_init(&many, 4096);
    for (int i = 0; i <= SANITISE_CUSTOM_MAX; i++)
        strbuf_addf(&many, "n%d = x%d\n", i, i);
    EXPECT(sanitiser_new(many.buf, &s, &e) == -E2BIG && strstr(e.message, "line 65"));
    EXPECT(!s);
    EXPECT(sanitiser_new("\n# nothing\n", &s, &e) == 0);
    sanitiser_free(s);
}

/* ---- which mode counts ----------------------------------------------------------------------- */

#define SAYS(m)                  \
    {                            \
        .set = true, .mode = (m) \
    }

TEST(the_most_special_word_counts)
{
    const struct sanitise_level none[4] = {{0}};
    const struct sanitise_level call[4] = {SAYS(SANITISE_ENFORCE), {0}, {0}, SAYS(SANITISE_OFF)};
    const struct sanitise_level tenant[4] = {SAYS(SANITISE_OFF), SAYS(SANITISE_REPORT), {0}, {0}};
    bool refused = true;

    EXPECT(sanitise_resolve(SANITISE_REPORT, none, 4, &refused) == SANITISE_REPORT && !refused);
    EXPECT(sanitise_resolve(SANITISE_ENFORCE, call, 4, &refused) == SANITISE_OFF && !refused);
    EXPECT(sanitise_resolve(SANITISE_ENFORCE, tenant, 4, NULL) == SANITISE_REPORT);
    EXPECT(sanitise_resolve(SANITISE_OFF, NULL, 0, NULL) == SANITISE_OFF);
}

TEST(off_can_be_forbidden)
{
    struct sanitise_level levels[4] = {SAYS(SANITISE_ENFORCE), {0}, {0}, SAYS(SANITISE_OFF)};
    bool refused = false;

    for (size_t i = 0; i < 3; i++) {
        struct sanitise_level forbidding[4];
        memcpy(forbidding, levels, sizeof(levels));
        forbidding[i].no_off = true;
        EXPECT(sanitise_resolve(SANITISE_ENFORCE, forbidding, 4, &refused) == SANITISE_ENFORCE);
        EXPECT(refused);
    }
    /* Its own word is not below it; report-only is not off. */
    levels[3].no_off = true;
    EXPECT(sanitise_resolve(SANITISE_ENFORCE, levels, 4, &refused) == SANITISE_OFF && !refused);
    levels[0].no_off = true;
    levels[3].mode = SANITISE_REPORT;
    EXPECT(sanitise_resolve(SANITISE_ENFORCE, levels, 4, &refused) == SANITISE_REPORT && !refused);
}

TEST(names_of_modes)
{
    enum sanitise_mode m;

    for (unsigned i = 0; i < SANITISE_MODE_MAX_; i++)
        EXPECT(sanitise_mode_parse(sanitise_mode_name((enum sanitise_mode)i), &m) == 0 && m == i);
    EXPECT(sanitise_mode_parse("on", &m) == -EINVAL && sanitise_mode_parse("", &m) == -EINVAL);
}

TAP_MAIN
