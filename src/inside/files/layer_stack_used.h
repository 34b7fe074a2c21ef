/* Finds the files of a scratch that a running sandbox has copied up: the sandbox shows their inode
 * numbers (layer_stack_origin.h). */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

struct inode_set {
    ino_t *v;
    size_t n, room;
};
#define INODES_NONE ((struct inode_set){0})

void inodes_done(struct inode_set *s);
int inodes_add(struct inode_set *s, ino_t number);
/* Call it after the last was added, and before the first inodes_has. */
void inodes_sort(struct inode_set *s);
bool inodes_has(const struct inode_set *s, ino_t number);

/* Adds the origins, on the scratch, of all files in an upper layer. The sandbox changes that layer
 * meanwhile, and may want to lead this code astray: files that lie very deep are left out. */
int layer_stack_used(int scratch, int upper, struct inode_set *s, struct sg_error *e);
