#include "server/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no system-call filter for this processor"
#endif

/* Refused with EPERM. Not an allow-list: what libc, OpenSSL and SQLite call differs from version to
 * version, and a server that dies after an upgrade helps nobody. */
static const int refused[] = {
#ifdef SYS_fork /* the old ways of calls that are listed below too */
    SYS_fork,
    SYS_vfork,
    SYS_symlink,
    SYS_mknod,
#endif
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_bind,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_kexec_load,
    SYS_open_by_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_personality,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_symlinkat,
    SYS_mknodat,
};

/* The clerk does nothing else. */
static const int refused_but_to_the_clerk[] = {SYS_socket, SYS_connect};

#define FILTER_MAX ((ARRAY_SIZE(refused) + ARRAY_SIZE(refused_but_to_the_clerk)) * 2 + 18)

struct program {
    struct sock_filter code[FILTER_MAX];
    unsigned short n;
};

static void add(struct program *p, struct sock_filter instruction)
{
    p->code[p->n++] = instruction;
}

static void add_return(struct program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void add_refusals(struct program *p, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1));
        add_return(p, SECCOMP_RET_ERRNO | EPERM);
    }
}

static void build(struct program *p, bool clerk)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                        offsetof(struct seccomp_data, arch)));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    add_return(p, SECCOMP_RET_KILL_PROCESS);
    add(p,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
#ifdef __X32_SYSCALL_BIT
    /* The same calls under other numbers. */
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, __X32_SYSCALL_BIT, 0, 1));
    add_return(p, SECCOMP_RET_KILL_PROCESS);
#endif
    add_refusals(p, refused, ARRAY_SIZE(refused));
    if (!clerk)
        add_refusals(p, refused_but_to_the_clerk, ARRAY_SIZE(refused_but_to_the_clerk));
    /* clone3 hides its flags in memory: libc falls back to clone, which may only make threads. */
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
    add_return(p, SECCOMP_RET_ERRNO | ENOSYS);
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                        offsetof(struct seccomp_data, args[0])));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
    add_return(p, SECCOMP_RET_ERRNO | EPERM);
    add_return(p, SECCOMP_RET_ALLOW);
}

static int load(bool clerk, const char *whose, struct sg_error *e)
{
    struct program p = {.n = 0};
    struct sock_fprog prog = {.filter = p.code};

    build(&p, clerk);
    prog.len = p.n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return err_errno(e, "load the %s's system-call filter", whose);
    return 0;
}

int confine_front(struct sg_error *e)
{
    return load(false, "front", e);
}

int confine_clerk(struct sg_error *e)
{
    return load(true, "clerk", e);
}
