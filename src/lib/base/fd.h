/* Descriptors and small files. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

/* Writes everything, retrying on EINTR and short writes. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t len);
/* Reads until EOF, at most `max` bytes: -EFBIG beyond. The result is NUL-terminated heap memory. */
int fd_read_all(int fd, size_t max, char **ret, size_t *ret_len);
/* The same for a small text file such as one of /proc or a cgroup. dirfd may be AT_FDCWD. */
int file_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len);
/* Opens, writes text in one write(2), closes: what control files want. 0 or -errno. */
int file_write(int dirfd, const char *path, const char *text);
int fd_set_nonblock(int fd, bool on);
/* Checks a descriptor that came from elsewhere before anything is read from it. 0: a memfd of at
 * most `max` bytes. -EBADF: something else, such as a pipe or an eventfd, of which a read might
 * wait for ever. -EFBIG. */
int fd_check_memfd(int fd, size_t max);
