/* Secrets in what comes back. */
#include "guard/scrub.h"
#include "lib/text/base64.h"
#include "tap.h"

/* The same result however the text is cut. */
static void scrubs(const struct scrub *s, const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct scrub_stream st;
        size_t len = strlen(text), at = 0;

        strbuf_init(&out, 1u << 20);
        scrub_stream_init(&st, s);
        for (; len - at > step; at += step)
            scrub_feed(&st, text + at, step, false, &out);
        scrub_feed(&st, text + at, len - at, true, &out);
        scrub_stream_done(&st);
        EXPECT_STR(out.buf, want);
    }
}

/* All that is between the brackets. */
static void scrubs_inside(const struct scrub *s, const char *text)
{
    char want[256];
    size_t len = strlen(text);

    snprintf(want, sizeof(want), "%s", text);
    memset(want + 1, '*', len - 2);
    scrubs(s, text, want);
}

TEST(a_secret_becomes_asterisks)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "hunter2", 7);
    scrub_add(s, "hunter2", 7);
    scrubs(s, "hunter2", "*******");
    scrubs(s, "[hunter2hunter2]", "[**************]");
    scrubs(s, "hunthunter2 hunter", "hunt******* hunter");
    scrubs(s, "hunter hunter3", "hunter hunter3");
    scrubs(s, "", "");
    scrub_free(s);
}

TEST(percent_encoding_does_not_hide_it)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "a/b c%25=", 9);
    scrubs(s, "x a/b c%25= y", "x ********* y");
    scrubs(s, "x a%2Fb%20c%2525%3D y", "x ***************** y");
    scrubs(s, "x a%2fb+c%2525%3d y", "x *************** y");
    scrubs(s, "%61%2F%62%20%63%25%32%35%3D.", "***************************.");
    scrubs(s, "a%2Fb%20c%2", "a%2Fb%20c%2");
    scrub_free(s);
}

TEST(nor_do_escapes_of_json_and_html)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "a/b<\"k&y'\\+z", 12);
    scrubs_inside(s, "[a/b<\"k&y'\\+z]");
    scrubs_inside(s, "[a\\/b<\\\"k&y'\\\\+z]");
    scrubs_inside(s, "[\\u0061\\/b\\u003c\\\"k\\u0026y\\u0027\\\\\\u002Bz]");
    scrubs_inside(s, "[a/b&lt;&quot;k&amp;y&#39;\\&#x2b;z]");
    scrubs_inside(s, "[a/b&lt;&#034;k&#x26;y&apos;&#92;+z]");
    scrubs(s, "&lt &#; &#x; &nothing; &#99999999999; \\u12 \\x1 % %z &",
           "&lt &#; &#x; &nothing; &#99999999999; \\u12 \\x1 % %z &");
    scrub_free(s);
}

TEST(nor_do_capitals_hex_and_wide_characters)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "Sk-Live-5c1F", 12);
    scrubs(s, "x-sk-live-5c1f: SK-LIVE-5C1F", "x-************: ************");
    scrubs(s, "0x536b2d4c6976652d35633146.", "0x************************.");
    scrubs(s, "536B2D4C69\n76652D35633146", "*************************");
    {
        static const char wide[] = "S\0k\0-\0L\0i\0v\0e\0-\0"
                                   "5\0c\0"
                                   "1\0F";
        AUTO(strbuf_done) struct strbuf out = {0};

        strbuf_init(&out, 100);
        scrub_text(s, wide, sizeof(wide) - 1, &out);
        EXPECT(out.len == sizeof(wide) - 1 && strspn(out.buf, "*") == out.len);
    }
    scrub_free(s);
}

TEST(an_escape_before_it_does_not_hide_it)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "nabcdef0", 8);
    scrubs(s, "\\nabcdef0 %anabcdef0 &#nabcdef0", "\\******** %a******** &#********");
    scrub_free(s);
}

TEST(base64_does_not_hide_it)
{
    static const char secret[] = "sk-live-?>~\xff\xfe-0123";
    struct scrub *s = scrub_new();

    scrub_add(s, secret, sizeof(secret) - 1);
    for (size_t before = 0; before < 6; before++) {
        AUTO(strbuf_done) struct strbuf plain = {0}, text = {0}, out = {0};

        strbuf_init(&plain, 1000);
        strbuf_init(&text, 1000);
        strbuf_init(&out, 1000);
        strbuf_add(&plain, "user:x", before);
        strbuf_add(&plain, secret, sizeof(secret) - 1);
        strbuf_addstr(&plain, "tail");
        base64_encode(&text, plain.buf, plain.len);
        scrub_text(s, text.buf, text.len, &out);
        EXPECT(out.len == text.len);
        /* At most the characters that the neighbours have a part in are left. */
        size_t left = 0;
        for (size_t i = 0; i < out.len; i++)
            left += out.buf[i] != '*';
        EXPECT(left <= (before + 4) * 4 / 3 + 4);
        /* And with the other alphabet. */
        for (size_t i = 0; i < text.len; i++)
            text.buf[i] = text.buf[i] == '+' ? '-' : text.buf[i] == '/' ? '_' : text.buf[i];
        strbuf_reset(&out);
        scrub_text(s, text.buf, text.len, &out);
        EXPECT(strstr(out.buf, "********************"));
    }
    scrub_free(s);
}

/* The text with a break after each `column` characters. */
static void wrap(const struct strbuf *text, size_t column, const char *brk, struct strbuf *out)
{
    strbuf_reset(out);
    for (size_t i = 0; i < text->len; i++) {
        if (i > 0 && i % column == 0)
            strbuf_addstr(out, brk);
        strbuf_addch(out, text->buf[i]);
    }
}

TEST(nor_does_base64_in_lines)
{
    static const char secret[] = "sk-live-?>~\xff\xfe-0123456789";
    static const char *const breaks[] = {"\n",     "\r\n", "\\n",     "\\r\\n",
                                         "\n    ", "%0A",  "\\u000a", "&#10;"};
    struct scrub *s = scrub_new();

    scrub_add(s, secret, sizeof(secret) - 1);
    for (size_t before = 0; before < 3; before++) {
        AUTO(strbuf_done) struct strbuf plain = {0}, text = {0}, lines = {0}, out = {0};

        strbuf_init(&plain, 1000);
        strbuf_init(&text, 1000);
        strbuf_init(&lines, 10000);
        strbuf_init(&out, 10000);
        strbuf_add(&plain, "ab", before);
        strbuf_add(&plain, secret, sizeof(secret) - 1);
        base64_encode(&text, plain.buf, plain.len);
        for (size_t b = 0; b < ARRAY_SIZE(breaks); b++)
            for (size_t column = 1; column < text.len; column++) {
                size_t left = 0;

                wrap(&text, column, breaks[b], &lines);
                strbuf_reset(&out);
                scrub_text(s, lines.buf, lines.len, &out);
                for (size_t i = 0; i < out.len; i++)
                    left += out.buf[i] != '*';
                /* What is before it, the last character, padding, and breaks between these. */
                EXPECT(out.len == lines.len && left <= 6 + 6 * strlen(breaks[b]));
            }
    }
    scrub_free(s);
}

TEST(escapes_of_base64_are_undone)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "?\?>>?\?>>", 8); /* Pz8+Pj8/Pj4= */
    scrubs(s, "Pz8%2BPj8%2fPj4%3D", "**************4%3D");
    scrubs(s, "Pz8+Pj8\\/Pj4=", "***********4=");
    scrubs(s, "Pz8-Pj8_Pj4", "**********4");
    scrub_free(s);
}

TEST(what_was_cut_is_found_if_it_is_more_than_half)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "0123456789abcdefghij", 20);
    scrubs(s, "'0123456789abcdefghi...'", "'*******************...'");
    scrubs(s, "'0123456789a'", "'***********'");
    scrubs(s, "'0123456789'", "'0123456789'");
    scrubs(s, "0123456789a", "***********");
    scrubs(s, "0123456789ab0123456789abcdefghij", "********************************");
    scrub_free(s);
}

TEST(what_repeats_itself_takes_no_longer)
{
    static char secret[SCRUB_VALUE_MAX], text[1u << 20];
    AUTO(strbuf_done) struct strbuf out = {0};
    struct scrub *s = scrub_new();

    memset(secret, 'a', sizeof(secret));
    memset(text, 'a', sizeof(text));
    secret[sizeof(secret) - 1] = 'b';
    strbuf_init(&out, sizeof(text));
    scrub_add(s, secret, sizeof(secret));
    /* With time that grows with the secret's length this would take minutes. */
    scrub_text(s, text, sizeof(text), &out);
    EXPECT(out.len == sizeof(text) && strspn(out.buf, "*") == sizeof(text));
    scrub_free(s);
}

TEST(gaps_have_an_end)
{
    AUTO(strbuf_done) struct strbuf text = {0}, out = {0};
    struct scrub *s = scrub_new();
    struct scrub_stream st;

    strbuf_init(&text, 100000);
    strbuf_init(&out, 200000);
    scrub_add(s, "sk-live-0123", 12); /* c2stbGl2ZS0wMTIz */
    scrub_stream_init(&st, s);
    strbuf_addstr(&text, "c2stbG");
    for (size_t i = 0; i < 70; i++)
        strbuf_addch(&text, ' ');
    scrub_feed(&st, text.buf, text.len, false, &out);
    EXPECT(st.held.len == 0 && out.len == text.len);
    scrub_stream_done(&st);
    scrub_free(s);
}

TEST(several_secrets_that_overlap_are_all_gone)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "abcdef", 6);
    scrub_add(s, "defghi", 6);
    scrub_add(s, "abcdefghijkl", 12);
    scrubs(s, "xabcdefghix", "x*********x");
    scrubs(s, "xabcdefghijklx", "x************x");
    scrubs(s, "xabcdefghijkx", "x***********x");
    scrub_free(s);
}

TEST(what_is_held_is_only_what_could_be_one)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct scrub *s = scrub_new();
    struct scrub_stream st;

    strbuf_init(&out, 1000);
    scrub_add(s, "hunter2", 7);
    scrub_stream_init(&st, s);
    scrub_feed(&st, "event hun", 9, false, &out);
    EXPECT_STR(out.buf, "event ");
    EXPECT(st.held.len == 3 && !scrub_holds_little(&st));
    scrub_feed(&st, NULL, 0, true, &out);
    EXPECT_STR(out.buf, "event hun");
    EXPECT(st.held.len == 0);
    scrub_stream_done(&st);
    scrub_free(s);
}

TEST(what_was_given_out_early_is_still_its_beginning)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct scrub *s = scrub_new();
    struct scrub_stream st;

    strbuf_init(&out, 1000);
    scrub_add(s, "hunter2", 7);
    scrub_stream_init(&st, s);
    scrub_feed(&st, "event hu", 8, false, &out);
    EXPECT_STR(out.buf, "event ");
    EXPECT(scrub_holds_little(&st));
    scrub_give(&st, &out);
    EXPECT_STR(out.buf, "event hu");
    EXPECT(!scrub_holds_little(&st));
    scrub_feed(&st, "nter2 hu", 8, false, &out);
    EXPECT_STR(out.buf, "event hu***** ");
    scrub_give(&st, &out);
    scrub_feed(&st, "t", 1, true, &out);
    EXPECT_STR(out.buf, "event hu***** hut");
    scrub_stream_done(&st);
    scrub_free(s);
}

TEST(very_short_secrets_are_left)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "abc", 3);
    scrubs(s, "abcabc", "abcabc");
    scrub_free(s);
}

TEST(long_ones_are_found_over_many_pieces)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    static char secret[SCRUB_VALUE_MAX];
    struct scrub *s = scrub_new();
    struct scrub_stream st;
    char hex[4];

    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = (char)(1 + i * 7919 % 255);
    strbuf_init(&out, 1u << 20);
    scrub_add(s, secret, sizeof(secret));
    scrub_stream_init(&st, s);
    for (size_t i = 0; i < sizeof(secret); i++) {
        snprintf(hex, sizeof(hex), "%%%02x", (unsigned char)secret[i]);
        scrub_feed(&st, hex, 3, false, &out);
    }
    scrub_feed(&st, "!", 1, true, &out);
    EXPECT(out.len == 3 * sizeof(secret) + 1 && out.buf[out.len - 1] == '!');
    EXPECT(strspn(out.buf, "*") == 3 * sizeof(secret));
    scrub_stream_done(&st);
    scrub_free(s);
}

TAP_MAIN
