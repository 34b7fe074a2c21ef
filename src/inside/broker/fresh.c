/* Makes a kernel that is no copy (TWIN_FRESH): its program begins in it.
 *
 * K must share its memory with an H that never runs a line of it. So H executes the program, and is stopped at the end
 * of that call: its memory is the program's then, and not one instruction of it has been run. From there on it is like
 * any source, whose registers are those of the program's start. What that program does, it does as K, inside. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "inside/broker/interpreter.h"
#include "inside/broker/kernel.h"
#include "inside/broker/tables.h"
#include "inside/broker/tracee.h"
#include "lib/base/fault.h"
#include "lib/base/fd.h"

#define UMASK 022

static _Noreturn void run(const struct chute *c, const struct twin_request *q, const int *fds,
                          int talk)
{
    struct interpreter i = {.mode = "--zygote",
                            .imports = q->imports,
                            .first_id = q->first_id,
                            .cpus = q->cpus,
                            .namespaces = {[TWIN_Z_MNT] = fds[TWIN_K_MNT],
                                           [TWIN_Z_NET] = fds[TWIN_K_NET],
                                           [TWIN_Z_IPC] = fds[TWIN_K_IPC],
                                           [TWIN_Z_UTS] = fds[TWIN_K_UTS]},
                            .door = fds[TWIN_KERNEL_FDS],
                            .three = c->bottom,
                            .four = -1,
                            .say = talk,
                            .go_ahead = talk};

    interpreter_run(&i);
}

/* Why the child ended before it executed anything. */
static int say_why(int talk, struct sg_error *e)
{
    char text[200];
    ssize_t n = recv(talk, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    return err_set(e, SG_ERR_UNSUPPORTED, -ENOEXEC, "%s",
                   text[0] == '!' ? text + 1 : "Python ended at once");
}

/* It can be traced before it has changed its ids, and not again before it has executed something. */
static int execute(pid_t pid, int talk, struct sg_error *e)
{
    int r = tracee_seize(pid, e);

    if (r == 0 && send(talk, "x", 1, MSG_NOSIGNAL) != 1)
        r = err_errno(e, "start Python");
    if (r == 0)
        r = tracee_await_exec(pid, e);
    return r == -ESRCH ? say_why(talk, e) : r;
}

/* The program's first instruction is a system call until K has made its own calls. */
static int become_source(pid_t pid, const struct seccomp_prog *filter, uint32_t n_doors,
                         struct source *ret, struct sg_error *e)
{
    int r = cpu_save(pid, &ret->state);

    ret->pid = pid;
    ret->n_doors = n_doors;
    ret->umask = UMASK;
    ret->starts = true;
    cpu_leave_call(&ret->state);
    if (r == 0 && !cpu_native(&ret->state))
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOEXEC, "its Python is of another processor");
    if (r == 0)
        r = cpu_lend_call(pid, &ret->state, &ret->call_at, &ret->lent);
    if (r < 0)
        return err_internal(e, r, "prepare a new Python");
    r = source_map_page(ret, e);
    return r < 0 ? r : tables_install(ret, filter, e);
}

int kernel_make_fresh(const struct chute *c, const struct twin_request *q, const int *fds,
                      const struct seccomp_prog *filter, struct kernel *ret, struct sg_error *e)
{
    AUTO(close_p) int ours = -1, theirs = -1;
    struct source s = {.pid = 0};
    int talk[2], r;
    pid_t pid;

    if (!CPU_KNOWN)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS,
                       "this processor is not supported for copying kernels");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) < 0)
        return err_errno(e, "make a socket pair");
    ours = talk[0];
    theirs = talk[1];
    pid = fork();
    if (pid == 0)
        run(c, q, fds, theirs);
    if (pid < 0)
        return err_errno(e, "start Python");
    r = execute(pid, ours, e);
    if (r == 0)
        r = become_source(pid, filter, q->n_doors, &s, e);
    if (r < 0) {
        tracee_kill(pid);
        return r;
    }
    return kernel_make_from(&s, pid, c, q, fds, ret, e);
}
