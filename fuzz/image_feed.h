/* Files in memory, and what must hold of every image that is written, for the targets of sandglass-image. */
#pragma once

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "image/image.h"
#include "lib/base/fd.h"

static const struct image_limits feed_limits = {.bytes = 1 << 22,
                                                .ratio = 100,
                                                .entries = 1000,
                                                .path = IMAGE_PATH_MAX,
                                                .depth = IMAGE_DEPTH_MAX,
                                                .xattrs = IMAGE_XATTRS_MAX};

static inline int feed_file(const void *data, size_t len)
{
    int fd = memfd_create("feed", MFD_CLOEXEC);

    assert(fd >= 0 && fd_write_all(fd, data, len) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static inline uint8_t *feed_bytes(int fd, size_t *ret_len)
{
    char *data;

    assert(lseek(fd, 0, SEEK_SET) == 0 && fd_read_all(fd, 1u << 30, &data, ret_len) == 0);
    return (uint8_t *)data;
}

/* An error is one line. */
static inline void feed_refused(const struct sg_error *e)
{
    assert(e->message[0] && !strchr(e->message, '\n'));
}

/* Whatever the writer makes of a list, the checker takes. */
static inline void feed_list(int list, uint64_t blocks)
{
    struct image_report report = {0};
    struct sg_error e = {0};
    AUTO(close_p) int meta = feed_file("", 0);
    size_t len;

    if (image_write(meta, &list, &blocks, 1, &feed_limits, &report, &e) < 0) {
        feed_refused(&e);
        return;
    }
    AUTO(free_p) uint8_t *bytes = feed_bytes(meta, &len);
    assert(image_check(bytes, len, &blocks, 1, &report, &e) == 0);
}
