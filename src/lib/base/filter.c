#include "lib/base/filter.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no system-call filter for this processor"
#endif

static const int always[] = {
#ifdef SYS_fork /* older forms of calls that are listed below too */
    SYS_fork,
    SYS_vfork,
    SYS_symlink,
    SYS_mknod,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
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
    SYS_delete_module,
    SYS_kexec_file_load,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    SYS_process_madvise,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_vmsplice,
    SYS_syslog,
    SYS_acct,
    SYS_quotactl,
    SYS_clock_settime,
    SYS_settimeofday,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_shmget,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
};

/* Socket options that put more than a plain connection into a socket. */
static const struct {
    int level, name;
} options[] = {
    {IPPROTO_TCP, TCP_ULP},         /* TLS, ESP and more in the kernel */
    {IPPROTO_UDP, UDP_ENCAP},       /* IPsec */
    {SOL_SOCKET, SO_ATTACH_FILTER}, /* the process's own code in the kernel */
};

static const int protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP};

#define REFUSED_MAX  16
#define FAMILIES_MAX 8
#define FILTER_MAX                                                                   \
    ((ARRAY_SIZE(always) + REFUSED_MAX) * 2 + FAMILIES_MAX + ARRAY_SIZE(protocols) + \
     ARRAY_SIZE(options) * 5 + 32)

struct program {
    struct sock_filter code[FILTER_MAX];
    unsigned short n;
};

static void add(struct program *p, struct sock_filter instruction)
{
    p->code[p->n++] = instruction;
}

static void add_load(struct program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void add_jump(struct program *p, uint32_t value, uint8_t equal, uint8_t other)
{
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, equal, other));
}

static void add_return(struct program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void add_refusals(struct program *p, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_jump(p, (uint32_t)calls[i], 0, 1);
        add_return(p, SECCOMP_RET_ERRNO | EPERM);
    }
}

static void add_arch(struct program *p)
{
    add_load(p, offsetof(struct seccomp_data, arch));
    add_jump(p, ARCH, 1, 0);
    add_return(p, SECCOMP_RET_KILL_PROCESS);
    add_load(p, offsetof(struct seccomp_data, nr));
#ifdef __X32_SYSCALL_BIT
    /* x32 has the same calls under other numbers. */
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, __X32_SYSCALL_BIT, 0, 1));
    add_return(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

/* Refuses a call with `error` if its argument is none of these. */
static void add_one_of(struct program *p, unsigned argument, const int *these, size_t n, int error)
{
    add_load(p, (uint32_t)offsetof(struct seccomp_data, args) + argument * 8);
    for (size_t i = 0; i < n; i++)
        add_jump(p, (uint32_t)these[i], (uint8_t)(n - i), 0);
    add_return(p, SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Checks socket(); the code jumps over itself for any other call. */
static void add_sockets(struct program *p, const int *families, size_t n)
{
    size_t others = n + ARRAY_SIZE(protocols) + 5;

    add_jump(p, SYS_socket, 0, (uint8_t)others);
    add_one_of(p, 0, families, n, EAFNOSUPPORT);
    add_one_of(p, 2, protocols, ARRAY_SIZE(protocols), EPROTONOSUPPORT);
    add_return(p, SECCOMP_RET_ALLOW);
}

static void add_options(struct program *p)
{
    add_jump(p, SYS_setsockopt, 0, (uint8_t)(ARRAY_SIZE(options) * 5 + 1));
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        add_load(p, offsetof(struct seccomp_data, args[1]));
        add_jump(p, (uint32_t)options[i].level, 0, 3);
        add_load(p, offsetof(struct seccomp_data, args[2]));
        add_jump(p, (uint32_t)options[i].name, 0, 1);
        add_return(p, SECCOMP_RET_ERRNO | EPERM);
    }
    add_return(p, SECCOMP_RET_ALLOW);
}

/* Refuses clone3, which hides its flags in memory. libc then falls back to clone, which may only
 * make threads. */
static void add_threads(struct program *p)
{
    add_jump(p, SYS_clone3, 0, 1);
    add_return(p, SECCOMP_RET_ERRNO | ENOSYS);
    add_jump(p, SYS_clone, 0, 3);
    add_load(p, offsetof(struct seccomp_data, args[0]));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
    add_return(p, SECCOMP_RET_ERRNO | EPERM);
    add_return(p, SECCOMP_RET_ALLOW);
}

int filter_load(const struct filter *f, const char *whose, struct sg_error *e)
{
    struct program p = {.n = 0};
    struct sock_fprog prog = {.filter = p.code};

    assert(f->n_refused <= REFUSED_MAX && f->n_families <= FAMILIES_MAX);
    add_arch(&p);
    add_refusals(&p, always, ARRAY_SIZE(always));
    add_refusals(&p, f->refused, f->n_refused);
    if (f->families)
        add_sockets(&p, f->families, f->n_families);
    add_options(&p);
    add_threads(&p);
    prog.len = p.n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return err_errno(e, "load the %s's system-call filter", whose);
    return 0;
}
