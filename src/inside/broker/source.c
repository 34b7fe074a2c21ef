#include "inside/broker/source.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "inside/broker/tables.h"
#include "inside/broker/tracee.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

/* The result of PTRACE_GET_RSEQ_CONFIGURATION. */
struct rseq_configuration {
    uint64_t pointer;
    uint32_t size, signature, flags, pad;
};

/* If this Linux cannot tell one of these, copies are made as if it were not registered. */
void source_learn_thread(pid_t pid, struct source_thread *ret)
{
    struct rseq_configuration rseq = {0};
    void *robust = NULL;
    size_t robust_len = 0;

    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, pid, (void *)sizeof(rseq), &rseq) > 0) {
        ret->rseq = rseq.pointer;
        ret->rseq_len = rseq.size;
        ret->rseq_signature = rseq.signature;
    }
    if (syscall(SYS_get_robust_list, pid, &robust, &robust_len) == 0) {
        ret->robust = (uint64_t)(uintptr_t)robust;
        ret->robust_len = robust_len;
    }
}

int source_learn_tid(pid_t pid, const struct cpu_state *state, uint64_t call_at, uint64_t *ret,
                     struct sg_error *e)
{
    uint64_t at = cpu_below_stack(state);
    struct cpu_call ask = {.nr = SYS_prctl, .args = {PR_GET_TID_ADDRESS, (int64_t)at}};
    int r = tracee_call(pid, state, call_at, &ask, NULL, e);

    if (r == 0)
        r = err_internal(e, tracee_read(pid, at, ret, sizeof(*ret)), "read a kernel's memory");
    if (r == 0)
        r = err_internal(e, cpu_load(pid, state), "load a kernel's registers");
    return r;
}

int source_copy(pid_t pid, const struct cpu_state *state, uint64_t call_at, pid_t *ret,
                struct sg_error *e)
{
    struct cpu_call call = {.nr = SYS_clone, .args = {CLONE_PARENT | SIGCHLD}};
    pid_t copy = 0;
    int r = tracee_enter_call(pid, state, call_at, &call, e);

    if (r == 0)
        r = tracee_finish_fork(pid, &copy, e);
    if (r == 0)
        r = tracee_await_start(copy, e);
    if (r == 0)
        *ret = copy;
    else if (copy > 0)
        tracee_kill(copy);
    return r;
}

int source_map_page(struct source *s, struct sg_error *e)
{
    struct cpu_call call = {.nr = SYS_mmap,
                            .args = {0, (int64_t)tables_bytes(s->remote_calls),
                                     PROT_READ | PROT_WRITE | PROT_EXEC,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}};
    int64_t at;
    int r = tracee_call(s->pid, &s->state, s->call_at, &call, &at, e);

    if (r == 0)
        s->page = (uint64_t)at;
    return r;
}

int source_be_victim(pid_t pid, int score, struct sg_error *e)
{
    char path[40], text[8];
    int r;

    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
    snprintf(text, sizeof(text), "%d", score);
    r = file_write(AT_FDCWD, path, text);
    return err_internal(e, r, "write '%s'", path);
}
