/* The directory and the files that a kernel has open. They are opened again in two cases: in the
 * kernel itself when its sandbox has got a new root, and in a copy, which has none of them. Every
 * kernel has descriptors 0 to 3; its other descriptors may be duplicates of these. */
#pragma once

#include <sys/resource.h>

#include "inside/broker/remote_calls.h"

#define OPEN_FILES_MAX   512
#define OPEN_FILES_FIRST 4 /* the first descriptor that is the kernel's own */

struct open_file {
    int fd;
    int same; /* the lower descriptor that this one is a duplicate of, or -1 */
    int flags;
    int64_t offset; /* 0 if it is not a regular file */
    char *path;     /* NULL with `same` */
};

struct open_files {
    char *cwd; /* NULL: the directory is gone */
    int free_fd;
    struct rlimit files; /* RLIMIT_NOFILE of the kernel */
    struct open_file *items;
    size_t n;
    bool full; /* there is more than can be taken along */
};

void open_files_done(struct open_files *l); /* accepts a zeroed one */
/* False if the list is full. */
bool open_files_add(struct open_files *l, const struct open_file *item);

/* Append the calls that open everything again. _own: in the kernel itself, where the numbers are
 * still in use. _copy: in a copy, which has 0 to 3 only, and starts in the home directory if its
 * own is gone. */
void open_files_calls_own(const struct open_files *l, struct remote_calls *v);
void open_files_calls_copy(const struct open_files *l, struct remote_calls *v);
/* Appends only the call that changes to the directory. */
void open_files_calls_cwd(const char *cwd, struct remote_calls *v);
