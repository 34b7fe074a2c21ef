/* What an image worker may do: read and write the descriptors that it has. */
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/image.h"
#include "inside/stage/seccomp_rules.h"
#include "lib/base/fault.h"

/* clang-format off */
#define ALLOW(n) {.name = #n, .nr = SYS_##n, .verdict = VERDICT_ALLOW}
static const struct seccomp_rule rules[] = {
    ALLOW(read), ALLOW(write), ALLOW(pread64), ALLOW(lseek), ALLOW(close), ALLOW(fstat), ALLOW(newfstatat), ALLOW(fsync), ALLOW(ftruncate),
    ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise),
    ALLOW(getrandom), ALLOW(sysinfo), ALLOW(futex), ALLOW(rt_sigreturn), ALLOW(restart_syscall), ALLOW(exit), ALLOW(exit_group),
};
/* clang-format on */

static const struct seccomp_policy policy = {
    .rules = rules, .n_rules = ARRAY_SIZE(rules), .last_nr = SECCOMP_NR_MAX};

/* Whoever started it may have been root. */
static int drop_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int image_confine(uint64_t memory, unsigned cpu_s, struct sg_error *e)
{
    const struct rlimit limits[] = {{memory, memory}, {cpu_s, cpu_s}, {0, 0}};
    struct seccomp_prog filter;
    int r = seccomp_compile_policy(&policy, SECCOMP_PROGRAM, &filter, e);

    if (r < 0)
        return r;
    if (setrlimit(RLIMIT_AS, &limits[0]) < 0 || setrlimit(RLIMIT_CPU, &limits[1]) < 0 ||
        setrlimit(RLIMIT_CORE, &limits[2]) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = drop_caps();
    if (r == 0)
        r = seccomp_load(&filter);
    return err_internal(e, r, "confine the image worker");
}
