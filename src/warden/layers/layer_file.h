/* What the directories that overlays have as layers are made of: reading their marks, and copying
 * what is in them. Names and contents are a sandbox's, so nothing here follows a link. Overlays
 * that are mounted as ours are write no whiteouts but devices. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define LAYER_OPAQUE    "trusted.overlay.opaque"
#define LAYER_ORIGIN    "trusted.overlay.origin"
#define LAYER_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool layer_is_whiteout(const struct stat *st);
bool layer_is_opaque(int dir);
/* To be done with a directory that whiteouts are put into: if no other layer has that directory, an
 * overlay lists what is in it as it is, whiteouts too, unless it looks like the copy of one. */
int layer_expect_whiteouts(int dir);

void layer_closedir_p(DIR **d);
/* Opens a directory for reading its entries; the descriptor stays the caller's. NULL: errno. */
DIR *layer_list(int dir);
/* The next name, without . and ..; NULL at the end or on an error, with errno. */
const char *layer_next(DIR *d);

/* Room for the attributes of one file. */
#define LAYER_XATTR_MAX 65536
struct layer_xattrs {
    char names[LAYER_XATTR_MAX], value[LAYER_XATTR_MAX];
};
/* Those of users, and with acls access lists. -EOVERFLOW: `to` cannot have them. */
int layer_copy_xattrs(struct layer_xattrs *x, int from, int to, bool acls);
/* Holes stay holes. From the beginning of both. */
int layer_copy_data(int in, int out, off_t size);
/* Owner, mode, attributes with access lists, and times: all that a user sees of a file or a
 * directory but what is in it. */
int layer_copy_looks(struct layer_xattrs *x, const struct stat *st, int from, int to);
