/* Writes the headers of a tar. A name that is too long for a tar header goes into a pax header. */
#pragma once

#include "lib/base/err.h"

#define TAR_OUT_PATH_MAX (16u * 1024)

/* Takes what is written. 0 or -errno, which the functions here return. */
struct tar_out {
    int (*put)(void *arg, const void *data, size_t len);
    void *arg;
};

struct tar_out_entry {
    const char *name, *link; /* link: "" unless it is one */
    char type;               /* '0' a file, '1' a hard link, '2' a symbolic link, '5' a directory */
    unsigned mode, uid, gid;
    int64_t mtime;
    uint64_t size; /* of a file, whose content follows */
};

int tar_out_entry(const struct tar_out *t, const struct tar_out_entry *e);
/* What fills the last block of a content that was `len` bytes. */
int tar_out_pad(const struct tar_out *t, uint64_t len);
int tar_out_end(const struct tar_out *t);
