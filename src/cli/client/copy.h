/* Copies of files and whole directories between here and a sandbox.
 *
 * Names that come from a sandbox are hostile: each must be one plain component, and files are made
 * relative to an open directory, without following links. Links and special files inside a
 * directory are left out, in both directions: what a link leads to was not asked for. */
#pragma once

#include "cli/client/remote_file.h"

struct copy {
    struct remote remote;
    struct progress progress;
    uint64_t left_out; /* links and special files */
};

/* A directory's contents, into a directory that may be there. */
int copy_tree_up(struct copy *c, int dirfd, const char *to, struct sg_error *e);
int copy_tree_down(struct copy *c, const char *from, int dirfd, struct sg_error *e);
/* One file of the sandbox to a name here. `follow`: see local_file.h. */
int copy_file_down(struct copy *c, const char *from, int dirfd, const char *name, unsigned mode,
                   bool follow, struct sg_error *e);
