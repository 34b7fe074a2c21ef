/* Checks of the kernel: namespaces, and what confines a process. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "cli/local/doctor.h"
#include "warden/host/netpath.h"
#include "inside/broker/cpu.h"

/* ---- namespaces ------------------------------------------------------------------------------ */

struct ns {
    int flag;
    const char *sysctl, *config;
};

static int try_unshare(void *arg)
{
    return unshare(*(int *)arg) < 0 ? -errno : 0;
}

static void check_namespace(struct check_result *r)
{
    const struct ns *n = r->about;
    int flag = n->flag, err = probe_in_child(try_unshare, &flag);
    long max = probe_sysctl(n->sysctl);

    if (err == 0 && max >= 0)
        return check_ok(r, "at most %ld", max);
    if (err == 0)
        return check_ok(r, "available");
    check_missing(r, "%s", strerror(-err));
    if (max == 0)
        check_fix(r, "allow them: echo 15000 > /proc/sys/%s", n->sysctl);
    else if (err == -EPERM)
        check_fix(r, "run sandglass as the host's root, outside containers that forbid it");
    else
        check_fix(r, "needs a kernel with %s=y", n->config);
}

/* Looks for a way out to the network. Without one, sandboxes run but reach nothing, so this only
 * warns. */
static void check_egress(struct check_result *r)
{
    char why[NETPATH_WHY];
    enum egress_path path;
    struct sg_error e;

    netpath_plan_use();
    if (netpath_probe(0, &path, why, &e) < 0) {
        check_warn(r, "sandboxes have no network");
        check_fix(r, "%.300s", e.message);
    } else if (why[0]) {
        check_warn(r, "by %s, which is slower than other paths", netpath_name(path));
        check_fix(r, "faster paths do not work: %.250s", why);
    } else {
        check_ok(r, "by %s", netpath_name(path));
    }
}

#define NS(...) check_namespace, (&(const struct ns){__VA_ARGS__})
static const struct check namespace_checks[] = {
    {"user", NS(CLONE_NEWUSER, "user/max_user_namespaces", "CONFIG_USER_NS")},
    {"mount", NS(CLONE_NEWNS, "user/max_mnt_namespaces", "CONFIG_NAMESPACES")},
    {"pid", NS(CLONE_NEWPID, "user/max_pid_namespaces", "CONFIG_PID_NS")},
    {"net", NS(CLONE_NEWNET, "user/max_net_namespaces", "CONFIG_NET_NS")},
    {"ipc", NS(CLONE_NEWIPC, "user/max_ipc_namespaces", "CONFIG_IPC_NS")},
    {"uts", NS(CLONE_NEWUTS, "user/max_uts_namespaces", "CONFIG_UTS_NS")},
    {"cgroup", NS(CLONE_NEWCGROUP, "user/max_cgroup_namespaces", "CONFIG_CGROUPS")},
    {"egress", check_egress, NULL},
};
const struct check_group doctor_namespaces = {"Namespaces", namespace_checks,
                                              ARRAY_SIZE(namespace_checks)};

/* ---- starting and confining processes -------------------------------------------------------- */

static void check_clone3(struct check_result *r)
{
    /* A kernel that has clone3 refuses a structure of size 0 with EINVAL, and starts nothing. */
    long n = syscall(SYS_clone3, NULL, 0);

    if (n < 0 && errno == EINVAL)
        return check_ok(r, "available");
    check_missing(r, "%s", strerror(errno));
    check_fix(r,
              "needs Linux 5.7 or later, and no seccomp filter around sandglass that forbids it");
}

static void check_memfd(struct check_result *r)
{
    if (probe_sysctl("vm/memfd_noexec") != 2)
        return check_ok(r, "allowed");
    check_missing(r, "forbidden: vm.memfd_noexec = 2");
    check_fix(r, "the agent runs from a sealed memory file: sysctl -w vm.memfd_noexec=1");
}

static void check_seccomp(struct check_result *r)
{
    uint32_t action = SECCOMP_RET_KILL_PROCESS;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
        return check_ok(r, "filters, kill of the whole process");
    check_missing(r, "%s", strerror(errno));
    check_fix(r, "needs a kernel with CONFIG_SECCOMP_FILTER=y, Linux 4.14 or later");
}

static void check_landlock(struct check_result *r)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi > 0)
        return check_ok(r, "ABI %ld", abi);
    check_warn(r, "not available: %s", strerror(errno));
    check_fix(
        r,
        "a further barrier, not required: boot with lsm=landlock,... (CONFIG_SECURITY_LANDLOCK)");
}

/* Traces a child process, as the warden does to copy warm interpreters. */
static int try_trace(void *arg UNUSED)
{
    pid_t pid = fork();
    int r;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        for (;;)
            pause();
    r = ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ? -errno : 0;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return r;
}

static void check_ptrace(struct check_result *r)
{
    long scope = probe_sysctl("kernel/yama/ptrace_scope");
    int err = CPU_KNOWN ? probe_in_child(try_trace, NULL) : -ENOSYS;

    if (err == 0)
        return check_ok(r, "kernels are live copies of warm interpreters");
    check_warn(
        r, "%s: warm interpreters are copied by plain fork, and sandboxes cannot be forked live",
        CPU_KNOWN ? strerror(-err) : "this processor is not supported");
    if (scope >= 3)
        check_fix(r, "set kernel.yama.ptrace_scope to 2 or less; 3 lasts until the next boot");
    else if (CPU_KNOWN)
        check_fix(r, "allow ptrace in the container or service that sandglass runs in");
}

/* ---- settings that keep users of the host apart ---------------------------------------------- */

static const struct {
    const char *path, *name;
    long least;
} hardening[] = {
    {"fs/protected_symlinks", "fs.protected_symlinks", 1},
    {"fs/protected_hardlinks", "fs.protected_hardlinks", 1},
    {"fs/protected_fifos", "fs.protected_fifos", 1},
    {"fs/protected_regular", "fs.protected_regular", 1},
    {"kernel/kptr_restrict", "kernel.kptr_restrict", 1},
    {"kernel/dmesg_restrict", "kernel.dmesg_restrict", 1},
};

static void check_hardening(struct check_result *r)
{
    size_t low = 0, used = 0;
    char fix[sizeof(r->fix)];

    for (size_t i = 0; i < ARRAY_SIZE(hardening); i++) {
        long v = probe_sysctl(hardening[i].path);

        if (v < 0 || v >= hardening[i].least)
            continue;
        low++;
        used += (size_t)snprintf(fix + used, sizeof(fix) - used, " %s=%ld", hardening[i].name,
                                 hardening[i].least);
        if (used >= sizeof(fix))
            break;
    }
    if (!low)
        return check_ok(r, "all %zu settings", ARRAY_SIZE(hardening));
    check_warn(r, "%zu of %zu settings are off", low, ARRAY_SIZE(hardening));
    check_fix(r, "sysctl -w%s", fix);
}

static void check_core_pattern(struct check_result *r)
{
    AUTO(free_p) char *text = NULL;
    size_t len;

    if (file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", 4096, &text, &len) < 0)
        return check_ok(r, "no core dumps");
    text[strcspn(text, "\n")] = '\0';
    if (text[0] != '|')
        return check_ok(r, "'%.100s'", text);
    check_warn(r, "'%.100s': a program of the host, run as root, reads dumps of sandboxes", text);
    check_fix(r, "sysctl -w kernel.core_pattern=core");
}

static const struct check confinement_checks[] = {
    {"clone3", check_clone3, NULL},           {"programs in memory", check_memfd, NULL},
    {"seccomp", check_seccomp, NULL},         {"landlock", check_landlock, NULL},
    {"tracing", check_ptrace, NULL},          {"hardening sysctls", check_hardening, NULL},
    {"core dumps", check_core_pattern, NULL},
};
const struct check_group doctor_confinement = {"Processes", confinement_checks,
                                               ARRAY_SIZE(confinement_checks)};
