/* Paths of requests, resolved inside the sandbox. The agent's root is the sandbox's root, so
 * nothing can lead out of it; what remains is that no path may lead through a magic link of /proc,
 * or into the agent's own directory there, where the kernel would let the agent look at itself for
 * anybody.
 *
 * Call these between confine_fs_begin and confine_fs_end. */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "inside/agent/agent.h"
#include "wire/agent.h"

/* Absolute, or relative to the home of `as`. `ret` has OPS_PATH_MAX bytes. 0 or -ENAMETOOLONG. */
int path_absolute(const struct agent_user *as, const char *path, char *ret);

/* Takes trailing slashes off, but for "/" itself. */
void path_trim(char *path);

/* openat2 without magic links, always O_CLOEXEC | O_NOCTTY | O_NONBLOCK. The descriptor or -errno.
 */
int path_open(int dirfd, const char *path, int flags, mode_t mode);
/* The same beneath dirfd and without following any symbolic link. */
int path_open_beneath(int dirfd, const char *path, int flags);

/* The directory that holds the last component (O_PATH), and that component's name. Trailing slashes
 * do not count; "/", "." and ".." have no name: -EINVAL. With `make`, missing directories are made.
 */
int path_open_parent(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1]);
/* Where writing to `path` would end: as above, after following symbolic links at the end of the
 * path. *ret is the regular file there, with st_nlink == 0 if there is none. A directory: -EISDIR;
 * any other kind of file: -EINVAL. */
int path_open_target(const char *path, bool make, int *ret_dirfd, char ret_name[NAME_MAX + 1],
                     struct stat *ret);
/* Opens a directory (O_PATH), making it and its parents if they are missing. */
int path_open_dir(const char *path, bool make, int *ret_fd);

/* Whether the user may write to `name` in dirfd, which is not followed. 0 or -errno. */
int path_check_writable(int dirfd, const char *name);

/* One line about a failed file operation. Returns r. */
int path_error(struct sg_error *e, int r, const char *verb, const char *path);
