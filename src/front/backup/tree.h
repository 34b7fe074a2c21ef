/* A tree of files, copied or only read, with one checksum over all of it: names, kinds, modes,
 * owners, attributes and contents, in the order of the names. The same pass makes a backup, brings
 * one back and checks one, so that what is compared is what was copied.
 *
 * What a layer may have in it is understood: directories, regular files (with holes), links, pipes,
 * an overlay's whiteouts; attributes user.* and trusted.overlay.*. Names lead nowhere: nothing is
 * followed. Files that share an inode, in one tree or over several, share one in the copy. */
#pragma once

#include "lib/base/err.h"

#define TREE_SUM_LEN 64 /* hexadecimal digits */

struct tree_sum {
    uint64_t files, bytes;
    char sha256[TREE_SUM_LEN + 1];
};

struct tree_links; /* which files are the same, over several passes */
struct tree_links *tree_links_new(void);
void tree_links_free(struct tree_links *l);

struct tree_pass {
    int from;                /* the tree's top */
    int to;                  /* a directory that is there and empty; -1: nothing is copied */
    struct tree_links *same; /* or NULL */
    void (*progress)(void *arg, uint64_t bytes);
    void *arg;
};
int tree_pass(const struct tree_pass *p, struct tree_sum *ret, struct sg_error *e);

/* One regular file, up to `max` bytes of it, with its mode; `to` must not be there. */
int tree_file(int from_dir, const char *name, int to_dir, const char *to, uint64_t max,
              struct tree_sum *ret, struct sg_error *e);
/* Removes dir/name and all below; a missing one is fine. */
int tree_drop(int dir, const char *name);
