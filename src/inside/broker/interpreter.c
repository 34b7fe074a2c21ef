#include "inside/broker/interpreter.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "inside/agent/agent.h"
#include "inside/broker/source.h"
#include "inside/stage/seccomp.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"

#define THREE 3
#define HIGH  64 /* descriptors that are only used before the interpreter is executed */

static const char python[] = "/usr/bin/python3",
                  program[] = "/usr/local/lib/sandglass/kernels/python";

static int enter_namespaces(const int *fds)
{
    static const int flags[TWIN_ZYGOTE_FDS] = {[TWIN_Z_MNT] = CLONE_NEWNS,
                                               [TWIN_Z_NET] = CLONE_NEWNET,
                                               [TWIN_Z_IPC] = CLONE_NEWIPC,
                                               [TWIN_Z_UTS] = CLONE_NEWUTS};

    for (int i = TWIN_ZYGOTE_FDS - 1; i >= 0; i--) /* the mount namespace last */
        if (setns(fds[i], flags[i]) < 0)
            return -errno;
    return 0;
}

/* A copy needs CAP_SYS_ADMIN in F to enter a sandbox, and nothing else. It is kept over exec as an
 * ambient capability; all others are dropped. */
static int keep_one_cap(uint32_t uid)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{.effective = 1u << CAP_SYS_ADMIN,
                                           .permitted = 1u << CAP_SYS_ADMIN,
                                           .inheritable = 1u << CAP_SYS_ADMIN}};

    for (unsigned long c = 0; c < 64; c++)
        if (c != CAP_SYS_ADMIN && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 && errno != EINVAL)
            return -errno;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, uid, uid, uid) < 0 || syscall(SYS_setresuid, uid, uid, uid) < 0 ||
        syscall(SYS_capset, &head, d) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

static int place_fds(const struct interpreter *i)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int last = i->four < 0 ? THREE : THREE + 1, high[2] = {i->three, i->four};

    for (int k = 0; k <= last - THREE; k++)
        high[k] = fcntl(high[k], F_DUPFD_CLOEXEC, HIGH);
    if (null < 0 || high[0] < 0 || (i->four >= 0 && high[1] < 0))
        return -errno;
    for (int k = 0; k < THREE; k++)
        if (dup2(null, k) < 0)
            return -errno;
    for (int k = 0; k <= last - THREE; k++)
        if (dup2(high[k], THREE + k) < 0)
            return -errno;
    return sys_close_range((unsigned)last + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int become(const struct interpreter *i)
{
    const struct agent_user *as = agent_user_find("user");
    struct sg_error e;
    int r = source_be_victim(getpid(), OOM_KERNEL, &e);

    if (r == 0 && write(i->door, "0", 1) != 1)
        r = -errno;
    if (r == 0)
        r = enter_namespaces(i->namespaces);
    if (r == 0)
        r = place_fds(i);
    if (r == 0)
        r = keep_one_cap(i->first_id + as->uid);
    /* Set after the change of ids, which clears it. Until the process is traced, nothing else ends
     * it together with the broker. */
    if (r == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir(as->home) < 0))
        r = -errno;
    return r < 0 ? r : seccomp_confine(SECCOMP_ZYGOTE, &e);
}

static int await_go_ahead(int fd)
{
    char byte;

    return fd < 0 || recv(fd, &byte, 1, 0) == 1 ? 0 : -ECANCELED;
}

/* Errors are sent by a descriptor of their own: until place_fds is done, the low numbers are the
 * broker's, and who is behind them knows no such message. */
_Noreturn void interpreter_run(const struct interpreter *i)
{
    const char *argv[] = {python, program, i->mode, "--imports", i->imports, NULL};
    const char *what = "";
    char cpus[32], text[128];
    const char *envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8",
                          cpus, NULL};
    int say = fcntl(i->say, F_DUPFD_CLOEXEC, HIGH);
    sigset_t none;
    int r;

    if (!i->imports[0])
        argv[3] = NULL;
    snprintf(cpus, sizeof(cpus), "OMP_NUM_THREADS=%u", i->cpus > 0 ? i->cpus : 1);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    r = await_go_ahead(i->go_ahead);
    if (r == 0)
        r = become(i);
    if (r == 0) {
        what = "/usr/bin/python3: ";
        execve(python, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
        r = -errno;
    }
    int n = snprintf(text, sizeof(text), "!%s%s", what, strerror(-r));
    send(say, text, (size_t)n, MSG_NOSIGNAL);
    _exit(127);
}
