#include "lib/base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define READ_FIRST 4096

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EIO;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Doubles a read buffer, up to `most` bytes. */
static int grow(char **buf, size_t *cap, size_t most)
{
    size_t want = *cap > most / 2 ? most : *cap * 2;
    char *p = realloc(*buf, want);

    if (!p)
        return -ENOMEM;
    *buf = p;
    *cap = want;
    return 0;
}

int fd_read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    /* Room for one byte over the limit, to tell too much from just enough, and for the NUL. */
    size_t most = max < PTRDIFF_MAX - 2 ? max + 2 : PTRDIFF_MAX;
    size_t cap = most < READ_FIRST ? most : READ_FIRST, len = 0;
    AUTO(free_p) char *buf = malloc(cap);

    if (!buf)
        return -ENOMEM;
    for (;;) {
        int r = len + 1 == cap ? grow(&buf, &cap, most) : 0;
        if (r < 0)
            return r;
        ssize_t n = read(fd, buf + len, cap - len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return -EFBIG;
    }
    buf[len] = '\0';
    *ret = steal_ptr(&buf);
    if (ret_len)
        *ret_len = len;
    return 0;
}

int file_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
    AUTO(close_p) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -errno;
    return fd_read_all(fd, max, ret, ret_len);
}

int file_write(int dirfd, const char *path, const char *text)
{
    AUTO(close_p) int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = strlen(text);
    ssize_t n;

    if (fd < 0)
        return -errno;
    do
        n = write(fd, text, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

/* Only memfds have seals. Of any other file even asking for the size might wait. */
int fd_check_memfd(int fd, size_t max)
{
    struct stat st;

    if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0)
        return -EBADF;
    return (uint64_t)st.st_size > max ? -EFBIG : 0;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
