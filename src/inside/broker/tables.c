#include "inside/broker/tables.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib/base/fault.h"
#include "inside/agent/agent.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/confine.h"
#include "inside/broker/tracee.h"

#ifndef SYS_rseq
#define SYS_rseq 334
#endif
#define RSEQ_UNREGISTER 1

#define H_CALLS  24
#define K_CALLS  128 /* without the remote calls */
#define FIRST_FD 4   /* the first descriptor that a copy receives: 0 to 3 are taken */
#define PAGE     4096u
#define STACKS   8192u /* the code needs no stack; a signal would */

/* K's table is as long as it must be. The data of the remote calls follows it. */
struct page {
    uint8_t code[64];
    struct confine_limit limits[CONFINE_LIMITS];
    struct msghdr message;
    struct iovec iov;
    uint8_t control[256];
    char byte[8], zero[8], home[64];
    struct clone_args clone;
    struct __user_cap_header_struct cap_head;
    struct __user_cap_data_struct cap_data[2];
    struct sock_fprog filter;
    struct sock_filter insns[SECCOMP_PROG_MAX];
    struct cpu_call h[H_CALLS];
    struct cpu_call k[];
};
_Static_assert(CMSG_SPACE(sizeof(int) * (TWIN_FDS_MAX + 1)) <= sizeof((struct page *)0)->control,
               "room for all descriptors");

#define AT(s, member) ((int64_t)((s)->page + offsetof(struct page, member)))

static size_t calls_room(const struct remote_calls *v)
{
    return K_CALLS + (v ? v->n : 0);
}

static size_t data_offset(const struct remote_calls *v)
{
    return sizeof(struct page) + calls_room(v) * sizeof(struct cpu_call);
}

static size_t bytes_used(const struct remote_calls *v)
{
    return data_offset(v) + (v ? v->data.len : 0);
}

size_t tables_bytes(const struct remote_calls *remote_calls)
{
    return (bytes_used(remote_calls) + STACKS + PAGE - 1) / PAGE * PAGE;
}

/* A table under construction. If it is too long, n == max, and its owner fails. */
struct list {
    struct cpu_call *calls;
    size_t n, max;
};

static void add(struct list *l, int64_t nr, int64_t a, int64_t b, int64_t c, int64_t d)
{
    if (l->n < l->max)
        l->calls[l->n++] = (struct cpu_call){.nr = nr, .args = {a, b, c, d}, .ret = CPU_NOT_MADE};
}

static int received(int which)
{
    return FIRST_FD + which;
}

/* H receives the descriptors. It joins the memory group before it touches anything, because all
 * memory that K will use is charged to H's group. It unregisters what the C library has registered
 * for the thread, because that is K's from now on. Then it makes K in the sandbox's pid
 * namespace. */
static void fill_h(const struct source *s, struct list *l)
{
    const struct source_thread *t = &s->thread;
    int doors = received(TWIN_KERNEL_FDS), own_pidns = doors + (int)s->n_doors;

    add(l, SYS_recvmsg, 3, AT(s, message), MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0);
    add(l, SYS_write, doors, AT(s, zero), 1, 0);
    if (t->rseq && s->registered)
        add(l, SYS_rseq, (int64_t)t->rseq, t->rseq_len, RSEQ_UNREGISTER, t->rseq_signature);
    add(l, SYS_set_robust_list, 0, sizeof(uint64_t) * 3, 0, 0);
    add(l, SYS_set_tid_address, 0, 0, 0, 0);
    add(l, SYS_setns, received(TWIN_K_PID), CLONE_NEWPID, 0, 0);
    add(l, SYS_clone3, AT(s, clone), sizeof(struct clone_args), 0, 0);
    add(l, SYS_setns, own_pidns, CLONE_NEWPID, 0, 0);
    add(l, SYS_close_range, FIRST_FD, ~0U, 0, 0);
    add(l, CPU_TABLE_END, 0, 0, 0, 0);
}

/* K enters the network namespace first: it belongs to F, and K has no rights there once it is in
 * the sandbox's user namespace. */
static void add_namespaces(struct list *l)
{
    static const struct {
        int which, flag;
    } all[] = {{TWIN_K_NET, CLONE_NEWNET}, {TWIN_K_USER, CLONE_NEWUSER},
               {TWIN_K_MNT, CLONE_NEWNS},  {TWIN_K_IPC, CLONE_NEWIPC},
               {TWIN_K_UTS, CLONE_NEWUTS}, {TWIN_K_CGROUP, CLONE_NEWCGROUP}};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        add(l, SYS_setns, received(all[i].which), all[i].flag, 0, 0);
}

/* Entering the user namespace gave K all capabilities in it. K was not root there, so a change of
 * ids takes none away: they are dropped by name. */
static void add_confinement(const struct source *s, const struct agent_user *as, struct list *l)
{
    for (int64_t c = 0; c < 64 && prctl(PR_CAPBSET_READ, c) >= 0; c++)
        add(l, SYS_prctl, PR_CAPBSET_DROP, c, 0, 0);
    add(l, SYS_setgroups, 0, 0, 0, 0);
    add(l, SYS_setresgid, as->gid, as->gid, as->gid, 0);
    add(l, SYS_setresuid, as->uid, as->uid, as->uid, 0);
    add(l, SYS_capset, AT(s, cap_head), AT(s, cap_data), 0, 0);
    add(l, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0);
}

static void add_remote_calls(struct source *s, struct list *l)
{
    s->remote_calls_at = l->n;
    if (!s->remote_calls || l->n + s->remote_calls->n > l->max)
        return;
    remote_calls_place(s->remote_calls, l->calls + l->n, s->page + data_offset(s->remote_calls));
    l->n += s->remote_calls->n;
}

static void fill_k(struct source *s, struct list *l)
{
    const struct source_thread *t = &s->thread;
    const struct agent_user *as = agent_user_find("user");
    struct confine_limit limits[CONFINE_LIMITS];

    add(l, SYS_getpid, 0, 0, 0, 0);
    for (uint32_t i = 1; i < s->n_doors; i++)
        add(l, SYS_write, received(TWIN_KERNEL_FDS) + (int)i, AT(s, zero), 1, 0);
    add_namespaces(l);
    confine_limits(&(struct agent_config){0}, limits); /* for the names; values come later */
    for (size_t i = 0; i < CONFINE_LIMITS; i++)
        add(l, SYS_prlimit64, 0, limits[i].resource, AT(s, limits[i].value), 0);
    add_confinement(s, as, l);
    add(l, SYS_setsid, 0, 0, 0, 0);
    add(l, SYS_umask, s->umask, 0, 0, 0);
    add(l, SYS_dup3, received(TWIN_K_STDOUT), 1, 0, 0);
    add(l, SYS_dup3, received(TWIN_K_STDERR), 2, 0, 0);
    add(l, SYS_dup3, received(TWIN_K_CONTROL), 3, O_CLOEXEC, 0);
    add(l, SYS_close_range, FIRST_FD, ~0U, 0, 0);
    add(l, SYS_chdir, AT(s, home), 0, 0, 0);
    add_remote_calls(s, l);
    if (t->rseq)
        add(l, SYS_rseq, (int64_t)t->rseq, t->rseq_len, 0, t->rseq_signature);
    if (t->robust)
        add(l, SYS_set_robust_list, (int64_t)t->robust, (int64_t)t->robust_len, 0, 0);
    add(l, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, AT(s, filter), 0);
    /* The change of ids had hidden K's /proc entry, and with it K's memory, from other processes of
     * the user. They may see it again now that nothing is left to be done. */
    add(l, SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0);
    add(l, CPU_TABLE_END, 0, 0, 0, 0);
}

static void fill_data(const struct source *s, const struct seccomp_prog *filter, struct page *p)
{
    memcpy(p->code, cpu_code, cpu_code_len);
    p->zero[0] = '0';
    memcpy(p->home, "/home/user", sizeof("/home/user"));
    p->iov = (struct iovec){.iov_base = (void *)(uintptr_t)AT(s, byte), .iov_len = 1};
    p->message = (struct msghdr){.msg_iov = (void *)(uintptr_t)AT(s, iov),
                                 .msg_iovlen = 1,
                                 .msg_control = (void *)(uintptr_t)AT(s, control),
                                 .msg_controllen = sizeof(p->control)};
    p->clone = (struct clone_args){.flags = CLONE_VM | CLONE_PARENT};
    if (s->thread.tid) {
        p->clone.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
        p->clone.child_tid = s->thread.tid;
    }
    p->cap_head.version = _LINUX_CAPABILITY_VERSION_3;
    p->filter = (struct sock_fprog){.len = filter->len, .filter = (void *)(uintptr_t)AT(s, insns)};
    memcpy(p->insns, filter->insns, filter->len * sizeof(filter->insns[0]));
}

int tables_install(struct source *s, const struct seccomp_prog *filter, struct sg_error *e)
{
    size_t len = bytes_used(s->remote_calls);
    AUTO(free_p) struct page *p = xcalloc(1, len);
    struct list h = {.calls = p->h, .max = H_CALLS};
    struct list k = {.calls = p->k, .max = calls_room(s->remote_calls)};
    int r;

    fill_data(s, filter, p);
    fill_h(s, &h);
    fill_k(s, &k);
    if (h.n == h.max || k.n == k.max || cpu_code_len > sizeof(p->code))
        return err_set(e, SG_ERR_INTERNAL, -ENOSPC, "the tables of a kernel are too long");
    if (s->remote_calls)
        memcpy((char *)p + data_offset(s->remote_calls), s->remote_calls->data.buf,
               s->remote_calls->data.len);
    r = tracee_write(s->pid, s->page, p, len);
    return err_internal(e, r, "write the tables");
}

/* stack: distance from the end of the page. */
static int aim(const struct source *s, pid_t pid, int64_t table, size_t stack, struct sg_error *e)
{
    uint64_t end = s->page + tables_bytes(s->remote_calls);
    int r = cpu_aim_table(pid, &s->state, (uint64_t)AT(s, code), (uint64_t)table, end - stack);

    return err_internal(e, r, "set the registers of process %d", pid);
}

int tables_aim_h(const struct source *s, pid_t h, struct sg_error *e)
{
    return aim(s, h, AT(s, h), 64, e);
}

int tables_aim_k(const struct source *s, pid_t k, struct sg_error *e)
{
    return aim(s, k, AT(s, k), STACKS / 2, e);
}

int tables_set_limits(const struct source *s, pid_t h, uint32_t pids, uint64_t disk_bytes,
                      struct sg_error *e)
{
    struct agent_config config = {.pids = pids, .disk_bytes = disk_bytes};
    struct confine_limit limits[CONFINE_LIMITS];
    int r = confine_limits(&config, limits);

    if (r == 0)
        r = tracee_write(h, (uint64_t)AT(s, limits), limits, sizeof(limits));
    return err_internal(e, r, "set a kernel's limits");
}

static int check(const char *whose, const struct cpu_call *calls, size_t n, struct sg_error *e)
{
    for (size_t i = 0; i < n && calls[i].nr != CPU_TABLE_END; i++)
        if (calls[i].ret < 0)
            return err_set(e, SG_ERR_INTERNAL, (int)calls[i].ret,
                           "making a kernel: %s in %s (step %zu): %s",
                           seccomp_call_name(calls[i].nr), whose, i, strerror((int)-calls[i].ret));
    return 0;
}

static int check_k(const struct source *s, const struct cpu_call *k, struct sg_error *e)
{
    size_t from = s->remote_calls_at, n = s->remote_calls ? s->remote_calls->n : 0;
    int r = check("the kernel", k, from, e);

    if (r == 0 && n > 0)
        r = err_wrap(e, remote_calls_check(s->remote_calls, k + from, e), "making a kernel");
    return r < 0 ? r : check("the kernel, at its end", k + from + n, SIZE_MAX, e);
}

int tables_check(const struct source *s, pid_t h, pid_t *ret_pid, struct sg_error *e)
{
    size_t n = H_CALLS + calls_room(s->remote_calls);
    AUTO(free_p) struct cpu_call *seen = xcalloc(n, sizeof(*seen));
    int r = tracee_read(h, (uint64_t)AT(s, h), seen, n * sizeof(*seen));

    if (r < 0)
        return err_internal(e, r, "read the results of making a kernel");
    r = check("its twin", seen, SIZE_MAX, e);
    if (r == 0)
        r = check_k(s, seen + H_CALLS, e);
    if (r == 0)
        *ret_pid = (pid_t)seen[H_CALLS].ret;
    return r;
}
