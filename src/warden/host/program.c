#include "warden/host/program.h"

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

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/child.h"

#define SEND_BUFFER (4 * 1024 * 1024)

#define FILE_FD (PROGRAM_FD + 2) /* the program itself, until it runs */
#define DIED    126
#define END_MS  1000

/* The child shares the parent's memory until it execs, so it leaves the error here. */
struct start {
    const struct program *program;
    int file, sock;
    pid_t parent;
    const char *trouble; /* NULL: the program runs */
    int trouble_errno;
};

static _Noreturn void die(struct start *s, const char *what)
{
    s->trouble_errno = errno;
    s->trouble = what;
    _exit(DIED);
}

static void raise_limit(int which, rlim_t wanted)
{
    struct rlimit l = {wanted, wanted};

    if (setrlimit(which, &l) == 0 || getrlimit(which, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(which, &l);
}

/* The program's user may not execute a file of mode 700, which a clone under umask 077 builds. So
 * this one capability outlives the change of ids; exec takes it away, since nothing is
 * inheritable. */
static int keep_until_exec(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    if (syscall(SYS_capget, &head, caps) < 0)
        return -1;
    caps[0].permitted &= 1u << CAP_DAC_OVERRIDE;
    caps[0].effective = caps[0].permitted;
    caps[0].inheritable = caps[1].permitted = caps[1].effective = caps[1].inheritable = 0;
    return (int)syscall(SYS_capset, &head, caps);
}

/* Uses system calls: the C library's functions for ids also signal its other threads, and the child
 * has none. */
static void drop_rights(struct start *s)
{
    const struct program *p = s->program;
    struct rlimit none = {0}, files;

    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        raise_limit(RLIMIT_NOFILE, files.rlim_max);
    if (p->memlock)
        raise_limit(RLIMIT_MEMLOCK, p->memlock);
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, p->gid, p->gid, p->gid) < 0 ||
        syscall(SYS_setresuid, p->uid, p->uid, p->uid) < 0 || keep_until_exec() < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die(s, "switch to its user");
}

/* First copies all descriptors to high numbers, since one may have another's target number. */
static int take_descriptors(const struct start *s)
{
    int more = s->program->more > 0 ? fcntl(s->program->more, F_DUPFD, FILE_FD + 1) : -1;
    int sock = fcntl(s->sock, F_DUPFD, FILE_FD + 1);
    int file = fcntl(s->file, F_DUPFD, FILE_FD + 1);

    if (sock < 0 || file < 0 || dup2(sock, PROGRAM_FD) < 0 || dup3(file, FILE_FD, O_CLOEXEC) < 0)
        return -1;
    if (more >= 0)
        dup2(more, PROGRAM_FD + 1);
    else
        close(PROGRAM_FD + 1);
    sys_close_range(FILE_FD + 1, ~0U, 0);
    return 0;
}

/* Executes by descriptor, since only root may reach the folders above the file. A script needs a
 * name, by which its interpreter opens it. */
static void execute(const struct program *p)
{
    char *argv[PROGRAM_ARGUMENTS + 2] = {(char *)(uintptr_t)p->path}, *envp[] = {NULL};

    for (size_t i = 0; p->arguments && p->arguments[i] && i < PROGRAM_ARGUMENTS; i++)
        argv[i + 1] = (char *)(uintptr_t)p->arguments[i];

    syscall(SYS_execveat, FILE_FD, "", argv, envp, AT_EMPTY_PATH);
    if (errno == ENOENT)
        execve(p->path, argv, envp);
}

/* Runs in the child, which shares the parent's memory until it execs: no allocation. */
static int become(void *arg)
{
    struct start *s = arg;
    const struct program *p = s->program;
    int null = open("/dev/null", O_RDWR);
    sigset_t none;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    if (fchdir(p->dir) < 0)
        die(s, "enter its directory");
    if (p->silent && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
        die(s, "be silenced");
    if (dup2(null, STDIN_FILENO) < 0 || take_descriptors(s) < 0)
        die(s, "get its descriptors");
    drop_rights(s);
    /* After the change of ids, which would clear it. */
    if (p->ends_with_thread) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != s->parent)
            _exit(DIED);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execute(p);
    die(s, "be started");
}

/* When it returns, the child has exec'ed or ended. */
static int spawn(struct start *s, int *ret_pidfd, struct sg_error *e)
{
    int pid = child_clone(become, s, CLONE_PIDFD | SIGCHLD, ret_pidfd);

    if (pid < 0)
        return err_code(e, pid, "start the %s", s->program->name);
    if (!s->trouble)
        return pid;
    child_end(ret_pidfd, END_MS, NULL);
    close_p(ret_pidfd);
    return err_set(e, s->trouble_errno == ENOMEM ? SG_ERR_INTERNAL : SG_ERR_UNSUPPORTED,
                   -s->trouble_errno, "the program '%s' of the %s cannot %s: %s", s->program->path,
                   s->program->name, s->trouble, strerror(s->trouble_errno));
}

static int open_program(const char *path, struct sg_error *e)
{
    int fd = open(path, O_PATH | O_CLOEXEC);

    return fd >= 0 ? fd
                   : err_set(e, SG_ERR_UNSUPPORTED, -errno,
                             "the program '%s' (it comes with sandglass: install all of it): %s",
                             path, strerror(errno));
}

int program_start(const struct program *p, struct program_ends *ret, struct sg_error *e)
{
    AUTO(close_p) int file = open_program(p->path, e);
    int socks[2], size = SEND_BUFFER, pidfd = -1, pid;

    if (file < 0)
        return file;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0)
        return err_errno(e, "make a socket pair for the %s", p->name);
    for (size_t i = 0; i < 2; i++)
        setsockopt(socks[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
    pid = spawn(&(struct start){.program = p, .file = file, .sock = socks[1], .parent = getpid()},
                &pidfd, e);
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
        return err_set(e, SG_ERR_DENIED, -EPERM, "%s '%s' is root: name an unprivileged user", what,
                       user->pw_name);
    *ret_uid = user ? user->pw_uid : id;
    *ret_gid = user ? user->pw_gid : id;
    return 0;
}
