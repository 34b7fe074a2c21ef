/* Payloads: what is written is read back, and nothing is read that is not there. */
#include "lib/channel/wire.h"
#include "tap.h"

TEST(round_trip)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    struct wire_reader r;

    strbuf_init(&s, 1024);
    wire_put_u8(&s, 0xab);
    wire_put_u32(&s, 0xdeadbeef);
    wire_put_u64(&s, 0x0123456789abcdef);
    wire_put_str(&s, "");
    wire_put_str(&s, "caf\xc3\xa9");

    wire_reader_init(&r, s.buf, s.len);
    EXPECT(wire_get_u8(&r) == 0xab);
    EXPECT(wire_get_u32(&r) == 0xdeadbeef);
    EXPECT(wire_get_u64(&r) == 0x0123456789abcdef);
    EXPECT_STR(wire_get_str(&r, 0), "");
    EXPECT(!wire_done(&r));
    EXPECT_STR(wire_get_str(&r, 5), "caf\xc3\xa9");
    EXPECT(wire_done(&r));
}

TEST(layout)
{
    static const char want[] = "\x01\x04\x03\x02\x01\x02\0\0\0hi"; /* and the string's NUL */
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 64);
    wire_put_u8(&s, 1);
    wire_put_u32(&s, 0x01020304);
    wire_put_str(&s, "hi");
    EXPECT(s.len == sizeof(want) && memcmp(s.buf, want, sizeof(want)) == 0);
}

TEST(every_cut_is_bad)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 64);
    wire_put_u64(&s, 1);
    wire_put_str(&s, "abc");
    wire_put_u8(&s, 2);
    for (size_t n = 0; n < s.len; n++) {
        /* An exact copy on the heap, so that the sanitizer sees a read behind its end. */
        AUTO(free_p) char *cut = malloc(n + 1);
        struct wire_reader r;

        memcpy(cut + 1, s.buf, n);
        wire_reader_init(&r, cut + 1, n);
        wire_get_u64(&r);
        const char *str = wire_get_str(&r, 16);
        EXPECT(strcmp(str, n < 16 ? "" : "abc") == 0);
        EXPECT(wire_get_u8(&r) == 0);
        EXPECT(r.bad && !wire_done(&r));
    }
}

TEST(bad_stays_bad)
{
    struct wire_reader r;

    wire_reader_init(&r, "\1\2\3", 3);
    EXPECT(wire_get_u32(&r) == 0);
    EXPECT(wire_get_u8(&r) == 0); /* although bytes are left */
    EXPECT_STR(wire_get_str(&r, 100), "");
    EXPECT(!wire_done(&r));
}

TEST(left_over_bytes_are_not_done)
{
    struct wire_reader r;

    wire_reader_init(&r, "\1\2", 2);
    EXPECT(wire_get_u8(&r) == 1);
    EXPECT(!r.bad && !wire_done(&r));
}

TEST(empty_input)
{
    struct wire_reader r;

    wire_reader_init(&r, NULL, 0);
    EXPECT(wire_done(&r));
    EXPECT_STR(wire_get_str(&r, 10), "");
    EXPECT(!wire_done(&r));
}

static bool str_accepted(const char *bytes, size_t len, size_t max)
{
    struct wire_reader r;

    wire_reader_init(&r, bytes, len);
    wire_get_str(&r, max);
    return wire_done(&r);
}

TEST(strings_are_bounded_terminated_and_without_nul)
{
    EXPECT(str_accepted("\3\0\0\0abc", 8, 3));
    EXPECT(!str_accepted("\3\0\0\0abc", 8, 2));
    EXPECT(!str_accepted("\3\0\0\0abc", 7, 3));  /* NUL missing at the end */
    EXPECT(!str_accepted("\3\0\0\0abcd", 8, 3)); /* something else in its place */
    EXPECT(!str_accepted("\3\0\0\0a\0c", 8, 3)); /* NUL inside: "a" would be shown, "a\0c" meant */
    EXPECT(!str_accepted("\xff\xff\xff\xff"
                         "a",
                         5, SIZE_MAX));
}

TAP_MAIN
