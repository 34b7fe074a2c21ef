#include "lib/ipc/ipc.h"

#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(IPC_FDS_MAX * sizeof(int))];
};

void ipc_fds_close(struct ipc_fds *fds)
{
    for (size_t i = 0; i < fds->n; i++)
        if (fds->at[i] >= 0)
            close(steal_fd(&fds->at[i]));
    fds->n = 0;
}

int ipc_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
    struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)data, .iov_len = len}};

    return ipc_send_parts(sock, parts, fds, n_fds);
}

/* Moves the parts on by what a byte stream took of them. */
static void advance(struct iovec parts[2], size_t n)
{
    for (size_t i = 0; i < 2 && n > 0; i++) {
        size_t here = n < parts[i].iov_len ? n : parts[i].iov_len;

        parts[i].iov_base = (char *)parts[i].iov_base + here;
        parts[i].iov_len -= here;
        n -= here;
    }
}

int ipc_send_parts(int sock, const struct iovec parts[2], const int *fds, size_t n_fds)
{
    struct iovec left[2] = {parts[0], parts[1]};
    struct msghdr msg = {.msg_iov = left, .msg_iovlen = 2};
    union control control = {0};

    /* On a byte stream, descriptors need at least one byte to travel with. */
    if (n_fds > IPC_FDS_MAX || left[0].iov_len == 0)
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
    while (left[0].iov_len + left[1].iov_len > 0) {
        ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        advance(left, (size_t)n);
        msg.msg_control = NULL;
        msg.msg_controllen = 0;
    }
    return 0;
}

_Static_assert(CMSG_SPACE(IPC_FDS_MAX * sizeof(int)) == CMSG_LEN(IPC_FDS_MAX * sizeof(int)),
               "what fits into a union control fits into a struct ipc_fds");

static void take_fds(struct cmsghdr *c, struct ipc_fds *ret)
{
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    memcpy(ret->at + ret->n, CMSG_DATA(c), n * sizeof(int));
    ret->n += n;
}

/* A peer that ended without reading all that we sent leaves an error in the socket, and behind it
 * what it had sent before. */
static ssize_t receive(int sock, struct msghdr *msg)
{
    bool reset = false;
    ssize_t n;

    do
        n = recvmsg(sock, msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
    return n < 0 ? -errno : n;
}

ssize_t ipc_recv(int sock, void *data, size_t cap, struct ipc_fds *fds)
{
    struct iovec iov = {.iov_base = data, .iov_len = cap};
    union control control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct ipc_fds none = {.max = 0};
    ssize_t n;

    if (!fds)
        fds = &none;
    fds->n = 0;
    memset(fds->at, -1, sizeof(fds->at));
    n = receive(sock, &msg);
    if (n < 0)
        return n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            take_fds(c, fds);

    /* The rest of a message that was longer than our buffer is lost, so the whole message is
     * refused. Of descriptors the kernel drops those that do not fit. */
    if (fds->n > fds->max && fds != &none)
        n = -E2BIG;
    if (msg.msg_flags & MSG_TRUNC)
        n = -EMSGSIZE;
    if (n < 0 || fds == &none || msg.msg_flags & MSG_CTRUNC)
        ipc_fds_close(fds);
    return n;
}

ssize_t ipc_take(int sock, uint32_t magic, void *data, size_t min, size_t max, struct ipc_fds *fds)
{
    ssize_t n = ipc_recv(sock, data, max, fds);

    if (n == -EAGAIN)
        return -EAGAIN;
    if (n == 0 || n == -ECONNRESET)
        return -EPIPE;
    if (n >= (ssize_t)min && memcmp(data, &magic, sizeof(magic)) == 0)
        return n;
    if (fds)
        ipc_fds_close(fds);
    return -EPROTO;
}
