/* Bodies: where they end, and what is packed in them. */
#include "guard/http_body.h"
#include "guard/inspect_sanitise.h"
#include "lib/sanitise/sanitise.h"
#include "tap.h"

/* Reads a body that comes in pieces of `step` bytes. Returns the bytes used, or -EINVAL. */
static ssize_t read_body(struct body_reader *r, const char *text, size_t len, size_t step,
                         struct strbuf *out)
{
    size_t at = 0, there = 0;

    while (!body_reader_done(r)) {
        if (r->piece > 0) {
            size_t n = (r->piece + 1) / 2; /* not all at a time */
            strbuf_add(out, text + at, n);
            body_reader_take(r, n);
            at += n;
            continue;
        }
        if (there == at) {
            if (there == len)
                return (ssize_t)at;
            there = len - there < step ? len : there + step;
        }
        ssize_t n = body_reader_next(r, text + at, there - at);
        if (n < 0)
            return n;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static void reads(enum http_framing framing, uint64_t length, const char *text, const char *want,
                  size_t used)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct body_reader r;

        strbuf_init(&out, 1000);
        body_reader_init(&r, framing, length);
        EXPECT(read_body(&r, text, strlen(text), step, &out) == (ssize_t)used);
        EXPECT_STR(out.buf, want);
        EXPECT(body_reader_done(&r) == (framing != FRAMING_CLOSE));
        EXPECT(body_reader_ends_with_connection(&r) == (framing == FRAMING_CLOSE));
    }
}

TEST(bodies_end_where_they_say)
{
    reads(FRAMING_NONE, 0, "next", "", 0);
    reads(FRAMING_LENGTH, 5, "helloGET", "hello", 5);
    reads(FRAMING_LENGTH, 0, "GET", "", 0);
    reads(FRAMING_CHUNKED, 0, "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\nGET", "abcde", 28);
    reads(FRAMING_CLOSE, 0, "to the end", "to the end", 10);
}

TEST(chunks_that_are_none_are_refused)
{
    static const char *const bad[] = {"x\r\n",     "3\nabc", "3\r\nabcd\r\n",
                                      " 3\r\nabc", "-1\r\n", "fffffffffffffffff\r\n"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct body_reader r;

        strbuf_init(&out, 1000);
        body_reader_init(&r, FRAMING_CHUNKED, 0);
        EXPECT(read_body(&r, bad[i], strlen(bad[i]), 100, &out) == -EINVAL);
    }
}

TEST(chunks_are_written)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 1000);
    body_write_chunk(&out, "0123456789abcdefg", 17);
    body_write_chunk(&out, "", 0);
    body_write_end(&out);
    EXPECT_STR(out.buf, "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
}

/* ---- packed ---------------------------------------------------------------------------------- */

static size_t pack(const char *text, size_t len, int bits, char *ret, size_t cap)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
                  .avail_in = (uInt)len,
                  .next_out = (Bytef *)ret,
                  .avail_out = (uInt)cap};

    EXPECT(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    EXPECT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

/* Unpacks with `step` bytes in and `room` bytes out at a time. */
static int unpack(struct inflater *f, const char *p, size_t len, size_t step, size_t room,
                  struct strbuf *out)
{
    static char buf[16384];
    size_t at = 0, used = 1, n = 1;

    while (at < len || used > 0 || n > 0) {
        size_t left = len - at < step ? len - at : step;
        int r = inflater_feed(f, p + at, left, &used, buf, room, &n);
        if (r < 0)
            return r;
        strbuf_add(out, buf, n);
        at += used;
    }
    return f->ended ? 0 : -EAGAIN;
}

TEST(gzip_and_deflate_are_unpacked)
{
    static const int bits[] = {15, 15 + 16};

    for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
        for (size_t step = 1; step < 40; step += 13) {
            AUTO(strbuf_done) struct strbuf out = {0};
            struct inflater *f = inflater_new();
            char packed[256];
            size_t n = pack("hello hello hello", 17, bits[i], packed, sizeof(packed));

            strbuf_init(&out, 1000);
            EXPECT(unpack(f, packed, n, step, 3, &out) == 0);
            EXPECT_STR(out.buf, "hello hello hello");
            inflater_free(f);
        }
    }
}

TEST(a_file_of_two_members_is_one_body)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct inflater *f = inflater_new();
    char packed[256];
    size_t n = pack("one", 3, 31, packed, sizeof(packed));

    n += pack("two", 3, 31, packed + n, sizeof(packed) - n);
    strbuf_init(&out, 1000);
    EXPECT(unpack(f, packed, n, 1000, 1000, &out) == 0);
    EXPECT_STR(out.buf, "onetwo");
    inflater_free(f);
}

TEST(what_is_cut_or_broken_is_noticed)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct inflater *f = inflater_new();
    char packed[256];
    size_t n = pack("hello", 5, 31, packed, sizeof(packed));

    strbuf_init(&out, 1000);
    EXPECT(unpack(f, packed, n - 1, 1000, 1000, &out) == -EAGAIN);
    inflater_free(f);
    f = inflater_new();
    packed[n - 6] ^= 1;
    EXPECT(unpack(f, packed, n, 1000, 1000, &out) == -EINVAL);
    inflater_free(f);
    f = inflater_new();
    EXPECT(unpack(f, "plain text", 10, 1000, 1000, &out) == -EINVAL);
    inflater_free(f);
}

TEST(a_bomb_is_noticed_before_it_is_large)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(free_p) char *zeros = xcalloc(1, 64u << 20);
    AUTO(free_p) char *packed = xcalloc(1, 1u << 20);
    struct inflater *f = inflater_new();
    size_t n = pack(zeros, 64u << 20, 31, packed, 1u << 20);

    strbuf_init(&out, 64u << 20);
    EXPECT(unpack(f, packed, n, 16384, 16384, &out) == -EFBIG);
    EXPECT(out.len <= INFLATE_SMALL);
    inflater_free(f);
}

static enum body_coding coding(const char *fields)
{
    static struct http_message m;
    const char *why;
    char text[256];
    int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\n", fields);

    EXPECT(http_read_request(text, (size_t)n, &m, &why) == 0);
    return body_coding(&m);
}

/* Report-only: however much is packed in a few bytes, a call looks at one piece of it. */
TEST(a_look_inside_is_bounded)
{
    enum { PLAIN = 4u << 20, PIECE = 16u * 1024 };
    static char packed[PLAIN / 100];
    AUTO(free_p) char *plain = xcalloc(1, PLAIN);
    struct cleaner c = {.mode = SANITISE_REPORT, .inflater = inflater_new()};
    uLongf left = sizeof(packed);
    struct sg_error e;
    size_t at = 0;
    int r;

    memset(plain, 'x', PLAIN);
    EXPECT(compress((Bytef *)packed, &left, (const Bytef *)plain, PLAIN) == Z_OK);
    EXPECT(sanitiser_new(NULL, &c.sanitiser, &e) == 0);
    c.stream = sanitise_stream_new(c.sanitiser, c.mode);
    do {
        AUTO(strbuf_done) struct strbuf out = {0};
        uint64_t before = c.inflater->out;
        size_t used = 0;

        strbuf_init(&out, 1u << 20);
        r = at < left ? cleaner_feed(&c, packed + at, left - at, &used, &out)
                      : cleaner_end(&c, &out);
        EXPECT(r >= 0 && c.inflater->out - before <= PIECE);
        EXPECT(out.len == used && memcmp(out.buf, packed + at, used) == 0);
        at += used;
        if (r < 0)
            break;
    } while (at < left || r > 0);
    EXPECT(c.inflater->out == PLAIN && !c.gap);
    struct sanitiser *s = c.sanitiser;
    cleaner_done(&c);
    sanitiser_free(s);
}

TEST(codings_are_known_by_name)
{
    EXPECT(coding("") == CODING_NONE);
    EXPECT(coding("Content-Encoding: identity\r\n") == CODING_NONE);
    EXPECT(coding("Content-Encoding: GZIP\r\n") == CODING_INFLATE);
    EXPECT(coding("Content-Encoding: deflate\r\n") == CODING_INFLATE);
    EXPECT(coding("Content-Encoding: br\r\n") == CODING_UNKNOWN);
    EXPECT(coding("Content-Encoding: gzip, gzip\r\n") == CODING_UNKNOWN);
    EXPECT(coding("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n") == CODING_UNKNOWN);
}

TAP_MAIN
