/* Which files of a scratch a running sandbox has copied up: those whose numbers it shows
 * (layer_stack_origin.h). */
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
/* After the last was added, before the first is looked for. */
void inodes_sort(struct inode_set *s);
bool inodes_has(const struct inode_set *s, ino_t number);

/* Adds the origins on the scratch of all that is in an upper layer. It changes meanwhile, and
 * belongs to somebody who wants to lead this astray: what lies very deep is left out. */
int layer_stack_used(int scratch, int upper, struct inode_set *s, struct sg_error *e);
