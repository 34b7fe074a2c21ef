/* Secrets in what comes back. */
#include "guard/scrub.h"
#include "base/base64.h"
#include "tap.h"

/* The same result however the text is cut. */
static void scrubs(const struct scrub *s, const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct scrub_stream st;
        size_t len = strlen(text), at = 0;

        strbuf_init(&out, 1u << 20);
        scrub_stream_init(&st);
        for (; len - at > step; at += step)
            scrub_feed(s, &st, text + at, step, false, &out);
        scrub_feed(s, &st, text + at, len - at, true, &out);
        scrub_stream_done(&st);
        EXPECT_STR(out.buf, want);
    }
}

TEST(a_secret_becomes_asterisks)
{
    struct scrub *s = scrub_new();

    EXPECT(scrub_add(s, "hunter2", 7));
    EXPECT(!scrub_add(s, "hunter2", 7));
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
    scrubs(s, "a%2Fb%20c%2525%3", "a%2Fb%20c%2525%3");
    scrub_free(s);
}

TEST(base64_does_not_hide_it)
{
    static const char secret[] = "sk-live-?>~\xff\xfe-0123";
    struct scrub *s = scrub_new();

    scrub_add(s, secret, sizeof secret - 1);
    for (size_t before = 0; before < 6; before++) {
        AUTO(strbuf_done) struct strbuf plain = {0}, text = {0}, out = {0};

        strbuf_init(&plain, 1000);
        strbuf_init(&text, 1000);
        strbuf_init(&out, 1000);
        strbuf_add(&plain, "user:x", before);
        strbuf_add(&plain, secret, sizeof secret - 1);
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

TEST(several_secrets_that_overlap_are_all_gone)
{
    struct scrub *s = scrub_new();

    scrub_add(s, "abcdef", 6);
    scrub_add(s, "defghi", 6);
    scrub_add(s, "abcdefghijkl", 12);
    scrubs(s, "xabcdefghix", "x*********x");
    scrubs(s, "xabcdefghijklx", "x************x");
    scrubs(s, "xabcdefghijkx", "x*********jkx");
    scrub_free(s);
}

TEST(what_is_held_is_only_what_could_be_one)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct scrub *s = scrub_new();
    struct scrub_stream st;

    strbuf_init(&out, 1000);
    scrub_stream_init(&st);
    scrub_add(s, "hunter2", 7);
    scrub_feed(s, &st, "event hun", 9, false, &out);
    EXPECT_STR(out.buf, "event ");
    EXPECT(st.held.len == 3);
    scrub_feed(s, &st, NULL, 0, true, &out);
    EXPECT_STR(out.buf, "event hun");
    EXPECT(st.held.len == 0);
    scrub_stream_done(&st);
    scrub_free(s);
}

TEST(very_short_secrets_are_left)
{
    struct scrub *s = scrub_new();

    EXPECT(scrub_add(s, "abc", 3));
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

    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (char)(1 + i * 7919 % 255);
    strbuf_init(&out, 1u << 20);
    scrub_stream_init(&st);
    scrub_add(s, secret, sizeof secret);
    for (size_t i = 0; i < sizeof secret; i++) {
        snprintf(hex, sizeof hex, "%%%02x", (unsigned char)secret[i]);
        scrub_feed(s, &st, hex, 3, false, &out);
    }
    scrub_feed(s, &st, "!", 1, true, &out);
    EXPECT(out.len == 3 * sizeof secret + 1 && out.buf[out.len - 1] == '!');
    EXPECT(strspn(out.buf, "*") == 3 * sizeof secret);
    scrub_stream_done(&st);
    scrub_free(s);
}

TAP_MAIN
