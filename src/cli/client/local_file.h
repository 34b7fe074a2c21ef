/* A file that a copy makes on this machine. It is written under another name in its directory and
 * renamed at the end, so it appears whole or not at all. If the name already is a device, a pipe or
 * the like, we write to that directly. */
#pragma once

#include "lib/base/err.h"

struct local_file {
    int fd;
    int dirfd;
    const char *name;
    char *temporary; /* the path under the other name; NULL: written in place */
};

/* `follow`: the user gave this name, so a link is followed, wherever it leads. Otherwise the new
 * file replaces a link. `dirfd` and `name` must live as long as `f`. */
int local_file_open(struct local_file *f, int dirfd, const char *name, bool follow,
                    struct sg_error *e);
/* Moves the file to its place, with these permissions minus the umask. */
int local_file_keep(struct local_file *f, unsigned mode, struct sg_error *e);
/* Closes the file, and removes it unless local_file_keep has moved it to its place. */
void local_file_done(struct local_file *f);
