/* Copies files and whole directories between this machine and a sandbox.
 *
 * Names that come from a sandbox are hostile: each must be one plain component, and files are
 * created relative to an open directory, without following links. Links and special files inside a
 * directory are left out in both directions, because the user did not ask for what a link leads
 * to. */
#pragma once

#include "cli/client/remote_file.h"

struct copy {
    struct remote remote;
    struct progress progress;
    uint64_t left_out; /* count of links and special files */
};

/* Each copies a directory's contents into a directory, which may exist already. */
int copy_tree_up(struct copy *c, int dirfd, const char *to, struct sg_error *e);
int copy_tree_down(struct copy *c, const char *from, int dirfd, struct sg_error *e);
/* Copies one file of the sandbox to a name on this machine. `follow`: see local_file.h. */
int copy_file_down(struct copy *c, const char *from, int dirfd, const char *name, unsigned mode,
                   bool follow, struct sg_error *e);
