/* A file that a copy makes here. It is written beside its place and appears whole or not at all;
 * what is there and is no plain file, such as a device or a pipe, is written to directly. */
#pragma once

#include "lib/base/err.h"

struct local_file {
    int fd;
    int dirfd;
    const char *name;
    char temporary[64]; /* "": written in place */
};

/* `follow`: what the name leads to may be another place, because the user named it. Otherwise a
 * link is replaced. `dirfd` and `name` must live as long. */
int local_file_open(struct local_file *f, int dirfd, const char *name, bool follow,
                    struct sg_error *e);
/* Puts it in its place, with these permissions as far as the umask lets them. */
int local_file_keep(struct local_file *f, unsigned mode, struct sg_error *e);
/* Closes it, and removes it if it was not kept. */
void local_file_done(struct local_file *f);
