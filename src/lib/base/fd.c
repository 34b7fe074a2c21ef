#include "lib/base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
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

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union control control = {0};
    ssize_t n;

    /* On a byte stream, descriptors need at least one byte to travel with. */
    if (n_fds > FD_PASS_MAX || len == 0)
        return -EINVAL;
    if (n_fds > 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }

    /* A byte stream may take a part; the descriptors went with the first one. */
    while (iov.iov_len > 0) {
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        iov.iov_base = (char *)iov.iov_base + n;
        iov.iov_len -= (size_t)n;
        msg.msg_control = NULL;
        msg.msg_controllen = 0;
    }
    return 0;
}

/* Moves the descriptors of one control message to fds, up to cap; the rest is closed. */
static void take_fds(struct cmsghdr *c, int *fds, size_t cap, size_t *n)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int fd;

    for (size_t i = 0; i < count; i++) {
        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (*n < cap)
            fds[(*n)++] = fd;
        else
            close(fd);
    }
}

ssize_t fd_recv(int sock, void *data, size_t cap, int *fds, size_t *n_fds)
{
    struct iovec iov = {.iov_base = data, .iov_len = cap};
    union control control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    size_t fds_cap = *n_fds, count = 0;
    ssize_t n;

    *n_fds = 0;
    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;

    /* The kernel itself drops descriptors that do not fit into the control buffer. */
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            take_fds(c, fds, fds_cap, &count);

    /* The rest of a message that was longer than our buffer is lost, so the whole message is
     * refused. */
    if (msg.msg_flags & MSG_TRUNC) {
        while (count > 0)
            close(fds[--count]);
        return -EMSGSIZE;
    }
    *n_fds = count;
    return n;
}
