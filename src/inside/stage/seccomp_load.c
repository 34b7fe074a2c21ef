#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "inside/stage/seccomp.h"

int seccomp_load(const struct seccomp_prog *p)
{
    struct sock_fprog prog = {
        .len = p->len,
        .filter =
            (struct sock_filter *)(uintptr_t)p->insns, /* read only; the type says otherwise */
    };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}
