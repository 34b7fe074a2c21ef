/* The names in an open directory, straight from the kernel: no hidden descriptor, no lock, and a
 * buffer whose size we choose. */
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
/* Forgets what was read ahead: for another descriptor, or one that was rewound. */
void dirents_reset(struct dirents *d);
/* The next but "." and "..": 1, 0 at the end (also of a directory that was removed), or -errno. */
int dirents_next(struct dirents *d, int fd, struct dirent_name *ret);
