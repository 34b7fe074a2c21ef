/* The entries of a tar stream, one after the other: ustar, GNU's long names and large numbers, pax.
 *
 * Strict where a lenient reader would have to guess (checksums, numbers, types), and as all readers where they agree:
 * a stream may end without the two blocks of zeros, since a layer's digest says whether it is whole; links
 * and directories have no contents whatever their header says; what comes after the end is hashed and passed over.
 * Sparse files, parts of archives of several volumes and unknown types are refused by name. */
#pragma once

#include "image/attrs.h"
#include "image/input.h"

enum tar_kind { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK, TAR_FIFO, TAR_DEVICE };

struct tar_entry {
    enum tar_kind kind;
    uint16_t mode;     /* 07777 at most */
    uint32_t uid, gid; /* IMAGE_ID_MAX at most */
    uint32_t mtime_ns;
    int64_t mtime;
    uint64_t size;           /* of a file */
    const char *name, *link; /* as the layer has them */
    const struct attrs *attrs;
};

struct tar;
struct tar *tar_new(struct input *in, const struct image_limits *limits);
void tar_free_p(struct tar **t);

/* 1 and the next entry, which stays until the next call; 0 at the end. Contents that were not taken are
 * passed over. */
int tar_next(struct tar *t, struct tar_entry *ret, struct sg_error *e);
/* More of the entry's contents, in the input's buffer; *ret_len is 0 at their end. */
int tar_content(struct tar *t, const uint8_t **ret, size_t *ret_len, struct sg_error *e);
