/* Ids, capabilities and limits. All by raw system calls: the wrappers of libc would signal other
 * threads, and there are none. */
#include "inside/stage/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/defences.h"

#define CAP(c)    (UINT64_C(1) << (c))
#define KEEP_HARD RLIM_INFINITY

/* The capabilities that tools such as apt, pip, npm and su need as "root" inside. None of them
 * reaches the kernel. */
#define ROOT_CAPS                                                                    \
    (CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) |    \
     CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_KILL) | CAP(CAP_NET_BIND_SERVICE) | \
     CAP(CAP_SYS_CHROOT))
/* The capabilities that root's file operations have when the agent does them. */
#define ROOT_FS_CAPS (CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID))
#define AGENT_CAPS                                                                  \
    (ROOT_CAPS | CAP(CAP_SETPCAP) | CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_SYS_ADMIN) | \
     CAP(CAP_SYS_RESOURCE))

/* The limit of the control group must be hit first: the group counts what it refuses, so the result
 * can name the limit. */
#define NPROC_MORE 64

#define AGENT_LIMITS (CONFINE_LIMITS - 2)
#define AGENT_FILES  8192 /* 1,024 processes with three pipes each, and some more */

static int caps_get(uint64_t *effective, uint64_t *permitted)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];

    if (syscall(SYS_capget, &head, d) < 0)
        return -errno;
    *effective = d[0].effective | (uint64_t)d[1].effective << 32;
    *permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
    return 0;
}

int confine_caps(uint64_t effective, uint64_t permitted)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {
        {.effective = (uint32_t)effective, .permitted = (uint32_t)permitted},
        {.effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(permitted >> 32)},
    };

    return syscall(SYS_capset, &head, d) < 0 ? -errno : 0;
}

/* Newer kernels have capabilities that our headers do not know: go on until the kernel says
 * stop. */
static int bound_caps(uint64_t keep)
{
    for (unsigned long c = 0; c < 64; c++) {
        if (keep & CAP(c))
            continue;
        if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
            return errno == EINVAL && c > 0 ? 0 : -errno;
    }
    return 0;
}

int confine_ids(uint32_t uid, uint32_t gid)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
        syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -errno;
    return 0;
}

/* Never raises a limit above our own: that would need a privilege, and the host chose its
 * limits. */
static int bounded_limit(int resource, rlim_t soft, rlim_t hard, struct confine_limit *ret)
{
    struct rlimit old;

    if (getrlimit(resource, &old) < 0)
        return -errno;
    if (hard > old.rlim_max)
        hard = old.rlim_max;
    *ret = (struct confine_limit){
        .resource = resource,
        .value = {.rlim_cur = soft < hard ? soft : hard, .rlim_max = hard},
    };
    return 0;
}

int confine_limits(const struct agent_config *config, struct confine_limit ret[CONFINE_LIMITS])
{
    const rlim_t nproc = config->pids + NPROC_MORE;
    const struct {
        int resource;
        rlim_t soft, hard;
    } limits[CONFINE_LIMITS] = {
        {RLIMIT_CORE, 0, 0},
        {RLIMIT_NPROC, nproc, nproc},
        {RLIMIT_MEMLOCK, 64 * 1024, 64 * 1024},
        {RLIMIT_MSGQUEUE, 64 * 1024, 64 * 1024},
        {RLIMIT_SIGPENDING, 1024, 1024},
        {RLIMIT_RTPRIO, 0, 0},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_STACK, 8 * 1024 * 1024, KEEP_HARD},
        /* These do not hold for the agent itself: see AGENT_LIMITS. */
        {RLIMIT_NOFILE, 1024, 4096},
        {RLIMIT_FSIZE, config->disk_bytes, config->disk_bytes},
    };
    int r = 0;

    for (size_t i = 0; i < CONFINE_LIMITS && r == 0; i++)
        r = bounded_limit(limits[i].resource, limits[i].soft, limits[i].hard, &ret[i]);
    return r;
}

/* Up to AGENT_LIMITS: those that hold for the agent and, by inheritance, for every program. From
 * there on: those that must not hold for the agent. */
static int set_limits(const struct agent_config *config, size_t from, size_t to, struct sg_error *e)
{
    struct confine_limit l[CONFINE_LIMITS];
    int r = confine_limits(config, l);

    for (size_t i = from; i < to && r == 0; i++)
        if (setrlimit(l[i].resource, &l[i].value) < 0)
            r = -errno;
    return err_internal(e, r, "set resource limits");
}

/* When memory runs out, a program must die, not the agent. A copy of the agent is undumpable, so
 * its /proc file belongs to the host's root; becoming dumpable gives it to us. The ids are still
 * the agent's then, so nobody inside can use the gap. */
static int volunteer_for_oom(struct sg_error *e)
{
    int r;

    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    r = file_write(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return err_internal(e, r, "write /proc/self/oom_score_adj");
}

/* Drops the capabilities that no program may ever have. The agent keeps those that it holds: it
 * never execs, so the bounding set only binds its children. */
static int limit_caps(const struct agent_config *config, struct sg_error *e)
{
    int r;

    if (DEFENCE_OMITTED(config->omit, DEFENCE_CAPS))
        return 0;
    r = bound_caps(ROOT_CAPS);
    if (r < 0)
        return err_internal(e, r, "drop capabilities");
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
              0, 0, 0) < 0)
        return err_errno(e, "lock the ambient capabilities");
    return 0;
}

static int become(const struct agent_user *as, const struct agent_config *config,
                  struct sg_error *e)
{
    int r = confine_ids(as->uid, as->gid);

    if (r < 0)
        return err_code(e, r, "become user '%s'", as->name);
    /* Until exec this process is a copy of the agent, so no other process of the user may look into
     * it. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_errno(e, "become undumpable");
    if (as->uid == 0 && DEFENCE_OMITTED(config->omit, DEFENCE_CAPS))
        return 0;
    uint64_t caps = as->uid == 0 ? ROOT_CAPS : 0;
    return err_internal(e, confine_caps(caps, caps), "set capabilities");
}

static int load_filter(const struct seccomp_prog *filter, const struct agent_config *config,
                       struct sg_error *e)
{
    int r = DEFENCE_OMITTED(config->omit, DEFENCE_SECCOMP) ? 0 : seccomp_load(filter);

    return err_internal(e, r, "load the system-call filter");
}

int confine_process(const struct agent_user *as, const struct agent_config *config,
                    struct sg_error *e)
{
    int r = volunteer_for_oom(e);

    if (r == 0 && !DEFENCE_OMITTED(config->omit, DEFENCE_RLIMITS))
        r = set_limits(config, AGENT_LIMITS, CONFINE_LIMITS, e);
    if (r == 0)
        r = become(as, config, e);
    if (r < 0)
        return r;
    if (!DEFENCE_OMITTED(config->omit, DEFENCE_NNP) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(e, "set no_new_privs");
    return load_filter(config->filter, config, e);
}

static int leave_root(struct sg_error *e)
{
    int r = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ? -errno : confine_ids(AGENT_UID, AGENT_UID);

    if (r < 0)
        return err_internal(e, r, "become the agent's user");
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    return 0;
}

static int keep_agent_caps(const struct agent_config *config, struct sg_error *e)
{
    uint64_t effective, permitted;
    int r = caps_get(&effective, &permitted);

    if (r == 0 && !DEFENCE_OMITTED(config->omit, DEFENCE_CAPS))
        permitted &= AGENT_CAPS;
    if (r == 0)
        r = confine_caps(permitted, permitted);
    return err_internal(e, r, "keep the agent's capabilities");
}

int confine_agent(const struct agent_config *config, struct sg_error *e)
{
    bool as_root = DEFENCE_OMITTED(config->omit, DEFENCE_AGENT);
    struct confine_limit files;
    int r = bounded_limit(RLIMIT_NOFILE, AGENT_FILES, KEEP_HARD, &files);

    if (r == 0 && setrlimit(RLIMIT_NOFILE, &files.value) < 0)
        r = -errno;
    if (r < 0)
        return err_internal(e, r, "prepare the agent");
    if (!DEFENCE_OMITTED(config->omit, DEFENCE_RLIMITS))
        r = set_limits(config, 0, AGENT_LIMITS, e);
    if (r == 0)
        r = limit_caps(config, e);
    if (r == 0 && !as_root)
        r = leave_root(e);
    if (r == 0)
        r = keep_agent_caps(config, e);
    if (r < 0)
        return r;
    if (prctl(PR_SET_DUMPABLE, (unsigned long)as_root, 0, 0, 0) < 0)
        return err_errno(e, "make the agent undumpable");
    return load_filter(config->agent_filter, config, e);
}

/* The agent's own capabilities, saved while it works as somebody else. */
static uint64_t own_effective, own_permitted;
static const struct agent_user *working_as;

const struct agent_user *confine_fs_who(void)
{
    return working_as;
}

int confine_fs_begin(const struct agent_user *as)
{
    uint64_t caps = as->uid == 0 || as->as_root ? ROOT_FS_CAPS : 0;
    int r = caps_get(&own_effective, &own_permitted);

    if (r < 0)
        return r;
    if (syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    /* These two calls return the previous id, never an error, so a second call checks the
     * result. */
    syscall(SYS_setfsgid, as->gid);
    syscall(SYS_setfsuid, as->uid);
    working_as = as;
    if (syscall(SYS_setfsgid, -1) != as->gid || syscall(SYS_setfsuid, -1) != as->uid)
        r = -EPERM;
    if (r == 0)
        r = confine_caps(caps & own_permitted, own_permitted);
    if (r < 0)
        confine_fs_end();
    return r;
}

/* Going back to one's own ids and effective capabilities needs no privilege. If it fails all the
 * same, the next operation would run as the wrong user, so the agent must end. */
void confine_fs_end(void)
{
    long uid = syscall(SYS_geteuid), gid = syscall(SYS_getegid);

    syscall(SYS_setfsgid, gid);
    syscall(SYS_setfsuid, uid);
    if (syscall(SYS_setfsgid, -1) != gid || syscall(SYS_setfsuid, -1) != uid ||
        confine_caps(own_effective, own_permitted) < 0)
        abort();
    working_as = NULL;
}
