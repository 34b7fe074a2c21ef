/* An image that is not as the writer made it: the input is changes to one that is, each a place (two bytes) and a
 * byte for it. The checker stays in the image and ends; what it takes, it takes again. */
#include "image/records.h"
#include "image_feed.h"

#define BLOCKS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void add(struct sink *s, enum record_kind kind, const char *path, const char *target)
{
    struct attrs a = {0};
    bool file = kind == RECORD_FILE;

    if (file)
        assert(attrs_set(&a, "user.color", "red", 3, sizeof(a.v)) == 0);
    struct record_entry e = {.r = {.kind = (uint8_t)kind,
                                   .mode = kind == RECORD_HARDLINK ? 0 : 0755,
                                   .size = file ? 5000 : 0,
                                   .block = file ? 3 : 0,
                                   .path_len = (uint16_t)strlen(path),
                                   .target_len = (uint16_t)strlen(target),
                                   .attrs_len = (uint16_t)a.len},
                             .path = path,
                             .target = target,
                             .attrs = a.v};
    records_add(s, &e);
}

/* An image with each kind of inode, a directory of several blocks and a link with one of its own. */
static uint8_t *make_image(size_t *ret_len)
{
    AUTO(close_p) int list = feed_file("", 0), meta = feed_file("", 0);
    uint8_t sum[IMAGE_DIGEST] = {0};
    struct image_report report;
    uint64_t blocks = BLOCKS;
    char name[300], target[4090];
    struct sink s;

    memset(target, 't', sizeof(target));
    target[sizeof(target) - 1] = '\0';
    sink_init(&s, list);
    records_begin(&s);
    add(&s, RECORD_DIR, "usr", "");
    add(&s, RECORD_FILE, "usr/a", "");
    add(&s, RECORD_HARDLINK, "usr/b", "usr/a");
    add(&s, RECORD_SYMLINK, "usr/c", "a");
    add(&s, RECORD_SYMLINK, "usr/d", target);
    add(&s, RECORD_FIFO, "pipe", "");
    for (unsigned i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "big/%02u%.240s", i, target);
        add(&s, RECORD_FIFO, name, "");
    }
    records_finish(&s, 36, BLOCKS, sum);
    assert(sink_end(&s, "list", sum, NULL) == 0);
    sink_done(&s);
    assert(image_write(meta, &list, &blocks, 1, &feed_limits, &report, NULL) == 0);
    return feed_bytes(meta, ret_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static uint8_t *image;
    static size_t image_len;
    struct image_report report = {0};
    uint64_t blocks = BLOCKS;
    struct sg_error e = {0};

    if (!image)
        image = make_image(&image_len);
    AUTO(free_p) uint8_t *mutant = xmemdup(image, image_len);
    for (size_t i = 0; i + 3 <= len; i += 3)
        mutant[(data[i] | (size_t)data[i + 1] << 8) % image_len] = data[i + 2];
    if (image_check(mutant, image_len, &blocks, 1, &report, &e) < 0)
        feed_refused(&e);
    else
        assert(image_check(mutant, image_len, &blocks, 1, &report, &e) == 0);
    return 0;
}
