#include "warden/host/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    int cap;
    const char *why; /* for the reader */
} kept[] = {
    {CAP_SYS_ADMIN, "mounts, namespaces, control groups, BPF"},
    {CAP_NET_ADMIN, "the network path of sandboxes"},
    {CAP_SYS_PTRACE, "namespaces and processes of domains in /proc"},
    {CAP_SYS_RESOURCE, "limits of descriptors and oom_score_adj of children"},
    {CAP_SYS_CHROOT, "roots of domains"},
    {CAP_KILL, "children that run as other users"},
    {CAP_SETUID, "id maps; programs that run as other users"},
    {CAP_SETGID, "the same for groups"},
    {CAP_SETPCAP, "to take capabilities away from children"},
    {CAP_MKNOD, "whiteouts of layers"},
    {CAP_CHOWN, "files of sandboxes"},
    {CAP_FOWNER, "files of sandboxes"},
    {CAP_FSETID, "files of sandboxes"},
    {CAP_DAC_OVERRIDE, "files of sandboxes"},
    {CAP_DAC_READ_SEARCH, "overlays, which look for hard links by handles"},
};

static int keep_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[2];
    uint64_t keep = 0;

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        keep |= 1ull << kept[i].cap;
    for (unsigned long c = 0; c < 64; c++)
        if (!(keep & 1ull << c) && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 && errno != EINVAL)
            return -errno;
    if (syscall(SYS_capget, &head, now) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(now); i++) {
        now[i].permitted &= (uint32_t)(keep >> (32 * i));
        now[i].effective = now[i].permitted;
        now[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, now) < 0 ? -errno : 0;
}

int privileges_compile(struct seccomp_prog *ret, struct sg_error *e)
{
    return seccomp_compile(SECCOMP_WARDEN, ret, e);
}

int privileges_drop(const struct seccomp_prog *filter, struct sg_error *e)
{
    int r = keep_capabilities();

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        r = seccomp_load(filter);
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "give up privileges: %s", strerror(-r)) : 0;
}
