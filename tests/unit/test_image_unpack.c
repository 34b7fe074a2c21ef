/* Layers unpacked: the forms of tar, and what must be refused. */
#include <zlib.h>
#include <zstd.h>

#include "image_rig.h"

TAP_MAIN

#define PACK(name) AUTO(strbuf_done) struct strbuf name = strbuf_upto(PACK_MAX)

static char text[1 << 16];

/* What the list of a layer says, or "! " and why not. */
static const char *said(const struct strbuf *out)
{
    AUTO(unpacked_done) struct unpacked u = unpack(out->buf, out->len);

    if (u.r == 0)
        return list_text(u.list, u.report.blocks, text, sizeof(text));
    snprintf(text, sizeof(text), "! %s", u.e.message);
    EXPECT(!strchr(text, '\n') && u.e.kind != SG_ERR_NONE);
    return text;
}

static bool refused(const struct strbuf *out, const char *why)
{
    bool ok = said(out)[0] == '!' && strstr(text, why);

    if (!ok)
        printf("# %s\n", text);
    return ok;
}

/* ---- forms ----------------------------------------------------------------------------------- */

TEST(every_kind_of_entry)
{
    PACK(t);

    pack_add(&t, '5', "./", "", "");
    pack_add(&t, '5', "usr/", "", "");
    pack_add(&t, '0', "usr/a", "", "hello");
    pack_add(&t, '\0', "usr/old", "", "");
    pack_add(&t, '\0', "usr/olddir/", "", "");
    pack_add(&t, '7', "usr/flat", "", "x");
    pack_add(&t, '1', "usr/b", "usr/a", "");
    pack_add(&t, '2', "usr/c", "../../etc", "");
    pack_add(&t, '3', "usr/null", "", "");
    pack_add(&t, '6', "usr/pipe", "", "");
    pack_end(&t);
    EXPECT_STR(said(&t), "d 640 1000:100 0 \nd 640 1000:100 0 usr\nf 640 1000:100 5 usr/a\n"
                         "f 640 1000:100 0 usr/old\nd 640 1000:100 0 usr/olddir\n"
                         "f 640 1000:100 1 usr/flat\nh 0 0:0 0 usr/b usr/a\n"
                         "l 777 1000:100 0 usr/c ../../etc\np 640 1000:100 0 usr/pipe\n");
}

TEST(contents_begin_at_blocks)
{
    PACK(t);

    pack_add(&t, '0', "a", "", "one");
    pack_add(&t, '0', "b", "", "two");
    pack_add(&t, '3', "left-out", "", "");
    pack_end(&t);
    AUTO(unpacked_done) struct unpacked u = unpack(t.buf, t.len);
    size_t len;
    AUTO(free_p) uint8_t *blob = file_bytes(u.blob, &len);
    EXPECT(u.r == 0 && u.report.blocks == 2 && u.report.entries == 2 && u.report.left_out == 1);
    EXPECT(len == 2 * IMAGE_BLOCK && memcmp(blob, "one\0", 4) == 0 &&
           memcmp(blob + IMAGE_BLOCK, "two\0", 4) == 0 && blob[2 * IMAGE_BLOCK - 1] == 0);
    EXPECT(u.report.bytes == t.len);
}

TEST(whiteouts_become_records)
{
    PACK(t);

    pack_add(&t, '0', "usr/.wh.gone", "", "contents are ignored");
    pack_add(&t, '0', "usr/.wh..wh..opq", "", "");
    pack_add(&t, '0', ".wh..wh..opq", "", "");
    pack_add(&t, '0', ".wh..wh.plnk", "", "");
    pack_end(&t);
    EXPECT_STR(said(&t), "w 0 0:0 0 usr/gone\no 0 0:0 0 usr\no 0 0:0 0 \n");
}

TEST(long_names_in_three_forms)
{
    char name[300], expected[1000], header[512];
    PACK(t);

    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 100 == 99 ? '/' : 'n';
    name[298] = '\0';
    pack_add(&t, 'L', "././@LongLink", "", name);
    pack_add(&t, 'K', "././@LongLink", "", name);
    pack_add(&t, '2', "cut", "cut", "");
    pack_pax(&t, 'x', "path", name);
    pack_pax(&t, 'x', "linkpath", "target");
    pack_add(&t, '2', "cut", "cut", "");
    pack_header(header, '0', "name", "", 0);
    memcpy(header + 345, "a/prefix", 8);
    pack_sum(header);
    strbuf_add(&t, header, 512);
    pack_end(&t);
    snprintf(expected, sizeof(expected),
             "l 777 1000:100 0 %s %s\nl 777 1000:100 0 %s target\nf 640 1000:100 0 a/prefix/name\n",
             name, name, name);
    EXPECT_STR(said(&t), expected);
}

TEST(numbers_in_base_256_and_from_pax)
{
    char header[512];
    PACK(t);

    pack_header(header, '0', "a", "", 0);
    memcpy(header + 108, "\x80\0\0\0\0\1\0\0", 8); /* 65536: nobody's */
    memcpy(header + 116, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    memcpy(header + 124, "\x80\0\0\0\0\0\0\0\0\0\0\5", 12);
    pack_sum(header);
    strbuf_add(&t, header, 512);
    strbuf_add(&t, "hello", 5);
    pack_pad(&t);
    pack_pax(&t, 'x', "uid", "65534");
    pack_pax(&t, 'x', "gid", "-1");
    pack_pax(&t, 'x', "size", "2");
    pack_header(header, '0', "b", "", 0);
    strbuf_add(&t, header, 512);
    strbuf_add(&t, "hi", 2);
    pack_pad(&t);
    pack_end(&t);
    EXPECT_STR(said(&t), "f 640 65534:65534 5 a\nf 640 65534:65534 2 b\n");
}

static struct record first_record(const struct strbuf *out)
{
    AUTO(unpacked_done) struct unpacked u = unpack(out->buf, out->len);
    AUTO(records_close_p) struct records *l = NULL;
    struct record_entry entry = {0};

    EXPECT(u.r == 0 && records_open(u.list, u.report.blocks, &l, NULL) == 0 &&
           records_next(l, &entry, NULL) == 1);
    return entry.r;
}

TEST(times_before_1970_and_between_seconds)
{
    static const struct {
        const char *text;
        int64_t s;
        uint32_t ns;
    } times[] = {{"1.5", 1, 500000000},
                 {"-1.25", -2, 750000000},
                 {"-3", -3, 0},
                 {"7.1234567891", 7, 123456789}};

    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        PACK(t);
        pack_pax(&t, 'x', "mtime", times[i].text);
        pack_add(&t, '0', "a", "", "");
        struct record r = first_record(&t);
        EXPECT(r.mtime == times[i].s && r.mtime_ns == times[i].ns);
    }
}

TEST(global_headers_are_about_what_follows)
{
    PACK(t);

    pack_pax(&t, 'g', "uid", "7");
    pack_add(&t, '0', "a", "", "");
    pack_pax(&t, 'x', "uid", "8");
    pack_add(&t, '0', "b", "", "");
    pack_add(&t, '0', "c", "", "");
    pack_pax(&t, 'x', "uid", "");
    pack_add(&t, '0', "d", "", "");
    EXPECT_STR(said(&t), "f 640 7:100 0 a\nf 640 8:100 0 b\nf 640 7:100 0 c\nf 640 1000:100 0 d\n");
    pack_pax(&t, 'g', "path", "x");
    EXPECT(refused(&t, "'path', which can only be said of one file"));
}

TEST(attributes_of_files)
{
    PACK(t);

    pack_pax(&t, 'x', "SCHILY.xattr.user.color", "red");
    pack_add(&t, '0', "a", "", "");
    EXPECT(first_record(&t).attrs_len == 12);
    pack_pax(&t, 'x', "SCHILY.xattr.trusted.overlay.opaque", "y");
    pack_add(&t, '5', "d", "", "");
    EXPECT_STR(said(&t), "f 640 1000:100 0 a\nd 640 1000:100 0 d\n");
}

/* ---- compressed ------------------------------------------------------------------------------ */

static void add_gzip(struct strbuf *to, const void *data, size_t len)
{
    z_stream z = {0};
    char out[1 << 16];

    EXPECT(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    do {
        z.next_out = (Bytef *)out;
        z.avail_out = sizeof(out);
        deflate(&z, Z_FINISH);
        strbuf_add(to, out, sizeof(out) - z.avail_out);
    } while (z.avail_out == 0);
    deflateEnd(&z);
}

static void add_zstd(struct strbuf *to, const void *data, size_t len)
{
    size_t cap = ZSTD_compressBound(len);
    AUTO(free_p) char *out = malloc(cap);
    size_t n = ZSTD_compress(out, cap, data, len, 1);

    EXPECT(!ZSTD_isError(n));
    strbuf_add(to, out, n);
}

static void make_pack(struct strbuf *t)
{
    pack_add(t, '0', "a", "", "hello");
    pack_add(t, '5', "b", "", "");
    pack_end(t);
}

TEST(members_and_frames_are_one_stream)
{
    const char *expected = "f 640 1000:100 5 a\nd 640 1000:100 0 b\n";
    uint8_t plain[IMAGE_DIGEST];
    PACK(t);
    PACK(gzip);
    PACK(zstd);

    make_pack(&t);
    add_gzip(&gzip, t.buf, 700);
    add_gzip(&gzip, "", 0);
    add_gzip(&gzip, t.buf + 700, t.len - 700);
    strbuf_add(&zstd, "\x50\x2a\x4d\x18\4\0\0\0skip", 12);
    add_zstd(&zstd, t.buf, 700);
    add_zstd(&zstd, t.buf + 700, t.len - 700);
    EXPECT_STR(said(&t), expected);
    EXPECT_STR(said(&gzip), expected);
    EXPECT_STR(said(&zstd), expected);
    for (int i = 0; i < 3; i++) {
        const struct strbuf *one = i == 0 ? &t : i == 1 ? &gzip : &zstd;
        AUTO(unpacked_done) struct unpacked u = unpack(one->buf, one->len);
        if (i == 0)
            memcpy(plain, u.report.diff_id, sizeof(plain));
        EXPECT(memcmp(plain, u.report.diff_id, sizeof(plain)) == 0 && u.report.bytes == t.len);
    }
}

TEST(a_layer_that_comes_byte_by_byte)
{
    int ends[2];
    PACK(t);
    PACK(gzip);
    static const struct image_limits limits = IMAGE_LIMITS;
    struct image_report report = {0};

    make_pack(&t);
    add_gzip(&gzip, t.buf, t.len);
    EXPECT(pipe2(ends, O_CLOEXEC | O_DIRECT) == 0); /* a packet for each write */
    EXPECT(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0 && gzip.len < 256);
    for (size_t i = 0; i < gzip.len; i++)
        EXPECT(write(ends[1], gzip.buf + i, 1) == 1);
    close(ends[1]);
    AUTO(close_p) int blob = file_empty(), list = file_empty();
    EXPECT(image_unpack(ends[0], blob, list, &limits, &report, NULL) == 0 && report.entries == 2);
    close(ends[0]);
}

/* Wherever a layer is cut, it is refused; but a plain one may end between two entries. */
TEST(cut_layers)
{
    PACK(t);
    PACK(gzip);
    PACK(zstd);

    make_pack(&t);
    add_gzip(&gzip, t.buf, t.len);
    add_zstd(&zstd, t.buf, t.len);
    for (int i = 0; i < 2; i++) {
        const struct strbuf *packed = i == 0 ? &gzip : &zstd;
        for (size_t len = 4; len < packed->len; len++) {
            AUTO(unpacked_done) struct unpacked u = unpack(packed->buf, len);
            EXPECT(u.r < 0);
        }
    }
    for (size_t len = 1; len < 1536; len++) {
        AUTO(unpacked_done) struct unpacked u = unpack(t.buf, len);
        EXPECT((u.r == 0) == (len == 1024)); /* a, its contents; then b */
    }
}

TEST(bombs)
{
    struct image_limits limits = IMAGE_LIMITS;
    char header[512];
    AUTO(free_p) char *zero = calloc(1, 8 << 20);
    PACK(t);
    PACK(gzip);

    pack_header(header, '0', "zero", "", 8 << 20);
    strbuf_add(&t, header, 512);
    strbuf_add(&t, zero, 8 << 20);
    pack_end(&t);
    add_gzip(&gzip, t.buf, t.len);
    limits.ratio = 100;
    AUTO(unpacked_done) struct unpacked ratio = unpack_with(gzip.buf, gzip.len, &limits);
    EXPECT(ratio.r == -EFBIG && strstr(ratio.e.message, "100 times as large"));
    limits = (struct image_limits)IMAGE_LIMITS;
    limits.bytes = 1 << 20;
    AUTO(unpacked_done) struct unpacked bytes = unpack_with(gzip.buf, gzip.len, &limits);
    EXPECT(bytes.r == -EFBIG && strstr(bytes.e.message, "more than 1048576 bytes"));
    limits = (struct image_limits)IMAGE_LIMITS;
    limits.entries = 1;
    strbuf_reset(&t);
    make_pack(&t);
    AUTO(unpacked_done) struct unpacked entries = unpack_with(t.buf, t.len, &limits);
    EXPECT(entries.r == -EFBIG && strstr(entries.e.message, "more than 1 entries"));
}

/* ---- refused --------------------------------------------------------------------------------- */

TEST(names_that_cannot_be)
{
    static const struct {
        char type;
        const char *name, *link, *why;
    } bad[] = {
        {'0', "", "", "has no name"},         {'0', "../x", "", "'..' in it"},
        {'0', "a/../../x", "", "'..' in it"}, {'1', "a", "../x", "'..' in it"},
        {'1', "a", "", "has no name"},        {'1', "a", "/", "is to a directory"},
        {'2', "a", "", "leads nowhere"},      {'0', "/", "", "for the root that is no directory"},
        {'0', "a/.wh.", "", "names nothing"}, {'0', ".wh...", "", "names nothing"}};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        PACK(t);
        pack_add(&t, bad[i].type, bad[i].name, bad[i].link, "");
        pack_end(&t);
        EXPECT(refused(&t, bad[i].why));
    }
}

TEST(names_that_are_too_long)
{
    char name[6000];
    static const char *const why[] = {"a part of the name", "more than 4095 bytes"};

    for (int i = 0; i < 2; i++) {
        PACK(gnu);
        PACK(pax);
        memset(name, 'n', sizeof(name));
        for (size_t k = 99; i == 1 && k < sizeof(name); k += 100)
            name[k] = '/';
        name[i == 0 ? 256 : 4097] = '\0';
        pack_add(&gnu, 'L', "long", "", name);
        pack_add(&gnu, '0', "a", "", "");
        pack_pax(&pax, 'x', "path", name);
        pack_add(&pax, '0', "a", "", "");
        EXPECT(refused(&gnu, why[i]) && refused(&pax, why[i]));
    }
}

TEST(types_that_cannot_be_taken)
{
    PACK(sparse);
    PACK(pax);
    PACK(volume);

    pack_add(&sparse, 'S', "a", "", "");
    EXPECT(refused(&sparse, "'a' is a sparse file"));
    pack_pax(&pax, 'x', "GNU.sparse.major", "1");
    pack_add(&pax, '0', "a", "", "");
    EXPECT(refused(&pax, "sparse file"));
    pack_add(&volume, 'M', "a", "", "");
    EXPECT(refused(&volume, "byte 77 of tar"));
}

TEST(fields_that_cannot_be)
{
    static const struct {
        size_t at, len;
        const char *bytes, *why;
    } bad[] = {{124, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf0", "size"},
               {124, 12, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "size"},
               {124, 12, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "size"},
               {124, 12, "-0000000001\0", "size"},
               {124, 12, "00000000x00\0", "size"},
               {108, 8, "12a4567\0", "owner"},
               {100, 8, "00x0644\0", "mode"},
               {136, 12, "1234567890:\0", "time"}};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char header[512];
        PACK(t);
        pack_header(header, '0', "a", "", 0);
        memcpy(header + bad[i].at, bad[i].bytes, bad[i].len);
        pack_sum(header);
        strbuf_add(&t, header, 512);
        pack_end(&t);
        EXPECT(refused(&t, bad[i].why) && strstr(text, "'a'"));
    }
}

TEST(what_is_no_tar)
{
    PACK(t);
    PACK(junk);

    EXPECT(refused(&t, "the layer is empty"));
    for (int i = 0; i < 100; i++)
        strbuf_addstr(&junk, "This is no archive at all.\n");
    EXPECT(refused(&junk, "no tar archive"));
    make_pack(&t);
    t.buf[1] ^= 1;
    EXPECT(refused(&t, "checksum"));
    t.buf[1] ^= 1;
    pack_add(&junk, '0', "after the end, anything may come", "", "");
    strbuf_add(&t, junk.buf, junk.len);
    EXPECT_STR(said(&t), "f 640 1000:100 5 a\nd 640 1000:100 0 b\n");
}

TEST(extended_headers_that_are_broken)
{
    static const char *const bad[] = {"x",
                                      "5 a\n",
                                      "99 path=a\n",
                                      "9 path=a\n",
                                      "11 path=a\n",
                                      " 9 path=a\n",
                                      "0 path=a\n",
                                      "9999999999999 a=b\n",
                                      "7 a=b\n7",
                                      "12 size=1x9\n",
                                      "11 uid=1.5\n",
                                      "13 mtime=a.5\n",
                                      "10 mtime=\n11 size=-1\n"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        PACK(t);
        pack_add(&t, 'x', "x", "", bad[i]);
        pack_add(&t, '0', "a", "", "");
        pack_end(&t);
        bool fine = strcmp(bad[i], "9 path=a\n") == 0;
        bool was = said(&t)[0] == '!';
        if (was == fine)
            printf("# %zu: %s\n", i, text);
        EXPECT(was != fine);
    }
    PACK(last);
    pack_pax(&last, 'x', "path", "b");
    EXPECT(refused(&last, "before its entry"));
    pack_end(&last);
    EXPECT(refused(&last, "before its entry"));
}
