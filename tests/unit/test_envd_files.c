/* GET and POST /files: their small texts, and whole transfers with a real agent. */
#include <zlib.h>

#include "front/envd/envd.h"
#include "front/envd/files.h"
#include "front/envd/files_text.h"
#include "front/envd/signature.h"
#include "front_rig.h"

/* ---- texts ----------------------------------------------------------------------------------- */

TEST(ranges)
{
    static const struct {
        const char *header;
        enum range_kind kind;
        uint64_t first, last;
    } cases[] = {
        {NULL, RANGE_NONE, 0, 0},
        {"bytes=0-9", RANGE_FROM, 0, 9},
        {"bytes=5-", RANGE_FROM, 5, UINT64_MAX},
        {"bytes=-5", RANGE_SUFFIX, 0, 5},
        {"Bytes= 1-2 ", RANGE_FROM, 1, 2},
        {"bytes=0-1,3-4", RANGE_NONE, 0, 0},
        {"bytes=9-1", RANGE_NONE, 0, 0},
        {"bytes=", RANGE_NONE, 0, 0},
        {"bytes=-", RANGE_NONE, 0, 0},
        {"bytes=--5", RANGE_NONE, 0, 0},
        {"bytes=+1-2", RANGE_NONE, 0, 0},
        {"bytes=1-2x", RANGE_NONE, 0, 0},
        {"lines=1-2", RANGE_NONE, 0, 0},
        {"bytes=99999999999999999999-", RANGE_NONE, 0, 0},
        {"bytes=0-99999999999999999999", RANGE_NONE, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct range r = range_parse(cases[i].header);
        EXPECT(r.kind == cases[i].kind);
        if (r.kind != RANGE_NONE)
            EXPECT(r.first == cases[i].first && r.last == cases[i].last);
    }
}

TEST(ranges_in_a_file)
{
    static const struct {
        const char *header;
        bool inside;
        uint64_t first, len;
    } cases[] = {
        {"bytes=0-9", true, 0, 10},
        {"bytes=0-99", true, 0, 20},
        {"bytes=19-", true, 19, 1},
        {"bytes=20-", false, 0, 0},
        {"bytes=-5", true, 15, 5},
        {"bytes=-50", true, 0, 20},
        {"bytes=-0", false, 0, 0},
        {"bytes=18446744073709551615-", false, 0, 0},
        {"bytes=3-18446744073709551615", true, 3, 17},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct range r = range_parse(cases[i].header);
        uint64_t first = 0, len = 0;
        EXPECT(range_resolve(&r, 20, &first, &len) == cases[i].inside);
        EXPECT(first == cases[i].first && len == cases[i].len);
    }
}

/* F10: one header line, whatever the name. */
TEST(names_of_downloads)
{
    static const struct {
        const char *path, *value;
    } cases[] = {
        {"/a/b.txt", "attachment; filename=\"b.txt\""},
        {"/a/b c.txt", "attachment; filename=\"b c.txt\""},
        {"/a/x\r\nSet-Cookie: y=1", "attachment; filename=\"x__Set-Cookie: y=1\"; "
                                    "filename*=UTF-8''x%0D%0ASet-Cookie%3A%20y%3D1"},
        {"/a/q\"\\.txt", "attachment; filename=\"q__.txt\"; filename*=UTF-8''q%22%5C.txt"},
        {"/a/\xc3\xa9.txt", "attachment; filename=\"__.txt\"; filename*=UTF-8''%C3%A9.txt"},
        {"/a/100%", "attachment; filename=\"100_\"; filename*=UTF-8''100%25"},
        {"/a/dir//", "attachment; filename=\"dir\""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(strbuf_done) struct strbuf s = {0};
        strbuf_init(&s, 2048);
        disposition_write(&s, cases[i].path);
        EXPECT_STR(s.buf, cases[i].value);
    }
}

TEST(accepted_encodings)
{
    static const struct {
        const char *header;
        bool refused;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"gzip, deflate", false},
        {"gzip;q=1.0, identity;q=0", true},
        {"identity;q=0.0", true},
        {"identity; q=0", true},
        {"identity;q=0.5", false},
        {"*;q=0", true},
        {"*;q=0, identity", false},
        {"identity;q=1, *;q=0", false},
        {"br, *;q=0", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        EXPECT(identity_refused(cases[i].header) == cases[i].refused);
}

/* F12: no name leads out of user.e2b., and there is an end to it. */
TEST(metadata_names)
{
    static char many[5000];
    static const struct {
        struct http_header h[2];
        int r;
        uint32_t n;
    } cases[] = {
        {{{"x-metadata-author", "me"}, {"accept", "*/*"}}, 0, 1},
        {{{"x-metadata-a", "1"}, {"x-metadata-b", "2"}}, 0, 2},
        {{{"x-metadata-a", "1"}, {"x-metadata-a", "2"}}, 0, 1},
        {{{"x-metadata-a_b.c-1", ""}, {"a", "b"}}, 0, 1},
        {{{"x-metadata-", "1"}, {"a", "b"}}, -EINVAL, 0},
        {{{"x-metadata-../trusted.overlay.opaque", "y"}, {"a", "b"}}, -EINVAL, 0},
        {{{"x-metadata-a*b", "y"}, {"a", "b"}}, -EINVAL, 0},
        {{{"x-metadata-a", "\xc3\xa9"}, {"a", "b"}}, -EINVAL, 0},
        {{{"x-metadata-a", "tab\there"}, {"a", "b"}}, -EINVAL, 0},
        {{{"x-metadata-a", many}, {"a", "b"}}, -EINVAL, 0},
    };

    memset(many, 'x', sizeof(many) - 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(strbuf_done) struct strbuf s = {0};
        struct sg_error e = {0};
        struct wire_reader r;

        strbuf_init(&s, 65536);
        EXPECT(metadata_from_headers(cases[i].h, 2, &s, &e) == cases[i].r);
        wire_reader_init(&r, s.buf, s.len);
        EXPECT(cases[i].r < 0 || wire_get_u32(&r) == cases[i].n);
    }
    char name[300] = "x-metadata-";
    memset(name + 11, 'k', 246);
    struct http_header h = {name, "v"};
    AUTO(strbuf_done) struct strbuf s = {0};
    strbuf_init(&s, 65536);
    EXPECT(metadata_from_headers(&h, 1, &s, NULL) == 0);
    name[11 + 246] = 'k';
    EXPECT(metadata_from_headers(&h, 1, &s, NULL) == -EINVAL);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void route(struct rig *r, struct http_req *req)
{
    struct sandbox *b = r->sandbox;

    if (!http_header_get(req, "e2b-sandbox-id"))
        b = files_sandbox_by_signature(&r->front, req);
    if (!b)
        http_reply(req, 401, NULL, "no", 2);
    else if (req->method == HTTP_M_POST)
        envd_files_post(b, req);
    else
        envd_files_get(b, req);
}

PRINTF(3, 4)
static const char *get(struct rig *r, const char *headers, const char *fmt, ...)
{
    char target[8192], request[16384];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(target, sizeof(target), fmt, ap);
    va_end(ap);
    int n = snprintf(request, sizeof(request),
                     "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s\r\n", target, headers);
    return rig_ask(r, request, (size_t)n);
}

#define TO_SANDBOX "E2b-Sandbox-Id: x\r\n"

static const char *post(struct rig *r, const char *target, const char *headers, const void *body,
                        size_t len)
{
    AUTO(strbuf_done) struct strbuf q = {0};

    strbuf_init(&q, 64u << 20);
    strbuf_addf(&q, "POST %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n",
                target, len);
    strbuf_addstr(&q, headers);
    strbuf_addstr(&q, "\r\n");
    strbuf_add(&q, body, len);
    return rig_ask(r, q.buf, q.len);
}

#define RAW TO_SANDBOX "Content-Type: application/octet-stream\r\n"

static const char *put_text(struct rig *r, const char *target, const char *text)
{
    return post(r, target, RAW, text, strlen(text));
}

TEST(a_file_goes_in_and_comes_out)
{
    struct rig r;

    rig_start(&r, route);
    const char *a = put_text(&r, "/files?path=notes/today.txt", "hello file");
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT_STR(rig_body(a), "[{\"path\":\"/home/user/notes/today.txt\",\"name\":\"today.txt\","
                            "\"type\":\"file\"}]");
    EXPECT_STR(rig_says(&r, "cat notes/today.txt; stat -c ' %u %a' notes/today.txt notes"),
               "hello file 1000 644\n 1000 755\n");

    a = get(&r, TO_SANDBOX, "/files?path=notes/today.txt");
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT_HAS(a, "\r\nContent-Length: 10\r\n");
    EXPECT_HAS(a, "\r\nContent-Type: application/octet-stream\r\n");
    EXPECT_HAS(a, "\r\nContent-Disposition: attachment; filename=\"today.txt\"\r\n");
    EXPECT_STR(rig_body(a), "hello file");
    EXPECT_STR(rig_body(get(&r, TO_SANDBOX, "/files?path=~/notes/today.txt")), "hello file");
    EXPECT_STR(
        rig_body(get(&r, TO_SANDBOX, "/files?path=/home/user/notes/today.txt&username=root")),
        "hello file");

    put_text(&r, "/files?path=notes/today.txt", ""); /* replaced by an empty one */
    a = get(&r, TO_SANDBOX, "/files?path=notes/today.txt");
    EXPECT_HAS(a, "\r\nContent-Length: 0\r\n");
    EXPECT_HAS(get(&r, TO_SANDBOX, "/files?path=/proc/sys/kernel/ostype"), "\r\n\r\nLinux\n");
    rig_stop(&r);
}

TEST(parts_of_a_file)
{
    struct rig r;

    rig_start(&r, route);
    put_text(&r, "/files?path=f", "0123456789");
    const char *a = get(&r, TO_SANDBOX "Range: bytes=2-4\r\n", "/files?path=f");
    EXPECT_HAS(a, "HTTP/1.1 206 ");
    EXPECT_HAS(a, "\r\nContent-Range: bytes 2-4/10\r\n");
    EXPECT_HAS(a, "\r\nContent-Length: 3\r\n");
    EXPECT_STR(rig_body(a), "234");
    EXPECT_STR(rig_body(get(&r, TO_SANDBOX "Range: bytes=-3\r\n", "/files?path=f")), "789");
    EXPECT_STR(rig_body(get(&r, TO_SANDBOX "Range: bytes=8-\r\n", "/files?path=f")), "89");
    a = get(&r, TO_SANDBOX "Range: bytes=10-\r\n", "/files?path=f");
    EXPECT_HAS(a, "HTTP/1.1 416 ");
    EXPECT_HAS(a, "\r\nContent-Range: bytes */10\r\n");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=0-1,3-4\r\n", "/files?path=f"),
               "\r\n\r\n0123456789");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", "/files?path=f"),
               "HTTP/1.1 200 ");
    rig_says(&r, "ln -s f l; : > empty");
    EXPECT_STR(rig_body(get(&r, TO_SANDBOX "Range: bytes=-3\r\n", "/files?path=l")), "789");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=0-9\r\n", "/files?path=empty"), "HTTP/1.1 200 ");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=-9\r\n", "/files?path=empty"), "HTTP/1.1 200 ");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=-0\r\n", "/files?path=f"), "HTTP/1.1 416 ");
    EXPECT_HAS(get(&r, TO_SANDBOX "Range: bytes=-9\r\n", "/files?path=none"), "HTTP/1.1 404 ");
    EXPECT_STR(
        rig_body(get(&r, TO_SANDBOX "Range: bytes=1-3\r\n", "/files?path=/proc/sys/kernel/ostype")),
        "inu");
    rig_stop(&r);
}

TEST(what_cannot_be_read)
{
    static const struct {
        const char *headers, *target, *status, *message;
    } cases[] = {
        {TO_SANDBOX, "/files?path=none", "404", "path '/home/user/none' does not exist"},
        {TO_SANDBOX, "/files?path=/tmp", "400", "path '/tmp' is a directory"},
        {TO_SANDBOX, "/files", "400", "path '/home/user' is a directory"},
        {TO_SANDBOX, "/files?path=~root/x", "400", "cannot expand user-specific home dir"},
        {TO_SANDBOX, "/files?path=f&username=ghost", "401", "error looking up user 'ghost'"},
        {TO_SANDBOX, "/files?path=f&username=..%2fx", "401", "error looking up user '../x'"},
        {TO_SANDBOX, "/files?path=/proc/1/environ", "403", ""},
        {TO_SANDBOX, "/files?path=f%00", "400", "'path' must not hold a NUL"},
        {TO_SANDBOX, "/files?path=f&username=%00", "400", "'username' must not hold a NUL"},
        {TO_SANDBOX, "/files?path=pipe", "400", ""},
        {TO_SANDBOX, "/files?path=/dev/zero", "400", ""},
        {TO_SANDBOX, "/files?path=loop", "400", ""},
        {TO_SANDBOX, "/files?path=dangling", "404", ""},
        {TO_SANDBOX, "/files?path=/proc/1/root/etc/passwd", "4", ""},
        {TO_SANDBOX "Accept-Encoding: identity;q=0\r\n", "/files?path=f", "406", "encoding"},
    };
    struct rig r;

    rig_start(&r, route);
    put_text(&r, "/files?path=f", "x");
    rig_says(&r, "mkfifo pipe; ln -s loop loop; ln -s nowhere dangling");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char status[32];
        const char *a = get(&r, cases[i].headers, "%s", cases[i].target);
        snprintf(status, sizeof(status), "HTTP/1.1 %s", cases[i].status);
        EXPECT_HAS(a, status);
        EXPECT_HAS(a, cases[i].message);
        EXPECT_HAS(a, "{\"code\":4");
    }
    static char longest[5000];
    memset(longest, 'a', sizeof(longest) - 1);
    EXPECT_HAS(get(&r, TO_SANDBOX, "/files?path=%s", longest), "HTTP/1.1 400 ");
    rig_stop(&r);
}

#define PART(name, file, body)                                                   \
    "--B\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"" file \
    "\"\r\nContent-Type: application/octet-stream\r\n\r\n" body "\r\n"
#define MULTIPART TO_SANDBOX "Content-Type: multipart/form-data; boundary=B\r\n"

static const char *post_parts(struct rig *r, const char *target, const char *parts)
{
    return post(r, target, MULTIPART, parts, strlen(parts));
}

TEST(files_in_parts)
{
    struct rig r;

    rig_start(&r, route);
    const char *a = post_parts(&r, "/files",
                               PART("file", "/tmp/a", "one") PART("file", "b/c", "two")
                                   PART("other", "x", "dropped") PART("file", "e", "") "--B--\r\n");
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT_STR(rig_body(a), "[{\"path\":\"/tmp/a\",\"name\":\"a\",\"type\":\"file\"},"
                            "{\"path\":\"/home/user/b/c\",\"name\":\"c\",\"type\":\"file\"},"
                            "{\"path\":\"/home/user/e\",\"name\":\"e\",\"type\":\"file\"}]");
    EXPECT_STR(rig_says(&r, "cat /tmp/a b/c e; ls x 2>/dev/null"), "onetwo");
    a = post_parts(&r, "/files?path=here", PART("file", "ignored", "three") "--B--\r\n");
    EXPECT_HAS(rig_body(a), "\"/home/user/here\"");

    a = post_parts(&r, "/files", PART("file", "d", "1") PART("file", "~/d", "2") "--B--\r\n");
    EXPECT_HAS(a, "HTTP/1.1 400 ");
    EXPECT_HAS(a, "multiple files to the same path '/home/user/d'");
    EXPECT_STR(rig_says(&r, "cat d"), "1");
    EXPECT_HAS(post_parts(&r, "/files", PART("file", "", "1") "--B--\r\n"), "HTTP/1.1 400 ");
    EXPECT_HAS(post_parts(&r, "/files", PART("file", "cut", "1")), "HTTP/1.1 400 ");
    rig_stop(&r);
}

/* Hundreds of files in one piece of a body: each waits for the one before. */
TEST(many_parts_at_once)
{
    AUTO(strbuf_done) struct strbuf body = {0};
    struct rig r;

    strbuf_init(&body, 4u << 20);
    for (int i = 0; i < 500; i++)
        strbuf_addf(&body,
                    "--B\r\nContent-Disposition: form-data; name=\"file\"; "
                    "filename=\"many/%d\"\r\n\r\n%d\r\n",
                    i, i);
    strbuf_addstr(&body, "--B--\r\n");
    rig_start(&r, route);
    EXPECT_HAS(post(&r, "/files", MULTIPART, body.buf, body.len), "HTTP/1.1 200 ");
    EXPECT_STR(rig_says(&r, "ls many | wc -l; cat many/499"), "500\n499");
    rig_stop(&r);
}

static void pack(struct strbuf *out, const void *data, size_t len)
{
    static char buf[1u << 20];
    z_stream z = {0};

    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    z.next_out = (Bytef *)buf;
    z.avail_out = sizeof(buf);
    EXPECT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    strbuf_add(out, buf, sizeof(buf) - z.avail_out);
    deflateEnd(&z);
}

#define PACKED RAW "Content-Encoding: gzip\r\n"

TEST(packed_bodies)
{
    static char zeros[20u << 20];
    AUTO(strbuf_done) struct strbuf body = {0};
    struct rig r;

    rig_start(&r, route);
    strbuf_init(&body, 4u << 20);
    pack(&body, "hello ", 6);
    pack(&body, "world", 5); /* two members are one file */
    EXPECT_HAS(post(&r, "/files?path=z", PACKED, body.buf, body.len), "HTTP/1.1 200 ");
    EXPECT_STR(rig_says(&r, "cat z"), "hello world");
    EXPECT_HAS(post(&r, "/files?path=cut", PACKED, body.buf, body.len - 4), "HTTP/1.1 400 ");
    EXPECT_HAS(post(&r, "/files?path=bad", PACKED, "not gzip at all", 15), "HTTP/1.1 400 ");
    EXPECT_STR(rig_says(&r, "ls cut bad 2>/dev/null"), "");
    EXPECT_HAS(post(&r, "/files?path=z", RAW "Content-Encoding: br\r\n", "x", 1), "HTTP/1.1 400 ");
    EXPECT_HAS(post(&r, "/files?path=z", RAW "Content-Encoding: identity\r\n", "x", 1),
               "HTTP/1.1 200 ");

    /* Larger than everything that can be held on the way. */
    strbuf_reset(&body);
    pack(&body, zeros, sizeof(zeros));
    EXPECT_HAS(post(&r, "/files?path=large", PACKED, body.buf, body.len), "HTTP/1.1 200 ");
    EXPECT_STR(rig_says(&r, "stat -c %s large"), "20971520\n");
    /* A bomb fills the sandbox's disk, and leaves nothing. */
    strbuf_reset(&body);
    for (int i = 0; i < 8; i++)
        pack(&body, zeros, sizeof(zeros));
    const char *a = post(&r, "/files?path=bomb", PACKED, body.buf, body.len);
    EXPECT_HAS(a, "HTTP/1.1 507 ");
    EXPECT_HAS(a, "not enough disk space available");
    EXPECT_STR(rig_says(&r, "ls -A | sort | tr '\\n' ' '"), "large z ");
    rig_stop(&r);
}

/* How often the loop has turned. */
static unsigned turns;

static void count_turn(uv_prepare_t *p)
{
    (void)p;
    turns++;
}

/* What unpacks to much is no more work for one turn of the loop than anything else. */
TEST(a_bomb_is_unpacked_in_slices)
{
    static char zeros[20u << 20];
    AUTO(strbuf_done) struct strbuf body = {0};
    uv_prepare_t watch;
    struct rig r;

    rig_one_slice = true;
    rig_start(&r, route);
    rig_one_slice = false;
    uv_prepare_init(&r.loop, &watch);
    uv_prepare_start(&watch, count_turn);
    strbuf_init(&body, 4u << 20);
    pack(&body, zeros, sizeof(zeros));
    turns = 0;
    EXPECT_HAS(post(&r, "/files?path=large", PACKED, body.buf, body.len), "HTTP/1.1 200 ");
    EXPECT(turns >= sizeof(zeros) / WORK_PIECE);
    EXPECT_STR(rig_says(&r, "stat -c %s large"), "20971520\n");
    uv_close((uv_handle_t *)&watch, NULL);
    rig_stop(&r);
}

/* What is before, between and behind files goes nowhere: nothing but a limit is in its way. */
TEST(what_belongs_to_no_file_is_limited)
{
    static const char form[] = "--B\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n";
    static char zeros[4u << 20];
    static const char *const heads[] = {"", form, PART("file", "f", "1") "--B--\r\n"};
    struct rig r;

    rig_start(&r, route);
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        AUTO(strbuf_done) struct strbuf body = {0}, packed = {0};

        strbuf_init(&body, sizeof(zeros) + 4096);
        strbuf_init(&packed, 1u << 20);
        strbuf_addstr(&body, heads[i]);
        strbuf_add(&body, zeros, sizeof(zeros));
        pack(&packed, body.buf, body.len);
        const char *a =
            post(&r, "/files", MULTIPART "Content-Encoding: gzip\r\n", packed.buf, packed.len);
        EXPECT_HAS(a, "HTTP/1.1 413 ");
        EXPECT_HAS(a, "belongs to no file");
    }
    /* As much of it as a form may have. */
    AUTO(strbuf_done) struct strbuf body = {0};
    strbuf_init(&body, sizeof(zeros));
    strbuf_addstr(&body, form);
    strbuf_add(&body, zeros, 900u << 10);
    strbuf_addstr(&body, "\r\n" PART("file", "kept", "1") "--B--\r\n");
    EXPECT_HAS(post(&r, "/files", MULTIPART, body.buf, body.len), "HTTP/1.1 200 ");
    EXPECT_STR(rig_says(&r, "cat kept"), "1");
    rig_stop(&r);
}

TEST(what_cannot_be_written)
{
    static const struct {
        const char *headers, *target, *status, *message;
    } cases[] = {
        {TO_SANDBOX "Content-Type: text/plain\r\n", "/files?path=f", "400",
         "unsupported content type"},
        {TO_SANDBOX, "/files?path=f", "400", "unsupported content type"},
        {RAW, "/files", "400", "path query parameter is required"},
        {RAW, "/files?path=/tmp", "400", "is a directory"},
        {RAW, "/files?path=/tmp/new/", "400", ""},
        {RAW, "/files?path=/etc/x", "403", ""},
        {RAW, "/files?path=f&username=ghost", "401", "user 'ghost'"},
        {RAW "X-Metadata-..%2f: x\r\n", "/files?path=f", "400", "invalid metadata"},
        {TO_SANDBOX "Content-Type: multipart/form-data\r\n", "/files", "400", "boundary"},
    };
    struct rig r;

    rig_start(&r, route);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char status[32];
        const char *a = post(&r, cases[i].target, cases[i].headers, "abc", 3);
        snprintf(status, sizeof(status), "HTTP/1.1 %s", cases[i].status);
        EXPECT_HAS(a, status);
        EXPECT_HAS(a, cases[i].message);
    }
    EXPECT_STR(rig_says(&r, "ls -A"), "");
    rig_stop(&r);
}

TEST(metadata_of_a_file)
{
    struct rig r;

    rig_start(&r, route);
    const char *a =
        post(&r, "/files?path=m", RAW "X-Metadata-Author: me\r\nX-Metadata-n: 1\r\n", "x", 1);
    EXPECT_HAS(a, "HTTP/1.1 200 ");
    EXPECT_HAS(a, "\"author\":\"me\"");
    EXPECT_HAS(a, "\"n\":\"1\"");
    a = post(&r, "/files?path=m", RAW "X-Metadata-other: 2\r\n", "x", 1);
    EXPECT_HAS(a, "\"metadata\":{\"other\":\"2\"}"); /* all of it is replaced */
    EXPECT(!strstr(put_text(&r, "/files?path=m", "x"), "metadata"));
    rig_stop(&r);
}

static void make_signature(char *ret, const char *path, const char *op, const char *user,
                           const char *token, const char *expiry)
{
    struct signed_request s = {path, op, user, expiry};
    AUTO(signature_check_free_p) struct signature_check *c = signature_check_new(&s);

    char plain[SIGNATURE_LEN + 1];
    signature_make(c, token, plain);
    for (const char *p = plain; *p; p++)
        ret += *p == '+' || *p == '/' ? snprintf(ret, 4, "%%%02X", (unsigned)*p)
                                      : snprintf(ret, 2, "%c", *p);
}

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

TEST(who_may)
{
    char good[160], writes[160], root[160], late[160], soon[160], foreign[160], nobody[160];
    struct rig r;

    rig_start(&r, route);
    put_text(&r, "/files?path=/tmp/f", "x");
    snprintf(r.sandbox->spec.envd_token, sizeof(r.sandbox->spec.envd_token), "%s", TOKEN);
    make_signature(good, "/tmp/f", "read", "", TOKEN, NULL);
    make_signature(writes, "/tmp/f", "write", "", TOKEN, NULL);
    make_signature(root, "/tmp/f", "read", "root", TOKEN, NULL);
    make_signature(late, "/tmp/f", "read", "", TOKEN, "1700000000");
    make_signature(soon, "/tmp/f", "read", "", TOKEN, "99999999999");
    make_signature(foreign, "/tmp/f", "read", "", "0123456789abcdef0123456789abcdef01234568", NULL);
    make_signature(nobody, "/tmp/f", "read", "", "", NULL);
    const struct {
        const char *headers, *query, *signature, *answer;
    } cases[] = {
        {TO_SANDBOX "X-Access-Token: " TOKEN "\r\n", "", NULL, " 200 "},
        {TO_SANDBOX "X-Access-Token: wrong\r\n", "", good, "in header but does not match"},
        {TO_SANDBOX, "", NULL, "missing signature query parameter"},
        {TO_SANDBOX, "", good, " 200 "},
        {"", "", good, " 200 "}, /* finds the sandbox by itself */
        {TO_SANDBOX, "", writes, "invalid signature"},
        {TO_SANDBOX, "", root, "invalid signature"},
        {TO_SANDBOX, "&username=root", root, " 200 "},
        {TO_SANDBOX, "&username=root", good, "invalid signature"},
        {TO_SANDBOX, "&signature_expiration=99999999999", soon, " 200 "},
        {TO_SANDBOX, "&signature_expiration=1700000000", late, "signature is already expired"},
        {"", "&signature_expiration=1700000000", late, "signature is already expired"},
        {TO_SANDBOX, "&signature_expiration=99999999999", late, "invalid signature"},
        {TO_SANDBOX, "&signature_expiration=-1", good, "invalid signature"},
        {TO_SANDBOX, "&signature_expiration=1700000000", good, "invalid signature"},
        {TO_SANDBOX, "", late, "invalid signature"},
        {TO_SANDBOX, "", foreign, "invalid signature"},
        {TO_SANDBOX, "", nobody, "invalid signature"},
        {"", "", foreign, " 401 "},
        {"", "", nobody, " 401 "},
        {"", "", "v1_short", " 401 "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *a = get(&r, cases[i].headers, "/files?path=/tmp/f%s%s%s", cases[i].query,
                            cases[i].signature ? "&signature=" : "",
                            cases[i].signature ? cases[i].signature : "");
        EXPECT_HAS(a, cases[i].answer);
        EXPECT(strstr(a, "HTTP/1.1 200 ") || strstr(a, "HTTP/1.1 401 "));
    }
    /* What was signed for reading does not write. */
    char target[256];
    snprintf(target, sizeof(target), "/files?path=/tmp/f&signature=%s", good);
    EXPECT_HAS(post(&r, target, RAW, "y", 1), "invalid signature");
    snprintf(target, sizeof(target), "/files?path=/tmp/f&signature=%s", writes);
    EXPECT_HAS(post(&r, target, RAW, "y", 1), " 200 ");
    rig_stop(&r);
}

/* ---- pace ------------------------------------------------------------------------------------ */

#define LARGE (40u << 20)

static void upload_and_leave(struct rig *r, void *arg)
{
    static const char head[] =
        "POST /files?path=half HTTP/1.1\r\nHost: h\r\n" RAW "Content-Length: 1000000\r\n\r\nhello";
    int fd = rig_connect(r);

    (void)arg;
    fd_write_all(fd, head, sizeof(head) - 1);
    usleep(50000); /* so that the write has begun */
    close(fd);
}

TEST(a_client_that_leaves_writes_nothing)
{
    struct rig r;

    rig_start(&r, route);
    rig_run(&r, upload_and_leave, NULL);
    for (int i = 0; i < 1000 && r.sandbox->refs > 2; i++) {
        uv_run(&r.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    EXPECT_STR(rig_says(&r, "ls -A"), "");
    rig_stop(&r);
}

struct large {
    size_t got;
    bool right;
};

static void download_slowly(struct rig *r, void *arg)
{
    static const char head[] =
        "GET /files?path=large HTTP/1.1\r\nHost: h\r\n" TO_SANDBOX "Connection: close\r\n\r\n";
    static char buf[1u << 20];
    struct large *l = arg;
    int fd = rig_connect(r);
    ssize_t n;

    fd_write_all(fd, head, sizeof(head) - 1);
    usleep(300000); /* all that can be on the way is */
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        l->got += (size_t)n;
    close(fd);
}

static void upload_large(struct rig *r, void *arg)
{
    static char buf[1u << 20];
    char head[256];
    struct strbuf *answer = arg;
    int fd = rig_connect(r);
    int n = snprintf(head, sizeof(head),
                     "POST /files?path=large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" RAW
                     "Content-Length: %u\r\n\r\n",
                     LARGE);

    fd_write_all(fd, head, (size_t)n);
    for (unsigned i = 0; i < LARGE / sizeof(buf); i++) {
        memset(buf, 'a' + (int)i % 26, sizeof(buf));
        fd_write_all(fd, buf, sizeof(buf));
    }
    rig_read(fd, answer, NULL);
    close(fd);
}

TEST(large_files)
{
    AUTO(strbuf_done) struct strbuf answer = {0};
    struct large l = {0};
    struct rig r;

    rig_start(&r, route);
    strbuf_init(&answer, 65536);
    rig_run(&r, upload_large, &answer);
    EXPECT_HAS(answer.buf, "HTTP/1.1 200 ");
    EXPECT_STR(rig_says(&r, "stat -c %s large; tr -d a-z < large | wc -c; "
                            "head -c 1048577 large | tail -c 2"),
               "41943040\n0\nab");
    rig_run(&r, download_slowly, &l);
    EXPECT(l.got > LARGE && l.got < LARGE + 1024);
    rig_stop(&r);
}

static void gone_midway(struct rig *r, void *arg)
{
    static const char head[] = "GET /files?path=large HTTP/1.1\r\nHost: h\r\n" TO_SANDBOX "\r\n";
    char buf[4096];
    int fd = rig_connect(r);

    (void)arg;
    fd_write_all(fd, head, sizeof(head) - 1);
    EXPECT(read(fd, buf, sizeof(buf)) > 0);
    close(fd);
}

TEST(a_download_that_is_left)
{
    struct rig r;

    rig_start(&r, route);
    rig_says(&r, "head -c 30000000 /dev/zero > large");
    for (int i = 0; i < 5; i++)
        rig_run(&r, gone_midway, NULL);
    for (int i = 0; i < 5000 && r.sandbox->refs > 2; i++) {
        uv_run(&r.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    EXPECT(r.sandbox->refs == 2);
    rig_stop(&r);
}

TAP_MAIN
