/* Reads the names in an open directory straight from the kernel: without a hidden descriptor or a
 * lock, and with a buffer whose size we choose. */
#pragma once

#include "lib/base/base.h"

struct dirents {
    char *buf;
    size_t pos, len;
};

struct dirent_name {
    const char *name; /* valid until the next call */
    uint8_t type;     /* DT_* */
};

int dirents_init(struct dirents *d); /* 0 or -ENOMEM */
void dirents_done(struct dirents *d);
/* Forgets names that were read ahead. Call it before using another descriptor, or a rewound one. */
void dirents_reset(struct dirents *d);
/* The next name, without "." and "..": 1, 0 at the end (also of a directory that was removed), or
 * -errno. */
int dirents_next(struct dirents *d, int fd, struct dirent_name *ret);
