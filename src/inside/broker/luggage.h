/* What a kernel has open besides its memory: its directory and its files. In the sandbox that it
 * runs in they are opened again when that has got another root, in a copy because it has none.
 * Descriptors 0 to 3 are what every kernel has; further ones can be the same openings. */
#pragma once

#include <sys/resource.h>

#include "inside/broker/visit.h"

#define LUGGAGE_MAX   512
#define LUGGAGE_FIRST 4 /* number of the first descriptor that is its own */

struct luggage_item {
    int fd;
    int same; /* the descriptor below it that is the same opening, or -1 */
    int flags;
    int64_t offset; /* 0 for what is no regular file */
    char *path;     /* NULL with `same` */
};

struct luggage {
    char *cwd; /* NULL: it is gone */
    int free_fd;
    struct rlimit files; /* how many it may have open */
    struct luggage_item *items;
    size_t n;
    bool full; /* there is more than can be taken along */
};

void luggage_done(struct luggage *l); /* accepts a zeroed one */
/* False if there is no room. */
bool luggage_add(struct luggage *l, const struct luggage_item *item);

/* The calls that open it again: in the kernel itself, under the numbers that are taken; and in a
 * copy, which has 0 to 3 only, and goes home if its directory is gone. */
void luggage_visit_own(const struct luggage *l, struct visit *v);
void luggage_visit_copy(const struct luggage *l, struct visit *v);
/* Only the directory. */
void luggage_visit_cwd(const char *cwd, struct visit *v);
