/* What a kernel has open besides its memory: its directory and its files. In the sandbox that it
 * runs in they are opened again when that has got another root, in a copy because it has none.
 * Descriptors 0 to 3 are what every kernel has; further ones can be the same openings. */
#pragma once

#include <sys/resource.h>

#include "inside/broker/remote_calls.h"

#define OPEN_FILES_MAX   512
#define OPEN_FILES_FIRST 4 /* number of the first descriptor that is its own */

struct open_file {
    int fd;
    int same; /* the descriptor below it that is the same opening, or -1 */
    int flags;
    int64_t offset; /* 0 for what is no regular file */
    char *path;     /* NULL with `same` */
};

struct open_files {
    char *cwd; /* NULL: it is gone */
    int free_fd;
    struct rlimit files; /* how many it may have open */
    struct open_file *items;
    size_t n;
    bool full; /* there is more than can be taken along */
};

void open_files_done(struct open_files *l); /* accepts a zeroed one */
/* False if there is no room. */
bool open_files_add(struct open_files *l, const struct open_file *item);

/* The calls that open it again: in the kernel itself, under the numbers that are taken; and in a
 * copy, which has 0 to 3 only, and goes home if its directory is gone. */
void open_files_calls_own(const struct open_files *l, struct remote_calls *v);
void open_files_calls_copy(const struct open_files *l, struct remote_calls *v);
/* Only the directory. */
void open_files_calls_cwd(const char *cwd, struct remote_calls *v);
