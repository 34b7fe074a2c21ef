/* Checks of the host: rights, resources, and the programs that sandboxes offer. */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "lib/base/fd.h"
#include "lib/text/parse.h"
#include "cli/local/doctor.h"

#define SPACE_ENOUGH   (64ull << 20)
#define INODES_ENOUGH  1024
#define MEMORY_ENOUGH  (512ull << 20)
#define FILES_ENOUGH   4096
#define WHOLE_ID_RANGE 4294967295ull

/* ---- rights ---------------------------------------------------------------------------------- */

/* Root in another user namespace is not enough: we must give out ids, and own new namespaces, as
 * the host's root. */
static bool in_initial_user_namespace(void)
{
    AUTO(free_p) char *text = NULL;
    unsigned long long first, outside, count;
    size_t len;

    if (file_read(AT_FDCWD, "/proc/self/uid_map", 4096, &text, &len) < 0)
        return true; /* a kernel without user namespaces: another check says so */
    return sscanf(text, "%llu %llu %llu", &first, &outside, &count) == 3 && first == 0 &&
           outside == 0 && count == WHOLE_ID_RANGE;
}

static const struct {
    unsigned cap;
    const char *name;
} needed_caps[] = {
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
    {CAP_SETUID, "CAP_SETUID"},       {CAP_SETGID, "CAP_SETGID"},
    {CAP_CHOWN, "CAP_CHOWN"},         {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_KILL, "CAP_KILL"},           {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
};

/* The first capability that we need and do not have, or NULL. */
static const char *missing_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return "capget";
    for (size_t i = 0; i < ARRAY_SIZE(needed_caps); i++)
        if (!(data[needed_caps[i].cap / 32].effective & (1u << needed_caps[i].cap % 32)))
            return needed_caps[i].name;
    return NULL;
}

static void check_root(struct check_result *r)
{
    const char *cap = missing_capability();

    if (geteuid() != 0) {
        check_missing(r, "uid %u", (unsigned)geteuid());
        check_fix(r, "run sandglass as root: sudo sandglass doctor");
    } else if (!in_initial_user_namespace()) {
        check_missing(r, "root of a user namespace, not of the host");
        check_fix(r, "run sandglass as the host's root, outside unprivileged containers");
    } else if (cap) {
        check_missing(r, "uid 0 without %s", cap);
        check_fix(r, "grant it, e.g. run the container with --privileged");
    } else {
        check_ok(r, "uid 0 with the capabilities needed");
    }
}

static void check_kernel(struct check_result *r)
{
    struct utsname u;

    if (uname(&u) < 0)
        check_warn(r, "unknown");
    else
        check_ok(r, "%s %s", u.release, u.machine);
}

/* ---- resources ------------------------------------------------------------------------------- */

static void check_open_files(struct check_result *r)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max >= FILES_ENOUGH)
        return check_ok(r, "at most %llu", (unsigned long long)limit.rlim_max);
    check_warn(r, "at most %llu", (unsigned long long)limit.rlim_max);
    check_fix(r, "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= of the service");
}

static void check_memory(struct check_result *r)
{
    AUTO(free_p) char *text = NULL;
    unsigned long long kib = 0;
    size_t len;
    char v[32];

    if (file_read(AT_FDCWD, "/proc/meminfo", 65536, &text, &len) == 0) {
        const char *p = strstr(text, "MemAvailable:");

        if (p)
            sscanf(p, "MemAvailable: %llu", &kib);
    }
    format_size(kib * 1024, v, sizeof(v));
    if (kib * 1024 >= MEMORY_ENOUGH)
        return check_ok(r, "%s available", v);
    check_warn(r, "%s available", v);
    check_fix(r, "free some memory, or run with a smaller --memory and --disk");
}

struct place {
    const char *dir, *purpose;
};

static void check_space(struct check_result *r)
{
    const struct place *place = r->about;
    const char *dir = place->dir;
    struct statvfs s;
    char v[32];

    if (statvfs(dir, &s) < 0) {
        check_missing(r, "%s: %s", dir, strerror(errno));
        check_fix(r, "create it: sandglass keeps %s below it", place->purpose);
        return;
    }
    uint64_t bytes = (uint64_t)s.f_bavail * s.f_frsize;
    format_size(bytes, v, sizeof(v));
    if (s.f_flag & ST_RDONLY) {
        check_missing(r, "%s is read-only", dir);
        check_fix(r, "make it writable: sandglass keeps %s below it", place->purpose);
    } else if (bytes < SPACE_ENOUGH || (s.f_files > 0 && s.f_favail < INODES_ENOUGH)) {
        check_warn(r, "%s and %llu files free in %s", v, (unsigned long long)s.f_favail, dir);
        check_fix(r, "remove unneeded files below %s, or give it more space", dir);
    } else {
        check_ok(r, "%s free in %s", v, dir);
    }
}

/* Counts what crashed runs left behind. The next runs sweep it when they need the room; the user
 * may want it gone earlier. */
static void check_stale(struct check_result *r)
{
    struct sg_host_state state;
    struct sg_error e;

    if (geteuid() != 0)
        return check_ok(r, "not looked at: needs root");
    if (sg_host_state(&state, &e) < 0) {
        check_missing(r, "%s", e.message);
        check_fix(r, "make /run/sandglass usable for root");
        return;
    }
    if (state.slots_stale == 0 && state.groups_stale == 0)
        return check_ok(r, "nothing left by crashed runs; %u id ranges set aside by what runs now",
                        state.slots_used);
    check_warn(r, "%u id ranges and %u control groups left by crashed runs", state.slots_stale,
               state.groups_stale);
    check_fix(r, "sandglass doctor --sweep");
}

static const struct place state_place = {"/run", "the state of running sandboxes"};
static const struct place template_place = {"/var/lib", "what sandboxes start from"};
static const struct check host_checks[] = {
    {"root", check_root, NULL},
    {"kernel", check_kernel, NULL},
    {"memory", check_memory, NULL},
    {"state directory", check_space, &state_place},
    {"template directory", check_space, &template_place},
    {"open files", check_open_files, NULL},
    {"left-overs", check_stale, NULL},
};
const struct check_group doctor_host = {"Host", host_checks, ARRAY_SIZE(host_checks)};

/* ---- runtimes: what a sandbox sees of the host is /usr --------------------------------------- */

struct runtime {
    const char *program, *used_for, *package;
};

static void check_runtime(struct check_result *r)
{
    const struct runtime *runtime = r->about;
    char path[64];

    snprintf(path, sizeof(path), "/usr/bin/%s", runtime->program);
    if (access(path, X_OK) == 0)
        return check_ok(r, "%s", path);
    check_warn(r, "no %s: %s does not work", path, runtime->used_for);
    check_fix(r, "apt-get install %s", runtime->package);
}

#define RUNTIME(...) check_runtime, (&(const struct runtime){__VA_ARGS__})
static const struct check runtime_checks[] = {
    {"python3", RUNTIME("python3", "--language python", "python3")},
    {"node", RUNTIME("node", "--language javascript", "nodejs")},
    {"esbuild", RUNTIME("esbuild", "--language typescript", "esbuild")},
    {"bash", RUNTIME("bash", "--language bash", "bash")},
    {"git", RUNTIME("git", "git inside sandboxes", "git")},
};
const struct check_group doctor_runtimes = {"Runtimes", runtime_checks, ARRAY_SIZE(runtime_checks)};
