/* The reader of tar archives: what it tells of them, whatever pieces they come in, and what it
 * refuses. */
#include "tap.h"

#include "lib/tar/tar_in.h"
#include "lib/tar/tar_out.h"
#include "tar_make.h"

TAP_MAIN

/* What was told, as text. */
static struct strbuf story;

static int on_entry(void *arg, const struct tar_entry *entry, struct sg_error *e)
{
    static const char types[] = {'f', 'd', 'l', 'h'};

    (void)arg, (void)e;
    strbuf_addf(&story, "%c %.60s %.60s %o %llu:", types[entry->type], entry->path, entry->link,
                entry->mode, (unsigned long long)entry->size);
    return 0;
}

static int on_data(void *arg, const void *p, size_t len, struct sg_error *e)
{
    (void)arg, (void)e;
    strbuf_add(&story, p, len);
    return 0;
}

static int on_entry_end(void *arg, struct sg_error *e)
{
    (void)arg, (void)e;
    strbuf_addch(&story, '\n');
    return 0;
}

static int read_in_pieces(const struct strbuf *tar, size_t piece, struct sg_error *e)
{
    static const struct tar_handlers h = {on_entry, on_data, on_entry_end};
    struct tar_reader t;
    int r = 0;

    strbuf_done(&story);
    strbuf_init(&story, 1u << 20);
    tar_init(&t, &h, NULL);
    for (size_t at = 0; r == 0 && at < tar->len; at += piece)
        r = tar_feed(&t, tar->buf + at, tar->len - at < piece ? tar->len - at : piece, e);
    if (r == 0)
        r = tar_feed(&t, NULL, 0, e);
    if (r == 0)
        r = tar_end(&t, e);
    tar_done(&t);
    return r;
}

static void expect_told(const struct strbuf *tar, const char *told)
{
    static const size_t pieces[] = {1, 7, 511, 512, 513, 100000};

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct sg_error e = {0};

        EXPECT(read_in_pieces(tar, pieces[i], &e) == 0);
        EXPECT_STR(e.message, "");
        EXPECT_STR(story.buf, told);
    }
}

static void expect_refused(const struct strbuf *tar, const char *words)
{
    struct sg_error e = {0};

    EXPECT(read_in_pieces(tar, 100, &e) < 0);
    if (!strstr(e.message, words))
        printf("# '%s'\n", e.message);
    EXPECT(strstr(e.message, words) != NULL);
}

TEST(plain)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);

    tar_made_add(&tar, '5', "app/", "", 0755, "", 0);
    tar_made_file(&tar, "app/main.py", 0644, "print(1)");
    tar_made_file(&tar, "app/empty", 0600, "");
    tar_made_add(&tar, '2', "app/link", "main.py", 0777, "", 0);
    tar_made_add(&tar, '1', "app/hard", "app/main.py", 0644, "", 0);
    tar_made_end(&tar);
    expect_told(&tar, "d app/  755 0:\nf app/main.py  644 8:print(1)\nf app/empty  600 0:\n"
                      "l app/link main.py 777 0:\nh app/hard app/main.py 644 0:\n");
    strbuf_addstr(&tar, "whatever follows");
    expect_told(&tar, story.buf ? "d app/  755 0:\nf app/main.py  644 8:print(1)\nf app/empty  600 "
                                  "0:\nl app/link main.py 777 0:\nh app/hard app/main.py 644 0:\n"
                                : "");
}

TEST(nothing)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);

    expect_told(&tar, "");
    tar_made_end(&tar);
    expect_told(&tar, "");
}

TEST(long_names)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    char name[300], told[400];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    tar_made_pax(&tar, "path", "caf\xc3\xa9");
    tar_made_file(&tar, "short", 0644, "1");
    tar_made_add(&tar, 'L', "././@LongLink", "", 0, name, sizeof(name));
    tar_made_file(&tar, "cut", 0644, "2");
    tar_made_pax(&tar, "linkpath", "over there");
    tar_made_add(&tar, '2', "l", "x", 0777, "", 0);
    tar_made_add(&tar, 'g', "global", "", 0, "13 comment=x\n", 13);
    tar_made_file(&tar, "after", 0644, "3");
    snprintf(told, sizeof(told),
             "f caf\xc3\xa9  644 1:1\nf %.60s  644 1:2\nl l over there 777 0:\nf after  644 1:3\n",
             name);
    expect_told(&tar, told);
}

static struct tar_entry owned;

static int on_owner(void *arg, const struct tar_entry *entry, struct sg_error *e)
{
    (void)arg, (void)e;
    owned = *entry;
    return 0;
}

static void expect_owner(const struct strbuf *tar, uint64_t uid, uint64_t gid, int64_t mtime)
{
    static const struct tar_handlers h = {on_owner, on_data, on_entry_end};
    struct sg_error e = {0};
    struct tar_reader t;

    tar_init(&t, &h, NULL);
    EXPECT(tar_feed(&t, tar->buf, tar->len, &e) == 0 && tar_end(&t, &e) == 0);
    tar_done(&t);
    EXPECT(owned.uid == uid && owned.gid == gid && owned.mtime == mtime);
}

static int put(void *arg, const void *data, size_t len)
{
    strbuf_add(arg, data, len);
    return 0;
}

TEST(owners_and_times)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    const struct tar_out out = {.put = put, .arg = &tar};

    EXPECT(tar_out_entry(&out, &(struct tar_out_entry){.name = "f",
                                                       .link = "",
                                                       .type = '0',
                                                       .mode = 0640,
                                                       .uid = 1000,
                                                       .gid = 65534,
                                                       .mtime = 981173106}) == 0 &&
           tar_out_end(&out) == 0);
    expect_owner(&tar, 1000, 65534, 981173106);
    strbuf_reset(&tar);
    tar_made_pax(&tar, "uid", "4000000");
    tar_made_pax(&tar, "mtime", "1700000000.25");
    tar_made_file(&tar, "f", 0644, "1");
    expect_owner(&tar, 4000000, 0, 1700000000);
    strbuf_reset(&tar);
    tar_made_pax(&tar, "gid", "many"); /* as if it were not there */
    tar_made_file(&tar, "f", 0644, "1");
    expect_owner(&tar, 0, 0, 0);
}

TEST(malformed)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);

    tar_made_file(&tar, "f", 0644, "text");
    tar.len -= 100;
    expect_refused(&tar, "ends in the middle");
    tar.len += 100;
    tar.buf[0] = 'g';
    expect_refused(&tar, "checksum");
    strbuf_reset(&tar);
    tar_made_add(&tar, '3', "null", "", 0644, "", 0);
    expect_refused(&tar, "'null' in the archive is no file, directory or link");
    strbuf_reset(&tar);
    tar_made_add(&tar, '2', "link", "x", 0644, "text", 4);
    expect_refused(&tar, "has a content");
    strbuf_reset(&tar);
    tar_made_add(&tar, 'x', "p", "", 0, "999 path=x\n", 11);
    tar_made_file(&tar, "f", 0644, "");
    expect_refused(&tar, "wrong length");
    strbuf_reset(&tar);
    tar_made_add(&tar, 'x', "p", "", 0, "8 pathx\n", 8);
    tar_made_file(&tar, "f", 0644, "");
    expect_refused(&tar, "no '='");
    strbuf_reset(&tar);
    tar_made_pax(&tar, "size", "99999999999999999999");
    tar_made_file(&tar, "f", 0644, "");
    expect_refused(&tar, "size");
    strbuf_reset(&tar);
    tar_made_pax(&tar, "GNU.sparse.major", "1");
    tar_made_file(&tar, "f", 0644, "");
    expect_refused(&tar, "sparse");
}
