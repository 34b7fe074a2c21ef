/* The files of a world in memory: inodes, and directories with a hash of their entries. An inode lives as
 * long as it has entries. */
#pragma once

#include "image/records.h"
#include "lib/base/map.h"

struct inode {
    uint16_t mode; /* with the type */
    uint16_t attrs_len;
    uint32_t uid, gid, mtime_ns;
    int64_t mtime;
    uint32_t links;       /* entries that name it */
    uint16_t layer;       /* that brought it, from 1 on */
    uint16_t depth;       /* of a directory: the root has 0 */
    uint64_t size;        /* of a file or of a link's target */
    uint32_t block;       /* of a file: in the layer's blob */
    uint8_t *attrs;       /* NULL: none */
    char *target;         /* of a symbolic link */
    struct inode *parent; /* of a directory; the root is its own */
    struct map entries;   /* of a directory */
    /* where the writer puts it */
    uint32_t slot; /* EROFS's number of the inode; 0: the root, or not placed */
    uint32_t data; /* first block of a directory's or a link's data */
    uint32_t number;
    uint32_t subdirs; /* of a directory */
};

struct entry {
    struct map_node by_name;
    struct inode *inode;
    uint8_t len;
    char name[];
};

struct tree {
    struct inode *root;
    uint64_t entries, entries_max;
};

void tree_init(struct tree *t, uint64_t entries_max);
void tree_done(struct tree *t);

struct entry *tree_find(const struct inode *dir, const char *name, size_t len);
/* Gives an inode a name, in place of what has it. -EFBIG: the tree has too many. The inode is freed if that
 * fails and it has no other name. */
int tree_put(struct tree *t, struct inode *dir, const char *name, size_t len, struct inode *inode,
             struct sg_error *e);
/* Takes a name away, with everything below it. */
void tree_drop(struct tree *t, struct inode *dir, struct entry *entry);
/* A directory that nobody described: root's, 0755, of 1970. It has no name yet. */
struct inode *tree_new_dir(struct inode *parent);
