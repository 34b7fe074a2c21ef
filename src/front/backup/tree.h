/* Copies or only reads a tree of files, and makes one checksum over all of it: names, kinds, modes,
 * owners, attributes and contents, in the order of the names. The same pass makes, restores and
 * checks a backup, so that the checksum always covers exactly the bytes that were copied.
 *
 * The pass understands everything that a layer may contain: directories, regular files (with
 * holes), links, pipes and an overlay's whiteouts; attributes user.* and trusted.overlay.*. It
 * follows no link. Files that share an inode, in one tree or across several, share one in the
 * copy.
 *
 * A tree that programs write to meanwhile is `live`. What has gone since its name was read, and what is
 * a socket, is left out; a file that changes while it is copied is copied again, a few times at
 * most. The checksum of such a pass is that of nothing in particular: the copy needs a pass of its own. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/map.h"

#define TREE_SUM_LEN 64 /* hexadecimal digits */

struct tree_sum {
    uint64_t files, bytes; /* bytes: that were read, so without holes */
    uint64_t torn;         /* live: files that changed whenever they were copied */
    char sha256[TREE_SUM_LEN + 1];
};

struct tree_pass {
    int from;         /* the top directory of the tree */
    int to;           /* an empty directory; -1: the pass only reads */
    struct map *same; /* files that share an inode, over several passes; or NULL */
    bool live;
    bool old_sums; /* checksums of the first format: zeros are hashed as they are */
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
