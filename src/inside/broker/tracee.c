#include "inside/broker/tracee.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/fault.h"
#include "lib/base/clock.h"

#define STEP_NS   2000000000ull /* the longest that any single step may take */
#define KILL_NS   5000000000ull
#define SECOND_NS 1000000000ull
#define ENTRY_NS  200000000ull /* from setting the registers to the entry of the call */
#define AT_CALL \
    (SIGTRAP | 0x80) /* stopped at the entry or exit of a call, with
                                    * PTRACE_O_TRACESYSGOOD */

#define OPTIONS                                                                              \
    (PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | \
     PTRACE_O_EXITKILL)

/* Waits for a stop. 0 with *ret_status; -ESRCH if the process is dead (reaped, or not ours any
 * more); -ETIMEDOUT. SIGCHLD is blocked, so one that comes between waitpid and sigtimedwait is not
 * lost. */
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
        return err_set(e, SG_ERR_GONE, r, "process %d ended while it was traced", pid);
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

/* A signal that comes first is delivered; the stop that we asked for follows it. */
int tracee_stop_by(pid_t pid, uint64_t deadline_ns)
{
    int status, r;

    for (;;) {
        r = wait_until(pid, deadline_ns, &status);
        if (r < 0 || status >> 16 == PTRACE_EVENT_STOP)
            return r;
        ptrace(PTRACE_CONT, pid, NULL, (void *)(long)WSTOPSIG(status));
    }
}

int tracee_remote_calls(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        return -errno;
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

/* Continues to the next entry or exit of a system call, or to an event in the middle of one. */
static int next_edge(pid_t pid, uint64_t deadline_ns, int *ret_status)
{
    if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0)
        return -errno;
    return wait_until(pid, deadline_ns, ret_status);
}

int tracee_enter_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                      struct sg_error *e)
{
    int status = 0, r = cpu_aim_call(pid, s, at, c);

    if (r == 0)
        r = next_edge(pid, clock_ns() + ENTRY_NS, &status);
    if (r == 0 && status >> 8 == AT_CALL && cpu_enters(pid, at, c))
        return 0;
    if (r == -ESRCH)
        return err_set(e, SG_ERR_GONE, r, "process %d ended while it was traced", pid);
    tracee_kill(pid);
    return err_set(
        e, SG_ERR_INTERNAL, -ESRCH,
        "process %d made another system call than the one it was told to, and was killed", pid);
}

int tracee_finish_fork(pid_t pid, pid_t *ret, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + STEP_NS;
    unsigned long child = 0;
    int64_t said = -EPROTO;
    int status = 0, r = next_edge(pid, deadline, &status);

    if (r == 0 && status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8)) {
        if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child) < 0)
            r = -errno;
        *ret = (pid_t)child;
        if (r == 0)
            r = next_edge(pid, deadline, &status);
    } else if (r == 0 && status >> 8 == AT_CALL && cpu_result(pid, &said) == 0 && said < 0) {
        return err_set(e, err_kind_of((int)-said), (int)said, "copy process %d: %s", pid,
                       strerror((int)-said));
    }
    if (r == 0 && status >> 8 != AT_CALL)
        r = -EPROTO;
    return r < 0 ? err_set(e, r == -ESRCH ? SG_ERR_GONE : SG_ERR_INTERNAL, r, "copy process %d: %s",
                           pid, strerror(-r))
                 : 0;
}

/* The event comes in the middle of the call. At the call's end the registers can be set. */
int tracee_await_exec(pid_t pid, struct sg_error *e)
{
    int status, r = tracee_wait(pid, &status, e);

    if (r == 0 && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
        r = next_edge(pid, clock_ns() + STEP_NS, &status);
    if (r == 0 && status >> 8 == AT_CALL)
        return 0;
    if (r == -ESRCH)
        return err_set(e, SG_ERR_GONE, r, "process %d ended while it was traced", pid);
    return err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d did not execute a program", pid);
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

int tracee_await_start(pid_t pid, struct sg_error *e)
{
    int status, r = tracee_wait(pid, &status, e);

    if (r == 0 && status >> 16 != PTRACE_EVENT_STOP)
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d began with event %#x", pid,
                    (unsigned)status);
    return r;
}

/* Resumes the process by `how` until a trap. If others have stopped it with a signal, it reports
 * that stop once more when it is resumed. */
static int run_to_trap(pid_t pid, int how, struct sg_error *e)
{
    int status = 0, r = 0;

    for (int tries = 0; tries < 4 && r == 0; tries++) {
        if (how != 0 && ptrace(how, pid, NULL, NULL) < 0)
            return err_errno(e, "run process %d", pid);
        r = tracee_wait(pid, &status, e);
        if (r == 0 && status >> 8 == SIGTRAP)
            return 0;
        if (status >> 16 != PTRACE_EVENT_STOP || how == 0)
            break;
    }
    return r < 0 ? r
                 : err_set(e, SG_ERR_INTERNAL, -EPROTO, "process %d stopped with %#x in our calls",
                           pid, (unsigned)status);
}

int tracee_await_trap(pid_t pid, struct sg_error *e)
{
    return run_to_trap(pid, 0, e);
}

int tracee_run_table(pid_t pid, struct sg_error *e)
{
    return run_to_trap(pid, PTRACE_CONT, e);
}

int tracee_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                int64_t *ret, struct sg_error *e)
{
    int64_t said = 0;
    int r = cpu_aim_call(pid, s, at, c);

    if (r < 0)
        return err_internal(e, r, "make a call in process %d", pid);
    r = run_to_trap(pid, PTRACE_SINGLESTEP, e);
    if (r == 0)
        r = cpu_result(pid, &said);
    if (r == 0 && ret)
        *ret = said;
    if (r == 0 && said < 0)
        r = err_set(e, SG_ERR_INTERNAL, (int)said, "call %d in process %d: %s", (int)c->nr, pid,
                    strerror((int)-said));
    return r;
}

void tracee_let_go(pid_t pid)
{
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
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
