/* Reading and copying files of layers, the directories that overlays are made of. A sandbox chose
 * their names and contents, so nothing here follows a link. Overlays that are mounted as Sandglass
 * mounts them write whiteouts as devices only. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define LAYER_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A descriptor, or -1 with errno. Opening waits for nobody, whatever the file is by now; a file that
 * is made must be new. */
int layer_open_file(int dir, const char *name);
int layer_make_file(int dir, const char *name);
/* Gives a file a name that must be free. 0 or -errno. */
int layer_rename(int from, const char *name, int to, const char *new_name);

/* The attributes by which an overlay knows what it has done. Overlays that are mounted with
 * `userxattr` have user.overlay.*, which programs inside cannot set: the overlay shows and sets such a
 * name of theirs as user.overlay.overlay.*. Others have trusted.overlay.*. */
enum layer_mark {
    MARK_OPAQUE, /* a directory hides what is below it */
    MARK_ORIGIN, /* which file this one is a copy of */
    MARK_IMPURE, /* a directory has copies in it */
    MARK_MAX_
};
/* Which kind this process works with; user.overlay.* at first. */
void layer_use_marks(bool trusted);
const char *layer_mark_name(enum layer_mark m);
int layer_set_mark(int fd, enum layer_mark m, const void *value, size_t len); /* 0 or -errno */

bool layer_is_whiteout(const struct stat *st);
bool layer_is_opaque(int dir);
/* Marks a directory that whiteouts are put into. If no other layer has the directory, an overlay
 * lists everything in it, whiteouts too, unless the directory looks like a copy. */
int layer_expect_whiteouts(int dir);

void layer_closedir_p(DIR **d);
/* Opens a directory for reading its entries; the descriptor stays the caller's. NULL: errno, which
 * layer_next reports. */
DIR *layer_list(int dir);
/* The next name, without . and ..: 1, 0 at the end, or -errno. Call it at once after layer_list. */
int layer_next(DIR *d, const char **ret);

/* The largest size of an attribute, and of the names of all attributes of a file. */
#define LAYER_XATTR_MAX 65536
/* Copies user.* attributes but marks, and with `acls` access lists. -EOVERFLOW: `to` cannot hold them. */
int layer_copy_xattrs(int from, int to, bool acls);
/* Copies from the beginning of `in` to the beginning of `out`. Holes stay holes. */
int layer_copy_data(int in, int out, off_t size);
/* Copies owner, mode, attributes with access lists, and times: all that a user sees of a file or a
 * directory but its contents. */
int layer_copy_looks(const struct stat *st, int from, int to);
