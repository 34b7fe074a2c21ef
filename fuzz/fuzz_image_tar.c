/* A layer, after a byte that says whether checksums are put right first: without that, few mutants
 * would come past them. Whatever it is, what is unpacked is a list that the writer can read, and what
 * it writes is an image that the checker takes. */
#include "image_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* In each block as if it was a header: what is none may have any bytes. */
static void repair(uint8_t *data, size_t len)
{
    for (size_t at = 0; at + 512 <= len; at += 512) {
        char text[8];
        unsigned sum = 8 * ' ', bytes = 0;

        for (size_t i = 0; i < 512; i++) {
            bytes |= data[at + i];
            sum += i / 4 == 37 || i / 4 == 38 ? 0 : data[at + i]; /* 148 to 155 */
        }
        snprintf(text, sizeof(text), "%06o", sum & 0777777);
        if (bytes)
            memcpy(data + at + 148, text, sizeof(text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct image_report report = {0};
    struct sg_error e = {0};

    if (len == 0)
        return 0;
    AUTO(free_p) uint8_t *bytes = xmemdup(data + 1, len - 1);
    if (data[0])
        repair(bytes, len - 1);
    AUTO(close_p) int layer = feed_file(bytes, len - 1), blob = feed_file("", 0);
    AUTO(close_p) int list = feed_file("", 0);
    if (image_unpack(layer, blob, list, &feed_limits, &report, &e) < 0) {
        feed_refused(&e);
        return 0;
    }
    struct stat st;
    assert(fstat(blob, &st) == 0 && (uint64_t)st.st_size == report.blocks * IMAGE_BLOCK);
    feed_list(list, report.blocks);
    return 0;
}
