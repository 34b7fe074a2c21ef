#include "lib/ipc/ipc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "tap.h"

static size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int scratch(const char *text)
{
    int fd = memfd_create("scratch", MFD_CLOEXEC);

    if (fd_write_all(fd, text, strlen(text)) < 0)
        abort();
    lseek(fd, 0, SEEK_SET);
    return fd;
}

struct pair {
    int s[2];
};

static struct pair pair_open(int type)
{
    struct pair p;

    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p.s) < 0)
        abort();
    return p;
}

static void pair_close(struct pair *p)
{
    close_p(&p->s[0]);
    close_p(&p->s[1]);
}

TEST(message_without_descriptors)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    struct ipc_fds fds = {.max = 1};
    char buf[16];

    EXPECT(ipc_send(p.s[0], "hello", 5, NULL, 0) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 5);
    EXPECT(fds.n == 0 && fds.at[0] == -1 && memcmp(buf, "hello", 5) == 0);
}

TEST(received_descriptors_work_and_are_close_on_exec)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = 4};
    int a = scratch("first"), b = scratch("second");
    AUTO(free_p) char *ta = NULL, *tb = NULL;
    char buf[16];

    EXPECT(fcntl(a, F_SETFD, 0) == 0);
    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){a, b}, 2) == 0);
    close(a);
    close(b);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 1);
    EXPECT(fds.n == 2 && fds.at[2] == -1);
    EXPECT(fcntl(fds.at[0], F_GETFD) & FD_CLOEXEC);
    EXPECT(fcntl(fds.at[1], F_GETFD) & FD_CLOEXEC);
    EXPECT(fd_read_all(fds.at[0], 10, &ta, NULL) == 0);
    EXPECT(fd_read_all(fds.at[1], 10, &tb, NULL) == 0);
    EXPECT_STR(ta, "first");
    EXPECT_STR(tb, "second");
}

TEST(only_descriptors_that_were_taken_stay_open)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    AUTO(close_p) int a = scratch("a");
    size_t before = open_fds();
    struct ipc_fds fds = {.max = 2};
    char buf[4];

    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){a, a}, 2) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 1 && fds.n == 2);
    int taken = steal_fd(&fds.at[1]);
    ipc_fds_close(&fds);
    EXPECT(open_fds() == before + 1);
    close(taken);
    ipc_fds_close(&fds); /* does nothing more */
    EXPECT(open_fds() == before);
}

TEST(surplus_descriptors_are_closed)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    AUTO(close_p) int a = scratch("a");
    struct ipc_fds fds = {.max = 1};
    size_t before = open_fds();
    char buf[4];

    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){a, a, a, a}, 4) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == -E2BIG);
    EXPECT(fds.n == 0 && fds.at[0] == -1 && open_fds() == before);

    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){a, a}, 2) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), NULL) == 1);
    EXPECT(open_fds() == before);
}

TEST(as_many_as_allowed_and_no_more)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    AUTO(close_p) int a = scratch("a");
    struct ipc_fds fds = {.max = IPC_FDS_MAX};
    int many[IPC_FDS_MAX + 1];
    size_t before = open_fds();
    char buf[4];

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = a;
    EXPECT(ipc_send(p.s[0], "x", 1, many, IPC_FDS_MAX + 1) == -EINVAL);
    EXPECT(ipc_send(p.s[0], "x", 1, many, IPC_FDS_MAX) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 1);
    EXPECT(fds.n == IPC_FDS_MAX && open_fds() == before + IPC_FDS_MAX);
    ipc_fds_close(&fds);
    EXPECT(open_fds() == before);
}

/* A hostile peer may send what ipc_send never would: 253 descriptors, the kernel's own limit. */
TEST(more_than_the_control_buffer_holds_leaks_nothing)
{
    enum { KERNEL_MAX = 253 };
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    AUTO(close_p) int a = scratch("a");
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(KERNEL_MAX * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (char[]){"x"}, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    struct ipc_fds fds = {.max = 2};
    size_t before = open_fds();
    char buf[4];

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(KERNEL_MAX * sizeof(int));
    for (size_t i = 0; i < KERNEL_MAX; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &a, sizeof(int));
    for (size_t max = 2; max <= IPC_FDS_MAX; max += IPC_FDS_MAX - 2) {
        fds.max = max;
        EXPECT(sendmsg(p.s[0], &msg, MSG_NOSIGNAL) == 1);
        EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == (max == 2 ? -E2BIG : 1));
        EXPECT(fds.n == 0 && fds.at[0] == -1 && open_fds() == before);
    }
}

/* A receiver that has no number left gets the message, and all of its descriptors or none. */
TEST(descriptors_that_have_no_room_are_all_lost)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    AUTO(close_p) int a = scratch("a");
    struct ipc_fds fds = {.max = 3};
    struct rlimit old, low;
    size_t before = open_fds();
    char buf[4];
    int next = dup(a);

    close(next);
    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){a, a, a}, 3) == 0);
    EXPECT(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    low.rlim_cur = (rlim_t)next + 2;
    EXPECT(setrlimit(RLIMIT_NOFILE, &low) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 1);
    EXPECT(setrlimit(RLIMIT_NOFILE, &old) == 0);
    EXPECT(fds.n == 0 && fds.at[0] == -1 && open_fds() == before);
}

TEST(message_longer_than_the_buffer_is_refused_whole)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    AUTO(close_p) int a = scratch("a");
    struct ipc_fds fds = {.max = 4};
    size_t before = open_fds();
    char buf[4];

    EXPECT(ipc_send(p.s[0], "12345", 5, &a, 1) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == -EMSGSIZE);
    EXPECT(fds.n == 0 && open_fds() == before);
    EXPECT(ipc_send(p.s[0], "1234", 4, NULL, 0) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 4);
}

TEST(byte_stream_gives_a_long_message_in_parts)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    AUTO(close_p) int a = scratch("a");
    struct ipc_fds fds = {.max = 1};
    char buf[4];

    EXPECT(ipc_send(p.s[0], "123456", 6, &a, 1) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 4 && fds.n == 1);
    ipc_fds_close(&fds);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 2 && fds.n == 0);
    EXPECT(memcmp(buf, "56", 2) == 0);
}

TEST(two_parts_are_one_message)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    char one[] = "ab", two[] = "cdef";
    struct iovec parts[2] = {{one, 2}, {two, 4}};
    char buf[8];

    EXPECT(ipc_send_parts(p.s[0], parts, NULL, 0) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), NULL) == 6 && memcmp(buf, "abcdef", 6) == 0);
}

TEST(end_of_file_and_errors)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_STREAM);
    struct ipc_fds fds = {.max = 3};
    char buf[4];

    EXPECT(ipc_send(p.s[0], "", 0, NULL, 0) == -EINVAL);
    EXPECT(fd_set_nonblock(p.s[1], true) == 0);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == -EAGAIN);
    EXPECT(fds.n == 0);

    shutdown(p.s[0], SHUT_WR);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), &fds) == 0);
    EXPECT(fds.n == 0);

    shutdown(p.s[1], SHUT_RDWR);
    EXPECT(ipc_send(p.s[0], "x", 1, NULL, 0) == -EPIPE); /* and no SIGPIPE */
    EXPECT(ipc_send(p.s[0], "x", 1, (int[]){-1}, 1) == -EBADF);
    EXPECT(ipc_send(-1, "x", 1, NULL, 0) == -EBADF);
}

/* The last words of a peer are heard, even if it did not read ours. */
TEST(last_messages_of_a_peer_arrive_after_a_reset)
{
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    char buf[8];

    EXPECT(ipc_send(p.s[1], "unread", 6, NULL, 0) == 0);
    EXPECT(ipc_send(p.s[0], "last", 4, NULL, 0) == 0);
    close(steal_fd(&p.s[0]));
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), NULL) == 4);
    EXPECT(ipc_recv(p.s[1], buf, sizeof(buf), NULL) == 0);
}

TEST(what_is_no_message_of_the_protocol_is_refused)
{
    enum { MAGIC = 0x12345678 };
    AUTO(pair_close) struct pair p = pair_open(SOCK_SEQPACKET);
    AUTO(close_p) int a = scratch("a");
    struct ipc_head good = {.magic = MAGIC, .seq = 7}, bad = {.magic = MAGIC + 1}, got;
    struct ipc_fds fds = {.max = 1};
    size_t before = open_fds();
    char longer[sizeof(good) + 1] = {0};

    memcpy(longer, &good, sizeof(good));
    fd_set_nonblock(p.s[1], true);
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == -EAGAIN);
    EXPECT(ipc_send(p.s[0], &good, sizeof(good), &a, 1) == 0);
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == sizeof(got));
    EXPECT(got.seq == 7 && fds.n == 1);
    ipc_fds_close(&fds);

    EXPECT(ipc_send(p.s[0], &bad, sizeof(bad), &a, 1) == 0);
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == -EPROTO && fds.n == 0);
    EXPECT(ipc_send(p.s[0], &good, sizeof(good) - 1, &a, 1) == 0);
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == -EPROTO && fds.n == 0);
    EXPECT(ipc_send(p.s[0], longer, sizeof(longer), &a, 1) == 0);
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == -EPROTO && fds.n == 0);
    EXPECT(open_fds() == before);

    close(steal_fd(&p.s[0]));
    EXPECT(ipc_take(p.s[1], MAGIC, &got, sizeof(got), sizeof(got), &fds) == -EPIPE);
}

TAP_MAIN
