/* The files worker: what it refuses to work on, and what it cannot do once it works. Each case runs
 * in a child. Sanitizers make calls, and use memory, that a worker may not: with them, only what comes
 * before it is confined is tried. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/files/files.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "tap.h"

TAP_MAIN

#ifdef __has_feature /* clang's */
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char top[] = "/tmp/files-worker.XXXXXX";

static int make_top(void)
{
    snprintf(top, sizeof(top), "/tmp/files-worker.XXXXXX");
    EXPECT(mkdtemp(top) != NULL);
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(fd >= 0 && mkdirat(fd, "u1", 0755) == 0);
    return fd;
}

static void drop_top(int fd)
{
    unlinkat(fd, "u1", AT_REMOVEDIR);
    close(fd);
    EXPECT(rmdir(top) == 0);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Sends a worker the first `len` bytes of a request with a tree. -1: it ended without an answer. */
static int ask(const struct files_request *q, size_t len, int tree, size_t n_fds,
               struct files_answer *ret)
{
    int socks[2], fds[2] = {tree, tree}, status = 0;

    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) == 0);
    EXPECT(ipc_send(socks[0], q, len, fds, n_fds) >= 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(socks[1], FILES_FD);
        close_range(FILES_FD + 1, ~0U, 0);
        _exit(files_main());
    }
    close(socks[1]);
    EXPECT(waitpid(pid, &status, 0) == pid);
    ssize_t n = ipc_take(socks[0], FILES_MAGIC, ret, sizeof(*ret), sizeof(*ret), NULL);
    close(socks[0]);
    return n == (ssize_t)sizeof(*ret) && status == 0 ? 0 : -1;
}

static struct files_request removal(void)
{
    return (struct files_request){.magic = FILES_MAGIC,
                                  .op = FILES_REMOVE,
                                  .deadline_s = 10,
                                  .n_mounts = 1,
                                  .n_layers = 1,
                                  .v = {{.dir = "u1"}}};
}

TEST(wrong_requests_are_not_worked_on)
{
    struct files_request wrong[8];
    struct files_answer a = {0};
    int fd = make_top();

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        wrong[i] = removal();
    wrong[0].magic++;
    wrong[1].op = FILES_OP_MAX_;
    wrong[2].n_mounts = 2; /* and one descriptor */
    wrong[3].n_mounts = 0;
    wrong[4].n_layers = FILES_LAYERS_MAX + 1;
    wrong[5].n_uppers = ~0U;
    wrong[6].v[0].mount = 1;
    wrong[7].op = FILES_CARRY; /* without a list */
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        EXPECT(ask(&wrong[i], sizeof(wrong[i]), fd, 1, &a) < 0);
    wrong[0] = removal();
    EXPECT(ask(&wrong[0], sizeof(wrong[0]) - 1, fd, 1, &a) < 0);
    EXPECT(ask(&wrong[0], sizeof(wrong[0]), fd, 2, &a) < 0);
    EXPECT(faccessat(fd, "u1", F_OK, 0) == 0);
    drop_top(fd);
}

#if !SANITIZED
TEST(a_request_is_carried_out)
{
    int fd = make_top();
    struct files_request q = removal();
    struct files_answer a = {0};

    EXPECT(ask(&q, sizeof(q), fd, 1, &a) == 0 && a.code == 0);
    EXPECT(faccessat(fd, "u1", F_OK, 0) < 0);
    drop_top(fd);
}

TEST(what_fails_is_told)
{
    int fd = make_top();
    struct files_request q = removal();
    struct files_answer a = {0};

    q.op = FILES_MERGE;
    snprintf(q.name, sizeof(q.name), "u1"); /* is there */
    snprintf(q.aside, sizeof(q.aside), "n1");
    EXPECT(ask(&q, sizeof(q), fd, 1, &a) == 0);
    EXPECT(a.code == -EEXIST && a.message[0] && faccessat(fd, "n1", F_OK, 0) < 0);
    drop_top(fd);
}

/* ---- what is given up ------------------------------------------------------------------------ */

/* Runs fn in a confined worker; its exit status, or minus a signal. */
static int confined(int (*fn)(int fd), unsigned deadline_s)
{
    int fd = make_top(), status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct sg_error e = {0};
        if (files_confine(fd, false, deadline_s, &e) < 0)
            _exit(99);
        _exit(fn(fd));
    }
    EXPECT(waitpid(pid, &status, 0) == pid);
    drop_top(fd);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int try_calls(int fd)
{
    static const struct {
        long nr;
        uint64_t args[3];
    } forbidden[] = {
        {SYS_execve, {0}},         {SYS_execveat, {~0u}},
        {SYS_clone, {SIGCHLD}},    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
        {SYS_connect, {~0u}},      {SYS_ptrace, {PTRACE_ATTACH, 1}},
        {SYS_kill, {1, 0}},        {SYS_pidfd_open, {1}},
        {SYS_mount, {0}},          {SYS_move_mount, {~0u}},
        {SYS_open_tree, {~0u}},    {SYS_setns, {~0u}},
        {SYS_unshare, {0}},        {SYS_chroot, {0}},
        {SYS_fchdir, {~0u}},       {SYS_open_by_handle_at, {~0u}},
        {SYS_setxattr, {0}},       {SYS_bpf, {0}},
        {SYS_io_uring_setup, {0}}, {SYS_prctl, {0}},
        {SYS_setuid, {0}},         {SYS_capset, {0}},
        {SYS_alarm, {0}},          {SYS_process_vm_readv, {1}},
    };

    (void)fd;
    for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
        const uint64_t *a = forbidden[i].args;
        if (syscall(forbidden[i].nr, a[0], a[1], a[2], 0, 0) >= 0 || errno != EPERM)
            return (int)i + 1;
    }
    return 0;
}

TEST(calls_that_it_does_not_need_fail)
{
    EXPECT(confined(try_calls, 10) == 0);
}

/* Nothing but its trees: no path leads to the host, also not by way of "..". */
static int look_around(int fd)
{
    return openat(AT_FDCWD, "/etc/passwd", O_RDONLY) >= 0 || errno != ENOENT ? 1
           : openat(AT_FDCWD, "../../etc/passwd", O_RDONLY) >= 0             ? 2
           : openat(AT_FDCWD, "/u1", O_RDONLY) < 0                           ? 3
           : mknodat(fd, "null", S_IFCHR | 0600, 0x103) == 0                 ? 4
                                                                             : 0;
}

TEST(it_sees_its_tree_alone)
{
    EXPECT(confined(look_around, 10) == 0);
}

static int use_memory(int fd)
{
    (void)fd;
    return mmap(NULL, 600u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

TEST(its_memory_is_bounded)
{
    EXPECT(confined(use_memory, 10) == 0);
}

static int work_for_ever(int fd)
{
    while (lseek(fd, 0, SEEK_SET) == 0)
        ;
    return 1;
}

TEST(it_ends_at_its_deadline)
{
    EXPECT(confined(work_for_ever, 1) == -SIGALRM);
}
#endif
