#include "warden/twin/kernel.h"

#include <linux/ptrace.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "warden/twin/tables.h"
#include "warden/twin/tracee.h"

/* A copy of the zygote, stopped before its first instruction. Whoever is parent of the zygote is
 * its parent too. The zygote itself comes back to rest right after the call. */
static int fork_zygote(struct zygote *z, pid_t *ret, struct sg_error *e)
{
    struct cpu_call call = {.nr = SYS_clone, .args = {CLONE_PARENT | SIGCHLD}};
    unsigned long pid = 0;
    int r = cpu_aim_call(z->pid, &z->state, z->call_at, &call);

    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "aim the zygote: %s", strerror(-r));
    r = tracee_run_until(z->pid, PTRACE_EVENT_FORK, &pid, e);
    if (r < 0)
        return r;
    *ret = (pid_t)pid;
    r = tracee_finish_call(z->pid, e);
    return r < 0 ? r : tracee_await_birth(*ret, e);
}

static int aim(const struct zygote *z, pid_t pid, size_t table, size_t stack, struct sg_error *e)
{
    int r =
        cpu_aim_table(pid, &z->state, z->page + tables_code(), z->page + table, z->page + stack);

    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "aim process %d: %s", pid, strerror(-r)) : 0;
}

/* Until H has made K; both then work off the rest of their tables side by side. */
static int run_tables(const struct zygote *z, struct kernel *k, struct sg_error *e)
{
    unsigned long pid = 0;
    int r = aim(z, k->h, tables_h(), tables_h_stack(), e);

    if (r == 0)
        r = tracee_run_until(k->h, PTRACE_EVENT_CLONE, &pid, e);
    if (r < 0)
        return r;
    k->k = (pid_t)pid;
    r = tracee_await_birth(k->k, e);
    if (r == 0)
        r = aim(z, k->k, tables_k(), tables_k_stack(), e);
    if (r == 0)
        r = tracee_continue(k->k, e);
    if (r == 0)
        r = tracee_continue(k->h, e);
    if (r == 0)
        r = tracee_await_trap(k->k, e);
    return r < 0 ? r : tracee_await_trap(k->h, e);
}

/* Our page goes, and K gets what the zygote was doing. */
static int let_go(const struct zygote *z, const struct kernel *k, struct sg_error *e)
{
    struct cpu_call unmap = {.nr = SYS_munmap, .args = {(int64_t)z->page, TABLES_BYTES}};
    struct cpu_state state = z->state;
    int64_t ignored;
    int r = tracee_call(k->k, &z->state, z->call_at, &unmap, &ignored, e);

    if (r < 0)
        return r;
    cpu_restart_call(&state);
    r = cpu_load(k->k, &state);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "load a kernel's registers: %s", strerror(-r));
    return tracee_release(k->k, e);
}

static int take_copy(struct zygote *z, pid_t *ret, struct sg_error *e)
{
    int r = 0;

    if (z->ahead > 0) {
        *ret = z->ahead;
        z->ahead = 0;
    } else {
        r = fork_zygote(z, ret, e);
        z->broken = r < 0;
    }
    return r;
}

void kernel_copy_ahead(struct zygote *z)
{
    struct sg_error e;
    pid_t pid = 0;

    z->broken = fork_zygote(z, &pid, &e) < 0;
    if (!z->broken)
        z->ahead = pid;
    else if (pid > 0)
        tracee_kill(pid);
}

static int make(struct zygote *z, const struct twin_request *q, const int *fds, struct kernel *k,
                struct sg_error *e)
{
    size_t n = TWIN_KERNEL_FDS + q->n_doors + 1;
    int r = take_copy(z, &k->h, e);

    if (r == 0)
        r = tables_set_limits(z, k->h, q->pids, q->disk_bytes, e);
    if (r == 0) {
        r = fd_send(z->fds, "k", 1, fds, n);
        if (r < 0)
            err_set(e, SG_ERR_INTERNAL, r, "send a kernel its descriptors: %s", strerror(-r));
    }
    if (r == 0)
        r = run_tables(z, k, e);
    if (r == 0)
        r = tables_check(z, k->h, &k->k_inside, e);
    return r < 0 ? r : let_go(z, k, e);
}

int kernel_make(struct zygote *z, const struct twin_request *q, const int *fds, struct kernel *ret,
                struct sg_error *e)
{
    struct kernel k = {0};
    int r;

    if (!z->held || q->n_doors != z->n_doors)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENODEV, "there is no zygote for kernels now");
    r = z->plain ? kernel_make_plain(z, q, fds, &k, e) : make(z, q, fds, &k, e);
    if (r == 0) {
        *ret = k;
        return 0;
    }
    if (k.k > 0)
        tracee_kill(k.k);
    if (k.h > 0 && k.h != k.k)
        tracee_kill(k.h);
    zygote_take_back(z);
    return r;
}
