/* A list of a layer, as a worker that was taken over could write it. */
#include "image_feed.h"

#define BLOCKS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(close_p) int list = feed_file(data, len);

    feed_list(list, BLOCKS);
    return 0;
}
