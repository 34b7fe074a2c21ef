#include "inside/broker/kernel.h"

#include <linux/ptrace.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/ipc/ipc.h"
#include "inside/broker/tables.h"
#include "inside/broker/tracee.h"

/* Runs H until it has made K. Then both work through the rest of their tables side by side. */
static int run_tables(const struct source *s, struct kernel *k, struct sg_error *e)
{
    unsigned long pid = 0;
    int r = tables_aim_h(s, k->h, e);

    if (r == 0)
        r = tracee_run_until(k->h, PTRACE_EVENT_CLONE, &pid, e);
    if (r < 0)
        return r;
    k->k = (pid_t)pid;
    r = tracee_await_start(k->k, e);
    if (r == 0)
        r = tables_aim_k(s, k->k, e);
    if (r == 0)
        r = tracee_continue(k->k, e);
    if (r == 0)
        r = tracee_continue(k->h, e);
    if (r == 0)
        r = tracee_await_trap(k->k, e);
    return r < 0 ? r : tracee_await_trap(k->h, e);
}

/* Unmaps our page, and gives K the registers of the source. */
static int let_go(const struct source *s, const struct kernel *k, struct sg_error *e)
{
    struct cpu_call unmap = {.nr = SYS_munmap,
                             .args = {(int64_t)s->page, (int64_t)tables_bytes(s->remote_calls)}};
    struct cpu_state state = s->state;
    int64_t said = 0;
    int r = tracee_call(k->k, &s->state, s->call_at, &unmap, &said, e);

    if (r == 0 && said != 0)
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "a signal came while a kernel was made");
    if (r < 0)
        return r;
    if (s->starts)
        r = cpu_take_call(k->k, &s->state, s->lent);
    else
        cpu_restart_call(&state);
    if (r == 0)
        r = cpu_load(k->k, &state);
    if (r < 0)
        return err_internal(e, r, "load a kernel's registers");
    return tracee_release(k->k, e);
}

static int take_copy(struct zygote *z, pid_t *ret, struct sg_error *e)
{
    int r = 0;

    if (z->ahead > 0) {
        *ret = z->ahead;
        z->ahead = 0;
    } else {
        r = source_copy(z->source.pid, &z->source.state, z->source.call_at, ret, e);
        z->broken = r < 0;
    }
    return r;
}

void kernel_copy_ahead(struct zygote *z)
{
    struct sg_error e;

    z->broken = source_copy(z->source.pid, &z->source.state, z->source.call_at, &z->ahead, &e) < 0;
}

/* Makes the kernel from k->h, a copy of the source. */
static int make(const struct source *s, const struct chute *c, const struct twin_request *q,
                const int *fds, struct kernel *k, struct sg_error *e)
{
    size_t n = TWIN_KERNEL_FDS + q->n_doors + 1;
    int r = tables_set_limits(s, k->h, q->pids, q->disk_bytes, e);

    if (r == 0)
        r = err_internal(e, ipc_send(c->top, "k", 1, fds, n), "send a kernel its descriptors");
    if (r == 0)
        r = run_tables(s, k, e);
    if (r == 0)
        r = tables_check(s, k->h, &k->k_inside, e);
    return r < 0 ? r : let_go(s, k, e);
}

/* Hands the kernel out, or leaves nothing of it. */
static int finish(int r, const struct kernel *k, const struct chute *c, struct kernel *ret)
{
    if (r == 0) {
        *ret = *k;
        return 0;
    }
    if (k->k > 0)
        tracee_kill(k->k);
    if (k->h > 0 && k->h != k->k)
        tracee_kill(k->h);
    chute_clear(c);
    return r;
}

int kernel_make(struct zygote *z, const struct chute *c, const struct twin_request *q,
                const int *fds, struct kernel *ret, struct sg_error *e)
{
    struct kernel k = {0};
    int r;

    if (!z->held || q->n_doors != z->source.n_doors)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENODEV, "the zygote is not loaded: try again");
    if (z->plain) {
        r = kernel_make_plain(z, q, fds, &k, e);
    } else {
        r = take_copy(z, &k.h, e);
        if (r == 0)
            r = make(&z->source, c, q, fds, &k, e);
    }
    return finish(r, &k, c, ret);
}

int kernel_make_from(const struct source *s, pid_t h, const struct chute *c,
                     const struct twin_request *q, const int *fds, struct kernel *ret,
                     struct sg_error *e)
{
    struct kernel k = {.h = h};
    int r = q->n_doors == s->n_doors ? make(s, c, q, fds, &k, e)
                                     : err_set(e, SG_ERR_INTERNAL, -EINVAL,
                                               "a kernel has other control groups than its source");

    return finish(r, &k, c, ret);
}
