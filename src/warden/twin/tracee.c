#include "warden/twin/tracee.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define STEP_NS   2000000000ull /* the longest that any single step may take */
#define KILL_NS   5000000000ull
#define SECOND_NS 1000000000ull

#define OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)

/* 0 with *ret_status, -ESRCH if it is dead (reaped, or not ours any more), -ETIMEDOUT. SIGCHLD
 * stays pending if it comes between the look and the wait. */
static int wait_until(pid_t pid, uint64_t deadline_ns, int *ret_status)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG | __WALL);
        if (got < 0 && errno != EINTR)
            return -ESRCH;
        if (got == pid && !WIFSTOPPED(status))
            return -ESRCH;
        if (got == pid) {
            *ret_status = status;
            return 0;
        }
        uint64_t now = clock_ns();
        if (now >= deadline_ns)
            return -ETIMEDOUT;
        struct timespec left = {.tv_sec = (time_t)((deadline_ns - now) / SECOND_NS),
                                .tv_nsec = (long)((deadline_ns - now) % SECOND_NS)};
        sigtimedwait(&child, NULL, &left);
    }
}

int tracee_wait(pid_t pid, int *ret_status, struct sg_error *e)
{
    int r = wait_until(pid, clock_ns() + STEP_NS, ret_status);

    if (r == -ESRCH)
        return err_set(e, SG_ERR_INTERNAL, r, "process %d ended while it was worked on", pid);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "process %d did not stop in time", pid);
    return 0;
}

int tracee_seize(pid_t pid, struct sg_error *e)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)OPTIONS) < 0)
        return err_set(e, SG_ERR_UNSUPPORTED, -errno,
                       "this host does not let us trace our child: %s", strerror(errno));
    return 0;
}

int tracee_stop(pid_t pid, struct sg_error *e)
{
    int status;

    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        return err_errno(e, "stop process %d", pid);
    return tracee_wait(pid, &status, e);
}

int tracee_continue(pid_t pid, struct sg_error *e)
{
    return ptrace(PTRACE_CONT, pid, NULL, NULL) < 0 ? err_errno(e, "continue process %d", pid) : 0;
}

int tracee_finish_call(pid_t pid, struct sg_error *e)
{
    int status;

    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
        return err_errno(e, "finish the call of process %d", pid);
    return tracee_wait(pid, &status, e);
}

int tracee_run_until(pid_t pid, int event, unsigned long *ret_message, struct sg_error *e)
{
    int status, r = tracee_continue(pid, e);

    if (r == 0)
        r = tracee_wait(pid, &status, e);
    if (r < 0)
        return r;
    if (status >> 8 != (SIGTRAP | event << 8))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d stopped with %#x, not event %d",
                       pid, (unsigned)status, event);
    if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, ret_message) < 0)
        return err_errno(e, "read the event of process %d", pid);
    return 0;
}

int tracee_await_birth(pid_t pid, struct sg_error *e)
{
    int status, r = tracee_wait(pid, &status, e);

    if (r == 0 && status >> 16 != PTRACE_EVENT_STOP)
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d was born with %#x", pid,
                    (unsigned)status);
    return r;
}

int tracee_await_trap(pid_t pid, struct sg_error *e)
{
    int status, r = tracee_wait(pid, &status, e);

    if (r == 0 && status >> 8 != SIGTRAP)
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d stopped with %#x in its table", pid,
                    (unsigned)status);
    return r;
}

int tracee_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                int64_t *ret, struct sg_error *e)
{
    int status, r = cpu_aim_call(pid, s, at, c);

    if (r == 0 && ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
        r = -errno;
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "make a call in process %d: %s", pid, strerror(-r));
    r = tracee_wait(pid, &status, e);
    if (r == 0)
        r = cpu_result(pid, ret);
    if (r == 0 && *ret < 0)
        r = err_set(e, SG_ERR_INTERNAL, (int)*ret, "call %d in process %d: %s", (int)c->nr, pid,
                    strerror((int)-*ret));
    return r;
}

int tracee_release(pid_t pid, struct sg_error *e)
{
    return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? err_errno(e, "release process %d", pid) : 0;
}

void tracee_kill(pid_t pid)
{
    uint64_t deadline = clock_ns() + KILL_NS;
    int status;

    kill(pid, SIGKILL);
    while (wait_until(pid, deadline, &status) == 0)
        ;
}

int tracee_read(pid_t pid, uint64_t at, void *ret, size_t len)
{
    struct iovec here = {.iov_base = ret, .iov_len = len};
    struct iovec there = {.iov_base = (void *)(uintptr_t)at, .iov_len = len};
    ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

    return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

int tracee_write(pid_t pid, uint64_t at, const void *data, size_t len)
{
    struct iovec here = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    struct iovec there = {.iov_base = (void *)(uintptr_t)at, .iov_len = len};
    ssize_t n = process_vm_writev(pid, &here, 1, &there, 1, 0);

    return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}
