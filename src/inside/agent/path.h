/* Resolves the paths of requests inside the sandbox. The agent's root is the sandbox's root, so no
 * path can lead out of it. One danger is left: a path through a magic link of /proc, or into the
 * agent's own directory there, where the kernel would let the agent look at itself on behalf of
 * anybody. Neither is allowed.
 *
 * Call these between confine_fs_begin and confine_fs_end. */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "inside/agent/agent.h"
#include "wire/agent.h"

/* Makes the path absolute; a relative one starts at the home of `as`. `ret` has OPS_PATH_MAX bytes.
 * 0 or -ENAMETOOLONG. */
int path_absolute(const struct agent_user *as, const char *path, char *ret);

/* Removes trailing slashes, but leaves "/" as it is. */
void path_trim(char *path);
/* "dir/name" in OPS_PATH_MAX bytes; one of them alone if the other is "". 0 or -ENAMETOOLONG. */
int path_join(char *ret, const char *dir, const char *name);

/* openat2 without magic links, always with O_CLOEXEC | O_NOCTTY | O_NONBLOCK. Returns the
 * descriptor or -errno. */
int path_open(int dirfd, const char *path, int flags, mode_t mode);
/* The same, but stays beneath dirfd and follows no symbolic link. */
int path_open_beneath(int dirfd, const char *path, int flags);

/* Opens the directory that holds the last component (O_PATH), and returns that component's name.
 * Trailing slashes do not count; "/", "." and ".." have no name: -EINVAL. With `make`, missing
 * directories are made. */
int path_open_parent(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1]);
/* Finds the place where writing to `path` would end: as above, but symbolic links at the end of the
 * path are followed. *ret is the regular file there; its st_nlink is 0 if there is none. A
 * directory: -EISDIR; any other kind of file: -EINVAL. */
int path_open_target(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1],
                     struct stat *ret);
/* Opens a directory (O_PATH). With `make`, makes it and its parents if they are missing. */
int path_open_dir(const char *path, bool make, int *ret_fd);

/* Whether the user may write to `name` in dirfd; a link is not followed. 0 or -errno. */
int path_check_writable(int dirfd, const char *name);

/* Fills *e with one line about a failed file operation. Returns r. */
int path_error(struct sg_error *e, int r, const char *verb, const char *path);
