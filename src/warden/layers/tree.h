/* Whole directory trees of ours: copying and removing. Not for trees that a sandbox can write to.
 */
#pragma once

#include "lib/base/err.h"

/* Copies a file, link or directory (regular files, links and directories only; root's, modes kept,
 * files over 16 MiB left out) to `to`, which is relative to to_dir. The parent must exist; what
 * exists is kept. */
int tree_copy(const char *from, int to_dir, const char *to, struct sg_error *e);
/* Removes dir/name and all below. A missing one is fine. */
int tree_remove(int dir, const char *name, struct sg_error *e);
