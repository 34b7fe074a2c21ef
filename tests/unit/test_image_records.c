/* Lists of layers: what is written is read, and nothing else is. */
#include "image_rig.h"

TAP_MAIN

static struct sg_error e;

/* Reads a list to its end. */
static int read_all(const void *data, size_t len, uint64_t blocks)
{
    AUTO(close_p) int fd = file_of(data, len);
    AUTO(records_close_p) struct records *l = NULL;
    struct record_entry entry;
    int r = records_open(fd, blocks, &l, &e);

    while (r >= 0 && (r = records_next(l, &entry, &e)) > 0)
        EXPECT(strlen(entry.path) == entry.r.path_len && entry.r.kind < RECORD_END);
    return r;
}

TEST(a_list_is_read_twice)
{
    static const char expected[] =
        "d 700 0:0 0 \nf 700 0:0 5000 a\nl 777 0:0 0 b ../c\nh 0 0:0 0 d a\n"
        "p 700 0:0 0 e\nw 0 0:0 0 f/g\no 0 0:0 0 f\n";
    AUTO(close_p) int fd = list_of("d /\nf a\nl b ../c\nh d a\np e\nw f/g\no f");
    AUTO(records_close_p) struct records *l = NULL;
    struct record_entry entry;
    uint8_t blob[IMAGE_DIGEST], sum[IMAGE_DIGEST];
    char text[1000];

    EXPECT_STR(list_text(fd, RIG_BLOCKS, text, sizeof(text)), expected);
    EXPECT(records_open(fd, RIG_BLOCKS, &l, &e) == 0);
    for (int round = 0; round < 2; round++) {
        unsigned n = 0;
        while (records_next(l, &entry, &e) > 0)
            n++;
        EXPECT(n == 7 && records_next(l, &entry, &e) == 0);
        records_rewind(l);
    }
    records_digests(l, blob, sum);
    EXPECT(blob[0] == 1 && blob[2] == 3 && blob[3] == 0);
}

TEST(a_list_belongs_to_one_blob)
{
    AUTO(close_p) int fd = list_of("f a");
    char text[1000];

    EXPECT_STR(list_text(fd, RIG_BLOCKS + 1, text, sizeof(text)),
               "! the list belongs to a blob of 8 blocks, not of 9");
}

TEST(a_list_that_is_cut_or_longer_is_refused)
{
    AUTO(close_p) int fd = list_of("d a\nf a/b\nl a/c d");
    size_t len;
    AUTO(free_p) uint8_t *data = file_bytes(fd, &len);
    AUTO(free_p) uint8_t *longer = calloc(1, len + 1);

    EXPECT(read_all(data, len, RIG_BLOCKS) == 0);
    for (size_t n = 0; n < len; n++)
        EXPECT(read_all(data, n, RIG_BLOCKS) < 0);
    memcpy(longer, data, len);
    EXPECT(read_all(longer, len + 1, RIG_BLOCKS) < 0);
}

TEST(records_that_cannot_be)
{
    static const struct {
        const char *list;
        size_t at, len;
        char bytes[9];
    } bad[] = {
        {"f a", 0, 1, "\0"},
        {"f a", 0, 1, "\x09"},
        {"f a", 1, 1, "\1"},
        {"f a", 2, 2, "\0\x10"},
        {"f a", 4, 4, "\xff\xff"},
        {"f a", 12, 4, "\1\xca\x9a\x3b"},
        {"f a", 24, 8, "\0\0\0\0\0\1"},
        {"f a", 32, 4, "\7"},
        {"f a", 36, 2, "\2"},
        {"f a", 38, 2, "\1"},
        {"f a", 40, 2, "\4"},
        {"f a", 44, 4, "\1"},
        {"d a", 24, 8, "\1"},
        {"w a", 2, 2, "\1"},
        {"h a b", 8, 4, "\1"},
        {"f a/b", 48, 3, "a//"},
        {"f a/b", 48, 3, "../"},
        {"f a/b", 48, 3, "a\0b"},
        {"h a b", 49, 1, "/"},
        {"l a b", 49, 1, "\0"},
        {"f a", 36, 2, "\0\0"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(close_p) int fd = list_of(bad[i].list);
        size_t len;
        AUTO(free_p) uint8_t *data = file_bytes(fd, &len);

        EXPECT(read_all(data, len, RIG_BLOCKS) == 0);
        memcpy(data + strlen(RECORDS_MAGIC) + bad[i].at, bad[i].bytes, bad[i].len);
        if (read_all(data, len, RIG_BLOCKS) == 0)
            printf("# case %zu was taken\n", i);
        EXPECT(read_all(data, len, RIG_BLOCKS) < 0);
    }
}

TEST(what_is_no_list)
{
    int ends[2];
    struct records *l = NULL;

    EXPECT(read_all("", 0, 0) < 0 && read_all("SGLIST2\nxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 36, 0) < 0);
    EXPECT(pipe2(ends, O_CLOEXEC) == 0);
    EXPECT(records_open(ends[0], 0, &l, &e) == -EINVAL && !l);
    close(ends[0]);
    close(ends[1]);
}
