/* The system-call policy, for the numbers of Linux 6.18. ALLOW needs no reason; each DENY has one,
 * or stands in a group that has. A call that exists but is missing here gets EPERM like a denied
 * one. */
#include "inside/stage/seccomp_rules.h"

#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/text/strbuf.h"

/* Numbers that the C library's headers may be too old to know; since 424 all architectures share
 * them. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake    454
#define SYS_futex_wait    455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
#ifndef SYS_lsm_get_self_attr
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_set_self_attr 460
#define SYS_lsm_list_modules  461
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat    463
#define SYS_getxattrat    464
#define SYS_listxattrat   465
#define SYS_removexattrat 466
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif
#define LAST_NR SYS_file_setattr

/* clang-format off */
#define ONE(v)         {(v), (v)}
#define SPAN(lo, hi)   {(lo), (hi)}
#define RANGES(...)    ((const struct seccomp_range[]){__VA_ARGS__})
#define N_RANGES(...)  (sizeof(RANGES(__VA_ARGS__)) / sizeof(struct seccomp_range))
#define ARG(i, m, ...) {(m), (i), N_RANGES(__VA_ARGS__), RANGES(__VA_ARGS__)}
/* clang-format on */
#define ALL UINT32_MAX

/* ---- socket, socketpair ---------------------------------------------------------------------
 * The families through which kernels were attacked (AF_ALG, AF_VSOCK, AF_PACKET, AF_RXRPC, ...) are
 * absent, so are raw sockets, SCTP, MPTCP and every netlink protocol but the one that lists
 * interfaces. The kernel takes the two flags off `type` before it looks at it; anything else left
 * over is refused. */
#define FAMILY(...)         ARG(0, ALL, __VA_ARGS__)
#define TYPE(...)           ARG(1, ~(uint32_t)(SOCK_NONBLOCK | SOCK_CLOEXEC), __VA_ARGS__)
#define PROTO(...)          ARG(2, ALL, __VA_ARGS__)
#define NETLINK_ROUTE_PROTO 0
#define NETLINK_AUDIT_PROTO 9

static const struct seccomp_clause socket_clauses[] = {
    {{FAMILY(ONE(AF_UNIX)), TYPE(ONE(SOCK_STREAM), ONE(SOCK_DGRAM), ONE(SOCK_SEQPACKET))}},
    {{FAMILY(ONE(AF_INET), ONE(AF_INET6)), TYPE(ONE(SOCK_STREAM)),
      PROTO(ONE(0), ONE(IPPROTO_TCP))}},
    {{FAMILY(ONE(AF_INET), ONE(AF_INET6)), TYPE(ONE(SOCK_DGRAM)), PROTO(ONE(0), ONE(IPPROTO_UDP))}},
    {{FAMILY(ONE(AF_NETLINK)), TYPE(ONE(SOCK_DGRAM), ONE(SOCK_RAW)),
      PROTO(ONE(NETLINK_ROUTE_PROTO))}},
    /* su, useradd and whatever else uses PAM end if they may not write to the kernel's audit log, and
     * go on if the kernel has none. */
    {{FAMILY(ONE(AF_NETLINK)), PROTO(ONE(NETLINK_AUDIT_PROTO))}},
};
static const struct seccomp_clause socketpair_clauses[] = {{{FAMILY(ONE(AF_UNIX))}}};

/* ---- setsockopt -----------------------------------------------------------------------------
 * TCP_ULP attaches ESP-in-TCP and kernel TLS, UDP_ENCAP and the policies feed IPsec, the filters
 * load BPF. In SOL_IP everything from 64 on is netfilter; in SOL_IPV6 only 64 and 65 are, 66 and 67
 * are the traffic class that ssh and QUIC set. Numbers, because the headers that name them exclude
 * each other. */
#define LEVEL(v)     ARG(1, ALL, ONE(v))
#define OPTNAME(...) ARG(2, ALL, __VA_ARGS__)

static const struct seccomp_clause setsockopt_clauses[] = {
    {{LEVEL(1 /* SOL_SOCKET */),
      OPTNAME(ONE(26) /* SO_ATTACH_FILTER */,
              SPAN(50, 52) /* _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF */)}},
    {{LEVEL(IPPROTO_TCP), OPTNAME(ONE(31) /* TCP_ULP */)}},
    {{LEVEL(IPPROTO_UDP), OPTNAME(ONE(100) /* UDP_ENCAP */)}},
    {{LEVEL(IPPROTO_IP), OPTNAME(SPAN(16, 17) /* IP_IPSEC_POLICY, IP_XFRM_POLICY */,
                                 ONE(19) /* IP_TRANSPARENT */, SPAN(64, ALL) /* netfilter */)}},
    {{LEVEL(IPPROTO_IPV6), OPTNAME(SPAN(34, 35) /* IPV6_IPSEC_POLICY, IPV6_XFRM_POLICY */,
                                   SPAN(64, 65) /* netfilter */, ONE(75) /* IPV6_TRANSPARENT */)}},
};

/* ---- clone ----------------------------------------------------------------------------------
 * No namespaces. CLONE_PARENT would give the child to the parent outside, CLONE_PTRACE and
 * _UNTRACED concern a tracer, and the only one there can be is ours. Bit 7 is CLONE_NEWTIME for
 * clone3 and part of the exit signal here; no signal has it. The kernel drops the high half of the
 * flags. */
#define CLONE_REFUSED                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
     CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */ | CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED)

static const struct seccomp_clause clone_clauses[] = {{{ARG(0, CLONE_REFUSED, ONE(0))}}};

/* ---- ioctl ----------------------------------------------------------------------------------
 * `cmd` is an unsigned int. There is no device to talk to but the terminals: what is refused writes
 * into a terminal's input, moves the console, loads a line discipline or pokes at serial hardware.
 */
static const struct seccomp_clause ioctl_clauses[] = {{{ARG(
    1, ALL, ONE(TIOCSTI), SPAN(0x541c, 0x541d) /* TIOCLINUX, TIOCCONS */, ONE(TIOCSETD),
    ONE(0x5437) /* TIOCVHANGUP */, SPAN(0x5453, 0x545b) /* TIOCSERCONFIG to TIOCSERSETMULTI */)}}};

/* ---- prctl ----------------------------------------------------------------------------------
 * All up to the shadow-stack options but PR_SET_MM (35: forges the memory layout that /proc shows),
 * PR_SCHED_CORE (62: chooses who shares a core) and PR_SET_MEMORY_MERGE (67: equal pages of
 * different sandboxes become one, which timing shows). Newer ones are refused until someone has
 * read them. */
static const struct seccomp_clause prctl_clauses[] = {
    {{ARG(0, ALL, SPAN(0, 34), SPAN(36, 61), SPAN(63, 66), SPAN(68, 76),
          ONE(0x41555856) /* PR_GET_AUXV */, ONE(0x53564d41) /* PR_SET_VMA */,
          ONE(0x59616d61) /* PR_SET_PTRACER */)}}};
static const struct seccomp_clause madvise_clauses[] = {{{ARG(2, ALL, ONE(12 /* _MERGEABLE */))}}};

/* ---- the rest -------------------------------------------------------------------------------- */
/* umode_t is 16 bits, so the mask leaves what the kernel sees. 0 means a regular file. A character
 * device 0:0 is an overlay whiteout: making one needs no privilege. */
#define NODE_TYPES ONE(0), ONE(S_IFREG), ONE(S_IFIFO), ONE(S_IFSOCK)
#ifdef __x86_64__
static const struct seccomp_clause mknod_clauses[] = {{{ARG(1, S_IFMT, NODE_TYPES)}}};
#endif
static const struct seccomp_clause mknodat_clauses[] = {{{ARG(2, S_IFMT, NODE_TYPES)}}};
/* A pid other than 0 could be the agent's. */
static const struct seccomp_clause prlimit64_clauses[] = {{{ARG(0, ALL, ONE(0))}}};
/* Allowed: plain, 32-bit uname, 2.6 uname, both, query. Not allowed: ADDR_NO_RANDOMIZE,
 * READ_IMPLIES_EXEC, MMAP_PAGE_ZERO. */
static const struct seccomp_clause personality_clauses[] = {
    {{ARG(0, ALL, ONE(0), ONE(8), ONE(0x20000), ONE(0x20008), ONE(ALL))}}};
/* Programs may add filters, but no listener: it would be a supervisor beside ours. */
static const struct seccomp_clause seccomp_clauses[] = {
    {{ARG(1,
          ~(uint32_t)(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
                      SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_TSYNC_ESRCH),
          ONE(0))}}};

/* clang-format off */
#define ALLOW(n)  {.name = #n, .nr = SYS_##n, .verdict = VERDICT_ALLOW}
#define DENY(n)   {.name = #n, .nr = SYS_##n, .verdict = VERDICT_EPERM}
#define ALSO(n, roles) {.name = #n, .nr = SYS_##n, .verdict = VERDICT_EPERM, .also = (roles)}
#define ABSENT(n) {.name = #n, .nr = SYS_##n, .verdict = VERDICT_ENOSYS}
#define CHECK(n, v, o, a, w)                                                                        \
    {.name = #n, .nr = SYS_##n, .verdict = VERDICT_##v, .otherwise = VERDICT_##o, .words = (w),    \
     .clauses = n##_clauses, .n_clauses = ARRAY_SIZE(n##_clauses),            \
     .n_absent = (a)}
#define ONLY(n, w)   CHECK(n, ALLOW, EPERM, 0, w)
#define EXCEPT(n, w) CHECK(n, EPERM, ALLOW, 0, w)

#define W (1u << SECCOMP_WARDEN)
#define S (1u << SECCOMP_SPAWNER)
#define A (1u << SECCOMP_AGENT)
#define B (1u << SECCOMP_BROKER)
#define Z (1u << SECCOMP_ZYGOTE)

static const struct seccomp_rule rules[] = {
    CHECK(socket, ALLOW, EPERM, 1,
          "AF_UNIX; AF_INET and AF_INET6 for TCP and UDP; NETLINK_ROUTE; NETLINK_AUDIT: "
                 "EPROTONOSUPPORT"),
    ONLY(socketpair, "AF_UNIX"),
    EXCEPT(setsockopt, "TCP_ULP, UDP_ENCAP, BPF filters, netfilter, IPsec, transparent proxying"),
    ONLY(clone, "no new namespace, no CLONE_PARENT, _PTRACE, _UNTRACED"),
    EXCEPT(ioctl, "TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCVHANGUP, TIOCSER*"),
    ONLY(prctl, "options known in 6.18 without PR_SET_MM, PR_SCHED_CORE, PR_SET_MEMORY_MERGE"),
    EXCEPT(madvise, "MADV_MERGEABLE"),
    ONLY(mknodat, "regular file, FIFO, socket"),
    ONLY(prlimit64, "pid 0: the caller itself"),
    ONLY(personality, "0, 0x8, 0x20000, 0x20008, 0xffffffff"),
    ONLY(seccomp, "flags without SECCOMP_FILTER_FLAG_NEW_LISTENER"),

    /* For these, libraries fall back to the older call and lose nothing. The arguments of the older
     * call can be checked (clone), or its code has been reviewed for longer. */
    {.name = "clone3", .nr = SYS_clone3, .verdict = VERDICT_ENOSYS, .also = W | S | B | Z},
    ABSENT(mseal), ABSENT(setxattrat), ABSENT(removexattrat), ABSENT(file_getattr),
    ABSENT(file_setattr),

    /* Processes, identity, resources. */
    ALLOW(execve), ALLOW(execveat), ALLOW(exit), ALLOW(exit_group), ALLOW(wait4), ALLOW(waitid),
    ALLOW(getpid), ALLOW(getppid), ALLOW(gettid), ALLOW(set_tid_address), ALLOW(setsid),
    ALLOW(getsid), ALLOW(setpgid), ALLOW(getpgid), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid),
    ALLOW(getegid), ALLOW(setuid), ALLOW(setgid), ALLOW(setreuid), ALLOW(setregid),
    ALLOW(setresuid), ALLOW(getresuid), ALLOW(setresgid), ALLOW(getresgid), ALLOW(setfsuid),
    ALLOW(setfsgid), ALLOW(getgroups), ALLOW(setgroups), ALLOW(capget), ALLOW(capset),
    ALLOW(getrlimit), ALLOW(setrlimit), ALLOW(getrusage), ALLOW(times), ALLOW(sysinfo),
    ALLOW(uname), ALLOW(getcpu), ALLOW(getpriority), ALLOW(setpriority), ALLOW(ioprio_get),
    ALLOW(ioprio_set), ALLOW(pidfd_open), ALLOW(pidfd_send_signal),

    /* Scheduling: the rlimits refuse real time. */
    ALLOW(sched_yield), ALLOW(sched_setparam), ALLOW(sched_getparam), ALLOW(sched_setscheduler),
    ALLOW(sched_getscheduler), ALLOW(sched_get_priority_max), ALLOW(sched_get_priority_min),
    ALLOW(sched_rr_get_interval), ALLOW(sched_setaffinity), ALLOW(sched_getaffinity),
    ALLOW(sched_setattr), ALLOW(sched_getattr),

    /* Threads. */
    ALLOW(futex), ALLOW(futex_waitv), ALLOW(futex_wake), ALLOW(futex_wait), ALLOW(futex_requeue),
    ALLOW(set_robust_list), ALLOW(get_robust_list), ALLOW(rseq), ALLOW(membarrier),
    ALLOW(restart_syscall),

    /* Signals: the pid namespace bounds them, the agent has another uid. */
    ALLOW(kill), ALLOW(tkill), ALLOW(tgkill), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn), ALLOW(rt_sigpending), ALLOW(rt_sigtimedwait), ALLOW(rt_sigqueueinfo),
    ALLOW(rt_tgsigqueueinfo), ALLOW(rt_sigsuspend), ALLOW(sigaltstack), ALLOW(signalfd4),

    /* Time. */
    ALLOW(nanosleep), ALLOW(clock_nanosleep), ALLOW(clock_gettime), ALLOW(clock_getres),
    ALLOW(gettimeofday), ALLOW(getitimer), ALLOW(setitimer), ALLOW(timer_create),
    ALLOW(timer_settime), ALLOW(timer_gettime), ALLOW(timer_getoverrun), ALLOW(timer_delete),
    ALLOW(timerfd_create), ALLOW(timerfd_settime), ALLOW(timerfd_gettime),

    /* Memory. get_mempolicy only reads, and NUMA-aware programs start with it. */
    ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(msync),
    ALLOW(mincore), ALLOW(mlock), ALLOW(mlock2), ALLOW(munlock), ALLOW(mlockall), ALLOW(munlockall),
    ALLOW(pkey_mprotect), ALLOW(pkey_alloc), ALLOW(pkey_free), ALLOW(map_shadow_stack),
    ALLOW(get_mempolicy), ALLOW(memfd_create), ALLOW(getrandom),

    /* Descriptors. */
    ALLOW(read), ALLOW(write), ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(pwrite64),
    ALLOW(preadv), ALLOW(pwritev), ALLOW(preadv2), ALLOW(pwritev2), ALLOW(close),
    ALLOW(close_range), ALLOW(lseek), ALLOW(dup), ALLOW(dup3), ALLOW(fcntl), ALLOW(flock),
    ALLOW(pipe2), ALLOW(pselect6), ALLOW(ppoll), ALLOW(epoll_create1), ALLOW(epoll_ctl),
    ALLOW(epoll_pwait), ALLOW(epoll_pwait2), ALLOW(eventfd2), ALLOW(inotify_init1),
    ALLOW(inotify_add_watch), ALLOW(inotify_rm_watch), ALLOW(sendfile), ALLOW(splice), ALLOW(tee),
    ALLOW(copy_file_range),

    /* Files. */
    ALLOW(openat), ALLOW(openat2), ALLOW(newfstatat), ALLOW(fstat), ALLOW(statx), ALLOW(statfs),
    ALLOW(fstatfs), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(readlinkat), ALLOW(getdents64),
    ALLOW(getcwd), ALLOW(chdir), ALLOW(fchdir), ALLOW(chroot), ALLOW(umask), ALLOW(mkdirat),
    ALLOW(unlinkat), ALLOW(renameat), ALLOW(renameat2), ALLOW(linkat), ALLOW(symlinkat),
    ALLOW(fchmod), ALLOW(fchmodat), ALLOW(fchmodat2), ALLOW(fchown), ALLOW(fchownat),
    ALLOW(utimensat), ALLOW(truncate), ALLOW(ftruncate), ALLOW(fallocate), ALLOW(fadvise64),
    ALLOW(readahead), ALLOW(sync), ALLOW(syncfs), ALLOW(fsync), ALLOW(fdatasync),
    ALLOW(sync_file_range), ALLOW(setxattr), ALLOW(lsetxattr), ALLOW(fsetxattr), ALLOW(getxattr),
    ALLOW(lgetxattr), ALLOW(fgetxattr), ALLOW(getxattrat), ALLOW(listxattr), ALLOW(llistxattr),
    ALLOW(flistxattr), ALLOW(listxattrat), ALLOW(removexattr), ALLOW(lremovexattr),
    ALLOW(fremovexattr),

    /* Sockets, once made. */
    ALLOW(bind), ALLOW(listen), ALLOW(accept), ALLOW(accept4), ALLOW(connect), ALLOW(getsockname),
    ALLOW(getpeername), ALLOW(getsockopt), ALLOW(sendto), ALLOW(recvfrom), ALLOW(sendmsg),
    ALLOW(recvmsg), ALLOW(sendmmsg), ALLOW(recvmmsg), ALLOW(shutdown),

    /* System V and POSIX IPC, in a namespace of its own. */
    ALLOW(shmget), ALLOW(shmat), ALLOW(shmdt), ALLOW(shmctl), ALLOW(semget), ALLOW(semop),
    ALLOW(semtimedop), ALLOW(semctl), ALLOW(msgget), ALLOW(msgsnd), ALLOW(msgrcv), ALLOW(msgctl),
    ALLOW(mq_open), ALLOW(mq_unlink), ALLOW(mq_timedsend), ALLOW(mq_timedreceive), ALLOW(mq_notify),
    ALLOW(mq_getsetattr),

    /* Programs that confine themselves further. */
    ALLOW(landlock_create_ruleset), ALLOW(landlock_add_rule), ALLOW(landlock_restrict_self),

    /* Mounts and namespaces belong to the warden. The agent moves into another root
     * (root_move.c); the broker and its zygotes enter sandboxes. */
    ALSO(mount, W | S | A), ALSO(umount2, W | S | A), ALSO(pivot_root, W | S | A),
    ALSO(move_mount, W | S | A), ALSO(open_tree, W | S), ALSO(mount_setattr, W | S),
    ALSO(fsopen, W | S), ALSO(fsconfig, W | S), ALSO(fsmount, W | S), ALSO(fspick, W | S),
    ALSO(setns, W | S | B | Z), ALSO(unshare, W | S | B),
    DENY(open_tree_attr), DENY(statmount), DENY(listmount),

    /* Large parts of the kernel with a history of holes. Ordinary programs do not need them, or do
     * without when refused. */
    ALSO(bpf, W), DENY(perf_event_open), DENY(io_uring_setup), DENY(io_uring_enter),
    DENY(io_uring_register), DENY(add_key), DENY(request_key), DENY(keyctl), DENY(io_setup),
    DENY(io_destroy), DENY(io_getevents), DENY(io_pgetevents), DENY(io_submit), DENY(io_cancel),
    DENY(fanotify_init), DENY(fanotify_mark), DENY(lsm_get_self_attr), DENY(lsm_set_self_attr),
    DENY(lsm_list_modules), DENY(remap_file_pages),

    /* Calls that reach into another process, or keep it from being copied: a fork of a running
     * kernel relies on nobody else tracing it, serving its page faults, or hiding memory. vmsplice
     * keeps a page after it was unmapped, and forks share pages copy-on-write. */
    ALSO(ptrace, W | B), ALSO(process_vm_readv, W | B), ALSO(process_vm_writev, W | B),
    ALSO(kcmp, W | B), DENY(process_madvise), DENY(process_mrelease), DENY(pidfd_getfd), DENY(userfaultfd), DENY(memfd_secret),
    DENY(vmsplice),

    /* Opening files by handle bypasses directories; cachestat tells what a neighbour has read. */
    ALSO(name_to_handle_at, W), DENY(open_by_handle_at), DENY(cachestat),

    /* Placement of memory on nodes is the operator's. */
    DENY(mbind), DENY(set_mempolicy), DENY(set_mempolicy_home_node), DENY(migrate_pages),
    DENY(move_pages),

    /* The machine: its clock, kernel, swap, quotas, log and name. adjtimex can also just read, but
     * whether it does is behind a pointer, which the filter cannot see. */
    DENY(settimeofday), DENY(clock_settime), DENY(clock_adjtime), DENY(adjtimex), DENY(kexec_load),
    DENY(kexec_file_load), DENY(init_module), DENY(finit_module), DENY(delete_module), DENY(reboot),
    DENY(swapon), DENY(swapoff), DENY(quotactl), ALSO(quotactl_fd, W), DENY(acct), DENY(syslog),
    ALSO(sethostname, W | S), DENY(setdomainname), DENY(vhangup),

#ifdef __x86_64__
    /* Calls that only this architecture has, most of them older forms of those above. */
    ONLY(mknod, "regular file, FIFO, socket"),
    ALLOW(open), ALLOW(creat), ALLOW(stat), ALLOW(lstat), ALLOW(access), ALLOW(readlink),
    ALLOW(getdents), ALLOW(mkdir), ALLOW(rmdir), ALLOW(rename), ALLOW(link), ALLOW(unlink),
    ALLOW(symlink), ALLOW(chmod), ALLOW(chown), ALLOW(lchown), ALLOW(utime), ALLOW(utimes),
    ALLOW(futimesat), ALLOW(dup2), ALLOW(pipe), ALLOW(select), ALLOW(poll), ALLOW(epoll_create),
    ALLOW(epoll_wait), ALLOW(eventfd), ALLOW(signalfd), ALLOW(inotify_init), ALLOW(fork),
    ALLOW(vfork), ALLOW(pause), ALLOW(alarm), ALLOW(time), ALLOW(getpgrp), ALLOW(arch_prctl),
    DENY(iopl), DENY(ioperm), DENY(modify_ldt), DENY(uselib), DENY(ustat), DENY(sysfs),
#endif
};
#undef W
#undef S
#undef A
#undef B
#undef Z
/* clang-format on */

static const struct seccomp_range holes[] = {
#ifdef __x86_64__
    {335, 423},
#else
    {244, 259},
    {295, 423},
#endif
};

const struct seccomp_policy seccomp_policy = {
    .rules = rules,
    .n_rules = ARRAY_SIZE(rules),
    .holes = holes,
    .n_holes = ARRAY_SIZE(holes),
    .last_nr = LAST_NR,
};

const char *seccomp_call_name(int64_t nr)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].nr == nr)
            return rules[i].name;
    return "a system call";
}

void seccomp_explain(struct strbuf *out)
{
    static const char *const words[] = {[VERDICT_EPERM] = "EPERM",
                                        [VERDICT_ENOSYS] = "ENOSYS",
                                        [VERDICT_EPROTONOSUPPORT] = "EPROTONOSUPPORT",
                                        [VERDICT_ALLOW] = "allow"};

    _Static_assert(ARRAY_SIZE(words) == VERDICT_MAX_, "every verdict has a word");
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        strbuf_addf(out, "%-24s %s", rules[i].name, words[rules[i].verdict]);
        if (rules[i].words)
            strbuf_addf(out, ": %s; else %s", rules[i].words, words[rules[i].otherwise]);
        strbuf_addch(out, '\n');
    }
}
