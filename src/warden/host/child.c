#include "warden/host/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"

#define STACK (64u * 1024)

int child_clone(int (*fn)(void *arg), void *arg, int flags, int *ret_pidfd)
{
    AUTO(free_p) char *stack = xcalloc(1, STACK);
    sigset_t all, old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = clone(fn, stack + STACK, CLONE_VM | CLONE_VFORK | flags, arg, ret_pidfd);
    r = r < 0 ? -errno : r;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

void child_kill(int pidfd)
{
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static int wait_dead(int pidfd, int timeout_ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * 1000000u;

    for (;;) {
        int r = poll(&p, 1, clock_poll_ms(deadline));
        if (r > 0)
            return 0;
        if (r == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

int child_reap(int *pidfd, struct child_exit *ret)
{
    struct child_exit how = {0};
    siginfo_t info = {0};

    if (*pidfd < 0)
        return 0;
    if (wait_dead(*pidfd, 0) < 0)
        return -EAGAIN;
    /* A program that uses the library may have reaped the child already, with a wait of its own:
     * that is fine. */
    if (syscall(SYS_waitid, P_PIDFD, *pidfd, &info, WEXITED | __WALL, NULL) == 0)
        how = (struct child_exit){
            .known = true, .signalled = info.si_code != CLD_EXITED, .code = info.si_status};
    if (ret)
        *ret = how;
    close(steal_fd(pidfd));
    return 0;
}

int child_end(int *pidfd, int timeout_ms, struct child_exit *ret)
{
    int r;

    child_kill(*pidfd);
    r = *pidfd < 0 ? 0 : wait_dead(*pidfd, timeout_ms);
    return r < 0 ? r : child_reap(pidfd, ret);
}

int child_pid(int pidfd)
{
    AUTO(free_p) char *text = NULL;
    char path[48];
    int pid = 0;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (pidfd < 0 || file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return 0;
    const char *line = strstr(text, "\nPid:");
    return line && sscanf(line, "\nPid: %d", &pid) == 1 && pid > 0 ? pid : 0;
}

/* ---- strays ---------------------------------------------------------------------------------- */

#define STRAYS_MAX 4096
#define LIST_MAX   (64u << 10)

/* Lists the children of which this process has pidfds. */
static size_t list_known(int *pids, size_t max)
{
    DIR *dir = opendir("/proc/self/fdinfo");
    const struct dirent *d;
    size_t n = 0;

    while (dir && n < max && (d = readdir(dir))) {
        AUTO(free_p) char *text = NULL;
        const char *at = NULL;

        if (d->d_name[0] != '.' && file_read(dirfd(dir), d->d_name, 4096, &text, NULL) == 0)
            at = strstr(text, "\nPid:\t");
        if (at)
            pids[n++] = (int)strtol(at + strlen("\nPid:\t"), NULL, 10);
    }
    if (dir)
        closedir(dir);
    return dir ? n : max;
}

static bool is_in(const int *pids, size_t n, int pid)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

void child_reap_strays(void)
{
    AUTO(free_p) int *known = xcalloc(STRAYS_MAX, sizeof(*known));
    AUTO(free_p) char *list = NULL;
    size_t n = list_known(known, STRAYS_MAX);
    siginfo_t info;
    char *end;

    if (n == STRAYS_MAX ||
        file_read(AT_FDCWD, "/proc/thread-self/children", LIST_MAX, &list, NULL) < 0)
        return;
    for (char *p = list; *p; p = end) {
        int pid = (int)strtol(p, &end, 10);

        if (end == p)
            return;
        if (!is_in(known, n, pid))
            syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | __WALL, NULL);
        while (*end == ' ')
            end++;
    }
}
