/* Confines a files worker: it may work on files that it has descriptors of, and answer. */
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fault.h"
#include "inside/files/files.h"
#include "inside/stage/confine.h"
#include "inside/stage/seccomp_rules.h"

#define MEMORY_MAX (512ull << 20) /* bytes of addresses; a merge remembers inode numbers */

/* clang-format off */
#define ALLOW(n) {.name = #n, .nr = SYS_##n, .verdict = VERDICT_ALLOW}
static const struct seccomp_rule rules[] = {
    ALLOW(openat), ALLOW(openat2), ALLOW(close), ALLOW(read), ALLOW(write), ALLOW(pread64), ALLOW(readv), ALLOW(writev),
    ALLOW(lseek), ALLOW(sendfile), ALLOW(ftruncate), ALLOW(fcntl), ALLOW(dup), ALLOW(dup3),
    ALLOW(fstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(getdents64), ALLOW(readlinkat),
    ALLOW(faccessat), ALLOW(faccessat2),
    ALLOW(mkdirat), ALLOW(mknodat), ALLOW(symlinkat), ALLOW(linkat), ALLOW(unlinkat), ALLOW(renameat),
    ALLOW(renameat2), ALLOW(fchown), ALLOW(fchownat), ALLOW(fchmod), ALLOW(fchmodat),
    ALLOW(utimensat), ALLOW(fgetxattr), ALLOW(fsetxattr), ALLOW(flistxattr), ALLOW(fremovexattr),
    ALLOW(fsync), ALLOW(syncfs), ALLOW(name_to_handle_at), ALLOW(ioctl),
    ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise),
    ALLOW(getrandom), ALLOW(clock_gettime), ALLOW(sendmsg), ALLOW(sendto), ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn), ALLOW(exit), ALLOW(exit_group), ALLOW(futex), ALLOW(restart_syscall),
#ifdef __x86_64__
    ALLOW(access), ALLOW(open), ALLOW(stat), ALLOW(lstat), ALLOW(readlink),
#endif
};
/* clang-format on */

static const struct seccomp_policy policy = {
    .rules = rules, .n_rules = ARRAY_SIZE(rules), .last_nr = SECCOMP_NR_MAX};

int files_confine(int root, bool trusted, unsigned deadline_s, struct sg_error *e)
{
    uint64_t caps = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID |
                    (trusted ? 1u << CAP_SYS_ADMIN | 1u << CAP_MKNOD : 0);
    struct rlimit memory = {MEMORY_MAX, MEMORY_MAX}, none = {0};
    struct seccomp_prog filter;
    int r = seccomp_compile_policy(&policy, SECCOMP_PROGRAM, &filter, e);

    if (r < 0)
        return r;
    alarm(deadline_s);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &none);
    r = fchdir(root) < 0 || chroot(".") < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
            ? -errno
            : confine_caps(caps, caps);
    if (r == 0)
        r = seccomp_load(&filter);
    return err_internal(e, r, "confine the files worker");
}
