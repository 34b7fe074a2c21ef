/* Images: what the writer makes the checker takes, and a mutant only if it is as well formed. */
#include "image/layout.h"
#include "image_rig.h"

TAP_MAIN

static struct sg_error e;
static const struct image_limits limits = IMAGE_LIMITS;

struct image {
    uint8_t *bytes;
    size_t len;
    struct image_report report;
};

static void image_done(struct image *i)
{
    free(i->bytes);
}

static struct image make(const char *a, const char *b)
{
    struct image ret = {0};
    int lists[2] = {list_of(a), b ? list_of(b) : -1};
    uint64_t blocks[2] = {RIG_BLOCKS, RIG_BLOCKS};
    AUTO(close_p) int meta = file_empty();
    int r = image_write(meta, lists, blocks, b ? 2 : 1, &limits, &ret.report, &e);

    if (r < 0)
        printf("# %s\n", e.message);
    EXPECT(r == 0);
    ret.bytes = file_bytes(meta, &ret.len);
    close(lists[0]);
    if (b)
        close(lists[1]);
    return ret;
}

static int check_bytes(const uint8_t *bytes, size_t len, size_t n)
{
    uint64_t blocks[3] = {RIG_BLOCKS, RIG_BLOCKS, RIG_BLOCKS};
    struct image_report report = {0};

    e.message[0] = '\0';
    int r = image_check(bytes, len, blocks, n, &report, &e);
    EXPECT((r < 0) == (e.message[0] != '\0'));
    return r;
}

static bool taken(const struct image *i, size_t n)
{
    int r = check_bytes(i->bytes, i->len, n);

    if (r < 0)
        printf("# %s\n", e.message);
    return r == 0;
}

/* A world with everything that a world can have. */
static struct image make_full(void)
{
    static const char lower[] =
        "d /\nd usr\nf usr/a\nh usr/b usr/a\nl usr/c a\np pipe\nd usr/empty\n"
        "f .x\nf !first\nd usr/share/doc\nf usr/share/doc/z";

    return make(lower, "f usr/d\nd etc\nl etc/e ../usr\nh etc/f usr/a\nw usr/empty");
}

TEST(an_image_is_taken_by_the_checker)
{
    AUTO(image_done) struct image i = make_full();

    EXPECT(taken(&i, 2) && i.report.entries == 13 && i.report.bytes == i.len);
    EXPECT(i.len % IMAGE_BLOCK == 0);
}

TEST(the_same_layers_make_the_same_bytes)
{
    AUTO(image_done)
    struct image a = make_full(), b = make_full(), c = make("f a", NULL), d = make("f b", NULL);

    EXPECT(a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0);
    EXPECT(memcmp(a.report.first, b.report.first, IMAGE_DIGEST) == 0);
    EXPECT(memcmp(c.bytes + EROFS_SUPER_AT + offsetof(struct erofs_super, uuid),
                  d.bytes + EROFS_SUPER_AT + offsetof(struct erofs_super, uuid), 16) != 0);
}

TEST(large_directories_and_long_links)
{
    AUTO(strbuf_done) struct strbuf list = strbuf_upto(PACK_MAX);
    char name[4096], target[4096];

    memset(target, 't', sizeof(target));
    for (unsigned i = 0; i < 3000; i++) {
        memset(name, 'n', 256);
        snprintf(name, sizeof(name), "big/%u-%.*s", i * 7919 % 3000, (int)(i % 240), target);
        strbuf_addf(&list, "f %s\n", name);
    }
    for (unsigned len = 1; len < 4096; len += 13)
        strbuf_addf(&list, "l links/%u %.*s\n", len, (int)len, target);
    for (unsigned i = 0; i < 600; i++) /* sizes of directories around a block's */
        strbuf_addf(&list, "f sizes/%u/%.*s\nf sizes/%u/%.*s\n", i, 200, target, i,
                    (int)(i % 199) + 1, target);
    for (unsigned i = 0; i < 15; i++)
        for (unsigned k = 0; k < 3 * i + 290; k++)
            strbuf_addf(&list, "f edge/%u/%02u\n", i, k);
    strbuf_addstr(&list, "f last");
    AUTO(image_done) struct image i = make(list.buf, NULL);
    EXPECT(taken(&i, 1));
}

TEST(blobs_are_those_of_the_image)
{
    AUTO(image_done) struct image i = make_full();
    uint64_t fewer[2] = {RIG_BLOCKS, RIG_BLOCKS - 1};
    struct image_report report;

    EXPECT(check_bytes(i.bytes, i.len, 1) < 0 &&
           strstr(e.message, "has 2 blobs, and 1 were given"));
    EXPECT(check_bytes(i.bytes, i.len, 3) < 0);
    EXPECT(image_check(i.bytes, i.len, fewer, 2, &report, &e) < 0);
    EXPECT_STR(e.message, "blob 2 of the image has 8 blocks, and its file has 7");
    EXPECT(check_bytes(i.bytes, i.len, 0) < 0 && check_bytes(i.bytes, 0, 2) < 0);
    EXPECT(check_bytes(i.bytes, i.len - IMAGE_BLOCK, 2) < 0);
}

/* ---- mutants --------------------------------------------------------------------------------- */

static struct erofs_inode inode_at(const struct image *i, uint64_t slot)
{
    struct erofs_inode disk;

    memcpy(&disk, i->bytes + layout_inodes_at(2) + slot * EROFS_SLOT, sizeof(disk));
    return disk;
}

/* A walk that trusts the image as the kernel would, and asserts that it stays in it and ends. */
static unsigned walk(const struct image *i, uint64_t slot, unsigned depth)
{
    uint64_t at = layout_inodes_at(2) + slot * EROFS_SLOT;
    struct erofs_inode disk = inode_at(i, slot);
    size_t behind = sizeof(disk) + (disk.attrs ? 12 + (disk.attrs - 1) * 4u : 0);
    unsigned n = 1;

    EXPECT(at + behind <= i->len && depth < 10);
    if (S_ISREG(disk.mode) && disk.size > 0) {
        struct erofs_chunk chunk;
        memcpy(&chunk, i->bytes + at + (behind + 7) / 8 * 8, sizeof(chunk));
        EXPECT(chunk.device >= 1 && chunk.device <= 2);
        EXPECT(chunk.block + image_blocks(disk.size) <= RIG_BLOCKS);
        EXPECT(disk.size <= (uint64_t)IMAGE_BLOCK << (disk.data & 31));
    }
    if (!S_ISDIR(disk.mode) || depth >= 10)
        return n;
    EXPECT(disk.format == 5 && at % IMAGE_BLOCK + behind + disk.size <= IMAGE_BLOCK);
    const uint8_t *p = i->bytes + at + behind;
    struct erofs_dirent d, next = {.name_at = (uint16_t)disk.size};
    memcpy(&d, p, sizeof(d));
    for (unsigned k = 0, count = d.name_at / sizeof(d); k < count; k++) {
        memcpy(&d, p + k * sizeof(d), sizeof(d));
        if (k + 1 < count)
            memcpy(&next, p + (k + 1) * sizeof(d), sizeof(next));
        size_t end = k + 1 < count ? next.name_at : disk.size, len = end - d.name_at;
        EXPECT(d.name_at < end && end <= disk.size);
        if (memcmp(p + d.name_at, "..", len < 2 ? len : 2) != 0 || len > 2)
            n += walk(i, d.slot, depth + 1);
    }
    return n;
}

/* Every bit of everything that is not a blob's name or the image's number. */
TEST(mutants_are_refused_or_as_well_formed)
{
    AUTO(image_done) struct image i = make_full();
    unsigned refused = 0, accepted = 0, names = walk(&i, 0, 0);

    EXPECT(i.len == 3 * IMAGE_BLOCK && names == 15);
    for (size_t at = 0; at < i.len; at++)
        for (int bit = 0; bit < 8; bit++) {
            i.bytes[at] ^= (uint8_t)(1 << bit);
            if (check_bytes(i.bytes, i.len, 2) < 0) {
                refused++;
            } else {
                accepted++;
                EXPECT(walk(&i, 0, 0) == names);
            }
            i.bytes[at] ^= (uint8_t)(1 << bit);
        }
    printf("# %u refused, %u accepted\n", refused, accepted);
    /* Owners, modes, times, letters of names and of links, hexadecimal digits. */
    EXPECT(refused > 90000 && accepted < 6000);
}

TEST(random_mutants)
{
    AUTO(image_done) struct image i = make_full();
    uint64_t seed = 1;
    unsigned accepted = 0;

    for (int round = 0; round < 20000; round++) {
        uint8_t old[4];
        size_t at[4];
        for (int k = 0; k < 4; k++) {
            seed = hash_stable(seed, "next", 4);
            at[k] = 8192 + seed % 1600;
            old[k] = i.bytes[at[k]];
            i.bytes[at[k]] = (uint8_t)(seed >> 40);
        }
        if (check_bytes(i.bytes, i.len, 2) == 0) {
            accepted++;
            walk(&i, 0, 0);
        }
        for (int k = 3; k >= 0; k--)
            i.bytes[at[k]] = old[k];
    }
    printf("# %u accepted\n", accepted);
    EXPECT(taken(&i, 2));
}
