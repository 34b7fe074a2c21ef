/* What a volume helper may do: work on the files of one directory. Its children may do less. */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/stage/confine.h"
#include "inside/stage/seccomp_rules.h"
#include "inside/volume/volume.h"
#include "lib/base/fault.h"

#define MEMORY_MAX (64ull << 20) /* bytes of addresses */
#define FILES_MAX  2048          /* descriptors: more than a measure holds */
#define CAPS       (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID)

/* clang-format off */
#define ALLOW(n) {.name = #n, .nr = SYS_##n, .verdict = VERDICT_ALLOW}
#define CHILD_CALLS \
    ALLOW(openat), ALLOW(openat2), ALLOW(close), ALLOW(read), ALLOW(write), ALLOW(readv), ALLOW(writev), \
    ALLOW(lseek), ALLOW(fcntl), ALLOW(dup), ALLOW(fstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(getdents64), \
    ALLOW(readlinkat), ALLOW(mkdirat), ALLOW(linkat), ALLOW(symlinkat), ALLOW(unlinkat), ALLOW(renameat), ALLOW(renameat2), ALLOW(utimensat), \
    ALLOW(fchown), ALLOW(fchownat), ALLOW(fchmod), ALLOW(fchmodat), \
    ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise), \
    ALLOW(getrandom), ALLOW(clock_gettime), ALLOW(nanosleep), ALLOW(clock_nanosleep), ALLOW(sendto), ALLOW(recvfrom), ALLOW(rt_sigprocmask), \
    ALLOW(rt_sigreturn), ALLOW(exit), ALLOW(exit_group), ALLOW(futex), ALLOW(restart_syscall)
static const struct seccomp_rule child_rules[] = {CHILD_CALLS,
#ifdef __x86_64__
    ALLOW(open), ALLOW(stat), ALLOW(lstat), ALLOW(readlink), ALLOW(unlink), ALLOW(rmdir),
#endif
};
/* The first process starts children, and takes connections. */
static const struct seccomp_rule rules[] = {CHILD_CALLS,
    ALLOW(clone), ALLOW(wait4), ALLOW(ppoll), ALLOW(recvmsg), ALLOW(shutdown), ALLOW(setitimer), ALLOW(prctl), ALLOW(seccomp),
    ALLOW(gettid), ALLOW(set_tid_address), ALLOW(set_robust_list), ALLOW(rt_sigaction),
#ifdef __x86_64__
    ALLOW(open), ALLOW(stat), ALLOW(lstat), ALLOW(readlink), ALLOW(unlink), ALLOW(rmdir),
    ALLOW(fork), ALLOW(poll), ALLOW(alarm),
#endif
};
/* clang-format on */

static const struct seccomp_policy policy = {
    .rules = rules, .n_rules = ARRAY_SIZE(rules), .last_nr = SECCOMP_NR_MAX};
static const struct seccomp_policy child_policy = {
    .rules = child_rules, .n_rules = ARRAY_SIZE(child_rules), .last_nr = SECCOMP_NR_MAX};
static struct seccomp_prog child_filter;

int volume_confine(int root, struct sg_error *e)
{
    struct rlimit memory = {MEMORY_MAX, MEMORY_MAX}, files = {FILES_MAX, FILES_MAX}, none = {0};
    struct seccomp_prog filter;
    int r = seccomp_compile_policy(&policy, SECCOMP_PROGRAM, &filter, e);

    if (r == 0)
        r = seccomp_compile_policy(&child_policy, SECCOMP_PROGRAM, &child_filter, e);
    if (r < 0)
        return r;
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_CORE, &none);
    r = fchdir(root) < 0 || chroot(".") < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
            ? -errno
            : confine_caps(CAPS, CAPS);
    if (r == 0)
        r = seccomp_load(&filter);
    return err_internal(e, r, "confine the volume helper");
}

int volume_confine_child(void)
{
    return seccomp_load(&child_filter);
}
