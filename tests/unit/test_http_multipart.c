#include "lib/text/strbuf.h"
#include "lib/http/multipart.h"
#include "tap.h"

static struct strbuf log_;
static int stop_with;

static int on_part(void *arg, const char *name, const char *filename, struct sg_error *e)
{
    (void)arg;
    strbuf_addf(&log_, "<%s|%s>", name, filename);
    return stop_with < 0 ? err_set(e, SG_ERR_INVALID, stop_with, "stop") : 0;
}

static int on_data(void *arg, const char *data, size_t len, struct sg_error *e)
{
    (void)arg, (void)e;
    EXPECT(len > 0);
    strbuf_add(&log_, data, len);
    return 0;
}

static int on_part_end(void *arg, struct sg_error *e)
{
    (void)arg, (void)e;
    strbuf_addstr(&log_, "</>");
    return 0;
}

static const struct multipart_handlers handlers = {on_part, on_data, on_part_end};

/* In pieces of `step` bytes. Returns what the parser said in the end. */
static int parse_in(const char *type, const char *body, size_t len, size_t step)
{
    struct multipart *m;
    struct sg_error e;

    strbuf_done(&log_);
    strbuf_init(&log_, 1 << 20);
    int r = multipart_new(type, &handlers, NULL, &m, &e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < len && r == 0; i += step)
        r = multipart_feed(m, body + i, len - i < step ? len - i : step, &e);
    int end = multipart_end(m, &e);
    EXPECT(r == 0 || end < 0);
    EXPECT(end == 0 || e.message[0]);
    multipart_free(m);
    return r < 0 ? r : end;
}

#define TYPE "multipart/form-data; boundary=XX"

/* However it is cut, the outcome is the same. */
static void expect_log(const char *body, size_t len, const char *expect)
{
    for (size_t step = 1; step <= len; step++) {
        EXPECT(parse_in(TYPE, body, len, step) == 0);
        EXPECT_STR(log_.buf, expect);
        if (tap_failures)
            return;
    }
}

static void expect_bad(const char *body, size_t len)
{
    for (size_t step = 1; step <= len; step++)
        EXPECT(parse_in(TYPE, body, len, step) == -EINVAL);
    if (tap_failures)
        printf("# %s\n", body);
}

#define EXPECT_LOG(body, expect) expect_log(body, sizeof(body) - 1, expect)
#define EXPECT_BAD(body)         expect_bad(body, sizeof(body) - 1)
#define PART                     "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\n"
#define END                      "\r\n--XX--\r\n"

TEST(parts)
{
    EXPECT_LOG(PART "hello" END, "<f|n>hello</>");
    EXPECT_LOG(PART END, "<f|n></>");
    EXPECT_LOG(PART "a\r\n" PART "b" END, "<f|n>a</><f|n>b</>");
    EXPECT_LOG("preamble\r\n" PART "a" END "epilogue\r\n--XX", "<f|n>a</>");
    EXPECT_LOG("--XX--", "");
    EXPECT_LOG("--XX \t\r\nX: y\r\n\r\na" END, "<|>a</>");
    EXPECT_LOG("--XX\r\n\r\na" END, "<|>a</>");
    EXPECT_LOG(
        "--XX\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=a\r\n\r\nb" END,
        "<a|>b</>");
}

TEST(data_that_looks_like_a_boundary)
{
    EXPECT_LOG(PART "\r\n--X\r\n-XX\r\n--\r\n" END, "<f|n>\r\n--X\r\n-XX\r\n--\r\n</>");
    EXPECT_LOG(PART "\r\r\n\r\n--X" END, "<f|n>\r\r\n\r\n--X</>");
    EXPECT_LOG(PART "--XX" END, "<f|n>--XX</>");
    EXPECT_LOG(PART "\n--XX--" END, "<f|n>\n--XX--</>");
    EXPECT_LOG(PART "\r\r\r\r" END, "<f|n>\r\r\r\r</>");
}

TEST(names)
{
#define NAMED(d) "--XX\r\nContent-Disposition: form-data; " d "\r\n\r\n" END
    EXPECT_LOG(NAMED("name=\"a b\"; filename=\"/home/user/x y.txt\""),
               "<a b|/home/user/x y.txt></>");
    EXPECT_LOG(NAMED("name=a;filename=b"), "<a|b></>");
    EXPECT_LOG(NAMED("filename=\"b\";name=\"a\""), "<a|b></>");
    EXPECT_LOG(NAMED("name=\"\xc3\xa9\"; filename=\"\xe2\x82\xac\""), "<\xc3\xa9|\xe2\x82\xac></>");
    EXPECT_LOG(NAMED("name=\"%22%0D%0a%41\"; filename=\"a%22b%\""), "<\"\r\n%41|a\"b%></>");
    EXPECT_LOG(NAMED("name=\"a\\\"b\\\\c\\d\"; filename=\"C:\\x;y\""), "<a\"b\\c\\d|C:\\x;y></>");
    EXPECT_LOG(NAMED("name=a; filename=\"x\"; filename*=UTF-8''%e2%82%ac%20"),
               "<a|\xe2\x82\xac ></>");
    EXPECT_LOG(NAMED("name=a; filename=\"x\"; filename*=UTF-8''a%00"), "<a|x></>");
    EXPECT_LOG(NAMED("name=a; filename=\"x\"; filename*=latin1''b"), "<a|x></>");
    EXPECT_LOG(NAMED("xname=a; name ; filenames=x; name=b"), "<b|></>");
    EXPECT_LOG(NAMED("name=\"open"), "<|></>");
}

TEST(broken_bodies)
{
    EXPECT_BAD("x");
    EXPECT_BAD("--XX");
    EXPECT_BAD("--XX\r\n");
    EXPECT_BAD("--XX-");
    EXPECT_BAD(PART "hello");
    EXPECT_BAD(PART "hello\r\n--XX");
    EXPECT_BAD(PART "hello\r\n--XXY\r\n");
    EXPECT_BAD("--XX\nContent-Disposition: form-data; name=a\n\nx" END);
    EXPECT_BAD("--XX\r\nContent-Disposition: form-data; name=a\nX: y\r\n\r\nx" END);
    EXPECT_BAD("--XX\r\nX: a\r\n folded\r\n\r\nx" END);
    EXPECT_BAD("--XX\r\nno colon\r\n\r\nx" END);
    EXPECT_BAD("--XX\r\nX: a\0b\r\n\r\nx" END);
    EXPECT_BAD("--XX\r\nX: a\rb\r\n\r\nx" END);
}

TEST(content_types)
{
    static const char *const good[] = {
        "multipart/form-data; boundary=XX",
        "Multipart/Form-Data;Boundary=\"XX\"",
        "multipart/form-data ; charset=utf-8; boundary=XX; x=y",
        "multipart/form-data; x=\"a;boundary=no\"; boundary=XX",
    };
    static const char *const bad[] = {
        "",
        "text/plain",
        "multipart/mixed; boundary=XX",
        "multipart/form-data",
        "multipart/form-dataX; boundary=XX",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"XX",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=\"a\x01\"",
        "multipart/form-data; boundary=\xc3\xa9",
        "multipart/form-data; xboundary=XX",
        "multipart/form-data; "
        "boundary=0123456789012345678901234567890123456789012345678901234567890"
        "1234567890",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        EXPECT(parse_in(good[i], PART "a" END, sizeof(PART "a" END) - 1, 7) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(parse_in(bad[i], "", 0, 1) == -EINVAL);
}

TEST(limits)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    strbuf_init(&body, 1 << 20);
    for (unsigned i = 0; i < MULTIPART_PARTS_MAX; i++)
        strbuf_addstr(&body, "--XX\r\n\r\n\r\n");
    strbuf_addstr(&body, "--XX--");
    EXPECT(parse_in(TYPE, body.buf, body.len, 1000) == 0);
    strbuf_reset(&body);
    for (unsigned i = 0; i <= MULTIPART_PARTS_MAX; i++)
        strbuf_addstr(&body, "--XX\r\n\r\n\r\n");
    strbuf_addstr(&body, "--XX--");
    EXPECT(parse_in(TYPE, body.buf, body.len, 1000) == -E2BIG);
    strbuf_reset(&body);
    strbuf_addstr(&body, "--XX\r\nX: ");
    for (unsigned i = 0; i < MULTIPART_HEADERS_MAX; i++)
        strbuf_addch(&body, 'x');
    strbuf_addstr(&body, "\r\n\r\n" END);
    EXPECT(parse_in(TYPE, body.buf, body.len, 1000) == -EINVAL);
}

TEST(a_handler_stops_it)
{
    stop_with = -ENOSPC;
    EXPECT(parse_in(TYPE, PART "hello" END, sizeof(PART "hello" END) - 1, 3) == -ENOSPC);
    EXPECT_STR(log_.buf, "<f|n>");
    stop_with = 0;
}

TAP_MAIN
