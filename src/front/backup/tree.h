/* Copies or only reads a tree of files, and makes one checksum over all of it: names, kinds, modes,
 * owners, attributes and contents, in the order of the names. The same pass makes, restores and
 * checks a backup, so that the checksum always covers exactly the bytes that were copied.
 *
 * The pass understands everything that a layer may contain: directories, regular files (with
 * holes), links, pipes and an overlay's whiteouts; attributes user.* and trusted.overlay.*. It
 * follows no link. Files that share an inode, in one tree or across several, share one in the
 * copy. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/map.h"

#define TREE_SUM_LEN 64 /* hexadecimal digits */

struct tree_sum {
    uint64_t files, bytes;
    char sha256[TREE_SUM_LEN + 1];
};

struct tree_pass {
    int from;         /* the top directory of the tree */
    int to;           /* an empty directory; -1: the pass only reads */
    struct map *same; /* files that share an inode, over several passes; or NULL */
    void (*progress)(void *arg, uint64_t bytes);
    void *arg;
};
void tree_links_free(struct map *same);
int tree_pass(const struct tree_pass *p, struct tree_sum *ret, struct sg_error *e);

/* Copies one regular file with its mode, up to `max` bytes; `to` must not exist yet. */
int tree_file(int from_dir, const char *name, int to_dir, const char *to, uint64_t max,
              struct tree_sum *ret, struct sg_error *e);
/* The names in an open directory, sorted, without "." and "..". */
struct tree_names {
    char **at;
    size_t n;
};
int tree_names(int dir, struct tree_names *ret);
void tree_names_free(struct tree_names *names); /* accepts a zeroed struct */
/* Removes dir/name and everything below it. A missing one is no error. */
int tree_drop(int dir, const char *name);
