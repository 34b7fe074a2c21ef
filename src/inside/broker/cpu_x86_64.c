/* x86-64: see cpu.h. */
#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inside/broker/cpu.h"
#include "inside/broker/tracee.h"

/* Linux's internal results for a system call that must be made again. Programs never see them. */
#define ERESTARTSYS    512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514

#define SYSCALL_LEN 2
#define CODE_64     0x33 /* the code segment of 64-bit programs */
#define FLAGS_PLAIN 0x202
#define BELOW_STACK 1024 /* more than the 128 bytes that a function may use below its stack */

#ifndef PTRACE_GET_SYSCALL_INFO
#define PTRACE_GET_SYSCALL_INFO 0x420e
#endif
#define OP_ENTRY 1

/* The result of PTRACE_GET_SYSCALL_INFO. */
struct call_info {
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t instruction, stack, nr, args[6];
};

/* r15 points at the table's current entry. */
const uint8_t cpu_code[] = {
    0x49, 0x8b, 0x07,       /* mov rax, [r15]        */
    0x48, 0x83, 0xf8, 0xff, /* cmp rax, -1           */
    0x74, 0x24,             /* je the trap           */
    0x49, 0x8b, 0x7f, 0x08, /* mov rdi, [r15 + 8]    */
    0x49, 0x8b, 0x77, 0x10, /* mov rsi, [r15 + 16]   */
    0x49, 0x8b, 0x57, 0x18, /* mov rdx, [r15 + 24]   */
    0x4d, 0x8b, 0x57, 0x20, /* mov r10, [r15 + 32]   */
    0x4d, 0x8b, 0x47, 0x28, /* mov r8, [r15 + 40]    */
    0x4d, 0x8b, 0x4f, 0x30, /* mov r9, [r15 + 48]    */
    0x0f, 0x05,             /* syscall               */
    0x49, 0x89, 0x47, 0x38, /* mov [r15 + 56], rax   */
    0x49, 0x83, 0xc7, 0x40, /* add r15, 64           */
    0xeb, 0xd3,             /* jmp to the start      */
    0xcc,                   /* the trap: int3        */
};
const size_t cpu_code_len = sizeof(cpu_code);
_Static_assert(sizeof(struct cpu_call) == 64, "the code steps by 64 bytes");

static int get_regs(pid_t pid, struct user_regs_struct *ret)
{
    struct iovec v = {.iov_base = ret, .iov_len = sizeof(*ret)};

    return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

static int set_regs(pid_t pid, const struct user_regs_struct *r)
{
    struct user_regs_struct copy = *r;
    struct iovec v = {.iov_base = &copy, .iov_len = sizeof(copy)};

    return ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

int cpu_save(pid_t pid, struct cpu_state *ret)
{
    struct iovec v = {.iov_base = ret->extended, .iov_len = sizeof(ret->extended)};
    int r = get_regs(pid, &ret->regs);

    if (r < 0)
        return r;
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &v) < 0 ||
        ptrace(PTRACE_GETSIGMASK, pid, (void *)sizeof(ret->sigmask), &ret->sigmask) < 0)
        return -errno;
    ret->extended_len = v.iov_len;
    return 0;
}

int cpu_load(pid_t pid, const struct cpu_state *s)
{
    struct cpu_state copy = *s;
    struct iovec v = {.iov_base = copy.extended, .iov_len = copy.extended_len};

    if (ptrace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &v) < 0 ||
        ptrace(PTRACE_SETSIGMASK, pid, (void *)sizeof(copy.sigmask), &copy.sigmask) < 0)
        return -errno;
    return set_regs(pid, &copy.regs);
}

bool cpu_is_call(pid_t pid, uint64_t at)
{
    uint8_t code[SYSCALL_LEN];

    return tracee_read(pid, at, code, sizeof(code)) == 0 && code[0] == 0x0f && code[1] == 0x05;
}

uint64_t cpu_reading_from(pid_t pid, const struct cpu_state *s, int fd)
{
    const struct user_regs_struct *r = &s->regs;
    bool reads = r->orig_rax == SYS_read || r->orig_rax == SYS_readv || r->orig_rax == SYS_recvfrom;

    if (!reads || r->rdi != (uint64_t)fd || (int64_t)r->rax != -ERESTARTSYS || !cpu_native(s))
        return 0;
    return cpu_call_of(pid, s);
}

uint64_t cpu_call_of(pid_t pid, const struct cpu_state *s)
{
    uint64_t at = s->regs.rip - SYSCALL_LEN;

    return (int64_t)s->regs.orig_rax >= 0 && cpu_is_call(pid, at) ? at : 0;
}

int cpu_lend_call(pid_t pid, const struct cpu_state *s, uint64_t *ret_at, long *ret_saved)
{
    void *at = (void *)(uintptr_t)s->regs.rip;
    long word;

    errno = 0;
    word = ptrace(PTRACE_PEEKDATA, pid, at, NULL);
    if (errno != 0 || ptrace(PTRACE_POKEDATA, pid, at, (void *)((word & ~0xffffL) | 0x050f)) < 0)
        return -errno;
    *ret_at = s->regs.rip;
    *ret_saved = word;
    return 0;
}

int cpu_take_call(pid_t pid, const struct cpu_state *s, long saved)
{
    void *at = (void *)(uintptr_t)s->regs.rip;

    return ptrace(PTRACE_POKEDATA, pid, at, (void *)saved) < 0 ? -errno : 0;
}

int cpu_own_call(pid_t pid, uint64_t at)
{
    void *where = (void *)(uintptr_t)at;
    long word;

    errno = 0;
    word = ptrace(PTRACE_PEEKDATA, pid, where, NULL);
    return errno != 0 || ptrace(PTRACE_POKEDATA, pid, where, (void *)word) < 0 ? -errno : 0;
}

bool cpu_native(const struct cpu_state *s)
{
    return s->regs.cs == CODE_64;
}

bool cpu_enters(pid_t pid, uint64_t at, const struct cpu_call *c)
{
    struct call_info info = {0};

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) < (long)sizeof(info))
        return false;
    for (int i = 0; i < 6; i++)
        if (info.args[i] != (uint64_t)c->args[i])
            return false;
    return info.op == OP_ENTRY && info.arch == AUDIT_ARCH_X86_64 &&
           info.instruction == at + SYSCALL_LEN && info.nr == (uint64_t)c->nr;
}

void cpu_restart_call(struct cpu_state *s)
{
    s->regs.rax = s->regs.orig_rax;
    s->regs.rip -= SYSCALL_LEN;
    s->regs.orig_rax = (uint64_t)-1;
}

void cpu_leave_call(struct cpu_state *s)
{
    s->regs.rax = 0;
    s->regs.orig_rax = (uint64_t)-1;
}

uint64_t cpu_below_stack(const struct cpu_state *s)
{
    return (s->regs.rsp - BELOW_STACK) & ~UINT64_C(7);
}

int cpu_aim_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c)
{
    struct user_regs_struct r = s->regs;

    r.rip = at;
    r.eflags = FLAGS_PLAIN; /* the program may have set flags that make it trap */
    r.rax = (uint64_t)c->nr;
    r.orig_rax = (uint64_t)-1;
    r.rdi = (uint64_t)c->args[0];
    r.rsi = (uint64_t)c->args[1];
    r.rdx = (uint64_t)c->args[2];
    r.r10 = (uint64_t)c->args[3];
    r.r8 = (uint64_t)c->args[4];
    r.r9 = (uint64_t)c->args[5];
    return set_regs(pid, &r);
}

int cpu_aim_table(pid_t pid, const struct cpu_state *s, uint64_t code, uint64_t table,
                  uint64_t stack)
{
    struct user_regs_struct r = s->regs;

    r.rip = code;
    r.eflags = FLAGS_PLAIN;
    r.r15 = table;
    r.rsp = stack;
    r.orig_rax = (uint64_t)-1;
    return set_regs(pid, &r);
}

int cpu_result(pid_t pid, int64_t *ret)
{
    struct user_regs_struct r;
    int e = get_regs(pid, &r);

    if (e == 0)
        *ret = (int64_t)r.rax;
    return e;
}

#endif
