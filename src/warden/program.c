#include "warden/program.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/sys.h"

#define STACK       (32u * 1024)
#define SEND_BUFFER (4 * 1024 * 1024)

struct start {
    const struct program *program;
    int sock;
    pid_t parent;
};

static _Noreturn void die(const struct program *p, const char *what)
{
    char line[256];
    int n = snprintf(line, sizeof line, "sandglass: the %s cannot %s: %s\n", p->name, what,
                     strerror(errno));

    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(125);
    _exit(126);
}

static void raise_limit(int which, rlim_t wanted)
{
    struct rlimit l = {wanted, wanted};

    if (setrlimit(which, &l) == 0 || getrlimit(which, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(which, &l);
}

/* The C library's own functions for ids tell other threads of theirs, which there are none of here.
 */
static void drop_rights(const struct program *p)
{
    struct rlimit none = {0}, files;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        raise_limit(RLIMIT_NOFILE, files.rlim_max);
    if (p->memlock)
        raise_limit(RLIMIT_MEMLOCK, p->memlock);
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0 ||
        syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0 ||
        syscall(SYS_capset, &head, caps) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die(p, "take its user's ids");
}

/* None of them may be where another belongs, hence copies above both. */
static int take_descriptors(const struct start *s)
{
    int more = s->program->more > 0 ? fcntl(s->program->more, F_DUPFD, PROGRAM_FD + 2) : -1;
    int sock = fcntl(s->sock, F_DUPFD, PROGRAM_FD + 2);

    if (sock < 0 || dup2(sock, PROGRAM_FD) < 0)
        return -1;
    if (more >= 0)
        dup2(more, PROGRAM_FD + 1);
    sys_close_range(PROGRAM_FD + 1 + (more >= 0), ~0U, 0);
    return 0;
}

/* In the child, which shares our memory until it execs: no allocation. */
static int become(void *arg)
{
    const struct start *s = arg;
    const struct program *p = s->program;
    char *argv[] = {(char *)(uintptr_t)p->path, (char *)(uintptr_t)p->argument, NULL};
    char *envp[] = {NULL};
    int null = open("/dev/null", O_RDONLY);
    sigset_t none;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    if (fchdir(p->dir) < 0)
        die(p, "enter its directory");
    if (dup2(null, STDIN_FILENO) < 0 || take_descriptors(s) < 0)
        die(p, "get its descriptors");
    drop_rights(p);
    /* After the ids, whose change takes it back. */
    if (p->ends_with_thread) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != s->parent)
            _exit(126);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(p->path, argv, envp);
    die(p, "be started");
}

/* As vfork does it: see start_helper in domain.c. */
static int spawn(struct start *s, int *ret_pidfd, struct sg_error *e)
{
    AUTO(free_p) char *stack = xcalloc(1, STACK);
    sigset_t all, old;
    pid_t pid;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid =
        clone(become, stack + STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, ret_pidfd);
    r = pid < 0 ? err_errno(e, "start the %s", s->program->name) : pid;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

int program_start(const struct program *p, struct program_ends *ret, struct sg_error *e)
{
    int socks[2], size = SEND_BUFFER, pidfd = -1, pid;

    if (access(p->path, X_OK) < 0)
        return err_errno(e, "the program '%s' (it comes with sandglass: install all of it)",
                         p->path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0)
        return err_errno(e, "make a socket pair for the %s", p->name);
    for (size_t i = 0; i < 2; i++)
        setsockopt(socks[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    pid = spawn(&(struct start){p, socks[1], getpid()}, &pidfd, e);
    close(socks[1]);
    if (pid < 0) {
        close(socks[0]);
        return pid;
    }
    *ret = (struct program_ends){.pid = pid, .pidfd = pidfd, .sock = socks[0]};
    return 0;
}

int program_user(const char *what, const char *name, const char *usual, uint32_t id,
                 uint32_t *ret_uid, uint32_t *ret_gid, struct sg_error *e)
{
    const struct passwd *user = getpwnam(name[0] ? name : usual);

    if (!user && name[0])
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "%s '%s': there is no such user", what, name);
    if (user && user->pw_uid == 0)
        return err_set(e, SG_ERR_DENIED, -EPERM, "%s '%s' is root: name a user that has no rights",
                       what, user->pw_name);
    *ret_uid = user ? user->pw_uid : id;
    *ret_gid = user ? user->pw_gid : id;
    return 0;
}
