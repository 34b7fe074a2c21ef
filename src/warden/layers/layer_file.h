/* Reading and copying files of layers, the directories that overlays are made of. A sandbox chose
 * their names and contents, so nothing here follows a link. Overlays that are mounted as Sandglass
 * mounts them write whiteouts as devices only. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define LAYER_OPAQUE    "trusted.overlay.opaque"
#define LAYER_ORIGIN    "trusted.overlay.origin"
#define LAYER_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool layer_is_whiteout(const struct stat *st);
bool layer_is_opaque(int dir);
/* Marks a directory that whiteouts are put into. If no other layer has the directory, an overlay
 * lists everything in it, whiteouts too, unless the directory looks like a copy. */
int layer_expect_whiteouts(int dir);

void layer_closedir_p(DIR **d);
/* Opens a directory for reading its entries; the descriptor stays the caller's. NULL: errno. */
DIR *layer_list(int dir);
/* The next name, without . and ..; NULL at the end or on an error, with errno. */
const char *layer_next(DIR *d);

/* A buffer for the attributes of one file. */
#define LAYER_XATTR_MAX 65536
struct layer_xattrs {
    char names[LAYER_XATTR_MAX], value[LAYER_XATTR_MAX];
};
/* Copies user.* attributes, and with `acls` access lists. -EOVERFLOW: `to` cannot hold them. */
int layer_copy_xattrs(struct layer_xattrs *x, int from, int to, bool acls);
/* Copies from the beginning of `in` to the beginning of `out`. Holes stay holes. */
int layer_copy_data(int in, int out, off_t size);
/* Copies owner, mode, attributes with access lists, and times: all that a user sees of a file or a
 * directory but its contents. */
int layer_copy_looks(struct layer_xattrs *x, const struct stat *st, int from, int to);
