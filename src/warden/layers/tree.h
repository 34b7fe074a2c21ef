/* Copies and removes whole directory trees of the server's own. Not for trees that a sandbox can
 * write to. */
#pragma once

#include "lib/base/err.h"

/* Copies a regular file, a link or a directory of these to `to`, which is relative to to_dir. The
 * copy belongs to the caller and keeps modes; files over 16 MiB are left out, and what the caller may
 * not read. The parent must exist;
 * files that exist already stay. */
int tree_copy(const char *from, int to_dir, const char *to, struct sg_error *e);
/* Removes dir/name and all below it. It may be missing. */
int tree_remove(int dir, const char *name, struct sg_error *e);
