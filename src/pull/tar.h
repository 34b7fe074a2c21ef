/* The list of files in a tar that can be read at any place: where each begins, and how long it is.
 * Contents are not read. Names are as they are inside, without "./" in front; one that could lead
 * out is left out. Tars of POSIX (ustar, pax) and GNU. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/map.h"

struct tar {
    int fd; /* borrowed */
    uint64_t size;
    struct map entries;
    size_t n;
};

/* -EBADMSG: it is no tar, or broken. */
int tar_open(struct tar *t, int fd, struct sg_error *e);
void tar_done(struct tar *t); /* accepts a zeroed struct */
/* A link leads to what it links, once. False: there is no such file. */
bool tar_find(const struct tar *t, const char *name, uint64_t *ret_offset, uint64_t *ret_size);
